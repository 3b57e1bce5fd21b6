"""Sending canary pages: once a round and partition, in the same transaction that remembers it.

A round's number is the number of intervals since 1970. Each partition's state holds when the last round began whose
pages were sent there (a time, since the interval may change), written in the transaction that appends the pages. So no
crash, restart or move sends a page twice or loses one of a round that was begun; a round in which nobody ran is left
out. Another run that becomes live has a state of its own: it asks for what those before it have sent.

Names of canary sites are new each round: a site's row and tally are removed `keep_ms` after it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from replay.live.live_run import ROUND_KEY, last_canary_round
from stream.log.contract import partition_of
from stream.processing.stage import Context
from stream.schema import topics
from stream.schema.records import Page

_SITE_KEY = b"\0canary\0"  # and the site; due when it is to be taken away
_TAKEN_AWAY = 100  # sites a tick and partition at most
_TRY_AGAIN_MS = 300_000  # after a round whose pages could not be made

_log = structlog.get_logger()

PagesOf = Callable[[int, int], Iterable[Page]]  # (round, now in ms) -> the pages of the round, sites together


@dataclass(slots=True)
class CanaryRounds:
    """What TALLY does for canaries at each tick. Where `pages_of` raises, the round is tried again."""

    pages_of: PagesOf | None  # None: send none
    every_s: int
    keep_ms: int
    partitions: int
    rows: str = topics.SITES  # the topic of sites' rows
    sent_before: Callable[[int], int] = lambda _: -1  # partition -> when the last round of other runs began, or -1
    _before: dict[int, int] = field(init=False, default_factory=dict)  # what that said: it may be slow
    _not_before: int = field(init=False, default=0)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Send what is due in the partitions at hand, and take old sites away."""
        for ctx in contexts.values():
            self._take_away(ctx)
        if self.pages_of is None:
            return
        late = [ctx for ctx in contexts.values() if self._is_late(ctx)]
        if not late or late[0].now_ms < self._not_before:
            return
        number = max(map(self._number, late))
        try:
            pages = list(self.pages_of(number, late[0].now_ms))
        except Exception as error:  # noqa: BLE001 - a broken file of canaries must not stop the tally
            self._not_before = late[0].now_ms + _TRY_AGAIN_MS
            _log.error("canaries_not_sent", round=number, error=f"{type(error).__name__}: {error}"[:300])
            return
        for ctx in late:
            self._send(ctx, number, pages)

    def _is_late(self, ctx: Context) -> bool:
        begun = self._number(ctx) * self.every_s * 1000
        if begun <= last_canary_round(ctx.state):
            return False
        if ctx.partition not in self._before:
            self._before[ctx.partition] = self.sent_before(ctx.partition)
        return begun > self._before[ctx.partition]

    def _send(self, ctx: Context, number: int, pages: Iterable[Page]) -> None:
        sites = set()
        for page in pages:
            if partition_of(page.site, self.partitions) == ctx.partition:
                ctx.emit(topics.PAGES, page)
                sites.add(page.site)
        for site in sites:
            ctx.state.put(_SITE_KEY + site.encode(), b"", due_at=ctx.now_ms + self.keep_ms)
        ctx.state.put(ROUND_KEY, str(number * self.every_s * 1000).encode())
        ctx.meter.count("canary_pages_sent", len([page for page in pages if page.site in sites]))

    def _take_away(self, ctx: Context) -> None:
        for key, _, _ in ctx.state.due(ctx.now_ms, _TAKEN_AWAY):
            if key.startswith(_SITE_KEY):
                site = key.removeprefix(_SITE_KEY)
                ctx.state.delete(key)
                ctx.state.delete(site)
                ctx.tombstone(self.rows, site.decode())

    def _number(self, ctx: Context) -> int:
        return ctx.now_ms // (self.every_s * 1000)
