"""How far stored times are believed after a clock was wrong.

A process that ran with a clock that was ahead has stored times far in the future: a site would rest until then. So each
partition has the newest time at which its rows were written. While that lies in the future, a stored time counts at
most as far ahead as the rule that made it allows: the delay between two requests, the longest park, the life of a
robots.txt, the interval of a revisit. No request is made sooner than by these rules.
"""

from __future__ import annotations

import msgspec

from crawler.frontier.rows import CLOCK_KEY, ClockRow, SiteRow, pack, unpack
from crawler.settings import CrawlSettings
from stream.processing.state import KeyedState

CLOCK_SLACK_MS = 60_000  # clocks of two machines may differ this much
_EVERY_MS = 10_000  # how exact the newest time is


def believed(stored_ms: int, now_ms: int, within_s: float) -> int:
    """A stored time, at most `within_s` seconds ahead; 0 stays 0."""
    return min(stored_ms, now_ms + int(1000 * within_s))


def longest_revisit_s(settings: CrawlSettings) -> float:
    """The longest interval of a revisit, or of reading sitemaps again."""
    return max(settings.robots_ttl_s, settings.refetch_fetched_s)


def believe(row: SiteRow, settings: CrawlSettings, now_ms: int) -> None:
    """Limit all times of a site. Revisits have keys of their own: see `crawler.frontier.time_check`."""
    spacing_s = max(row.delay_s, settings.delay_slow_cap_s)
    parked_s = max(settings.park_cap_s, settings.robots_retry_s, settings.retry_s)
    row.parked_until = believed(row.parked_until, now_ms, parked_s)
    row.next_start = max(believed(row.next_start, now_ms, spacing_s), row.parked_until)
    life_s = settings.robots_life_s(row.delay_s)
    row.robots_until = believed(row.robots_until, now_ms, life_s)
    row.tdm_until = believed(row.tdm_until, now_ms, life_s + parked_s)
    row.sitemaps_at = believed(row.sitemaps_at, now_ms, longest_revisit_s(settings))
    row.parked_at = believed(row.parked_at, now_ms, spacing_s)
    row.stopped_at = believed(row.stopped_at, now_ms, 0)
    row.first_at = believed(row.first_at, now_ms, 0)


class StoredClock:
    """The newest time at which rows of a partition were written."""

    def __init__(self, state: KeyedState, now_ms: int) -> None:
        self._state = state
        self._now = now_ms
        self._row: ClockRow | None = None

    @property
    def row(self) -> ClockRow:
        if self._row is None:
            value = self._state.get(CLOCK_KEY)
            self._row = ClockRow() if value is None else unpack(ClockRow, value)
        return self._row

    @property
    def was_ahead(self) -> bool:
        return self.row.newest > self._now + CLOCK_SLACK_MS

    def note(self) -> None:
        """Rows are written now, if any are."""
        if self._state.mark() and self.row.newest < self._now - _EVERY_MS:
            self.put(msgspec.structs.replace(self.row, newest=self._now))

    def confirm(self) -> None:
        self.put(ClockRow(newest=self._now))

    def put(self, row: ClockRow) -> None:
        self._row = row
        self._state.put(CLOCK_KEY, pack(row))
