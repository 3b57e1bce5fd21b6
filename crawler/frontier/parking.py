"""Parking: how long a site is left alone after a failure.

- `Retry-After` (RFC 9110 section 10.2.3) is obeyed up to `park_cap_s`.
- Failures in a row wait `retry_s`, doubling up to the same cap; a `Retry-After` of 0 does not shorten that.
- Requests sent before the last failure was known belong to that failure: a burst of N 429s counts once.
"""

from __future__ import annotations

from crawler.fetch.jobs import FetchResult, RequestKind
from crawler.frontier.rows import SiteRow
from crawler.settings import CrawlSettings

_DOUBLINGS = 20
_FILES = {RequestKind.ROBOTS: "robots.txt", RequestKind.TDMREP: "tdmrep.json", RequestKind.SITEMAP: "sitemap"}


def asked_until(answer: FetchResult, settings: CrawlSettings) -> int:
    """Until when (ms) a failed answer asks us to wait; 0 if it does not."""
    if answer.retry_after_s is None:
        return 0
    return _ended(answer) + int(1000 * min(answer.retry_after_s, settings.park_cap_s))


def park(row: SiteRow, answer: FetchResult, settings: CrawlSettings, least_s: float = 0.0) -> None:
    """Leave a site alone after a failure, for at least `least_s` seconds."""
    if answer.started_ms >= row.parked_at:
        row.park_level += 1
        row.parked_at = _ended(answer)
    wait_s = min(settings.retry_s * 2 ** min(row.park_level - 1, _DOUBLINGS), settings.park_cap_s)
    row.parked_until = max(row.parked_until, asked_until(answer, settings))
    hold(row, answer, max(wait_s, least_s))


def hold(row: SiteRow, answer: FetchResult, wait_s: float) -> None:
    """Leave a site alone for `wait_s` seconds from the end of a job, without counting a failure.

    A failed lookup, or a missing robots.txt of a twin, is remembered for less: the next job asks again.
    """
    row.parked_until = max(row.parked_until, _ended(answer) + int(1000 * wait_s))
    row.parked_why = _why(answer)
    row.next_start = max(row.next_start, row.parked_until)


def release(row: SiteRow, now_ms: int) -> None:
    """End a park that is over."""
    if row.parked_until <= now_ms:
        row.parked_until, row.parked_why = 0, ""


def _why(answer: FetchResult) -> str:
    """The reason of a failure.

    With the file if a server answered for a file that is not a page: robots.txt:http_503.
    """
    where = "" if answer.unreachable else _FILES.get(answer.job.kind, "")
    return f"{where}:{answer.reason}" if where else answer.reason


def _ended(answer: FetchResult) -> int:
    return max(answer.ended_ms, answer.started_ms + answer.duration_ms)
