"""Sends canary pages: once per round and partition.

The number of a round is the number of intervals since 1970. The state of each partition holds the start of the last
round sent there (a time, because the interval may change), written in the transaction that appends the pages. So no
crash, restart or rebalance sends a page twice, or only some pages of a round. A round in which no process ran is left
out. A run that becomes live has its own state, and also reads what earlier runs sent.

Canary sites have new names in each round: the row and tally of a site are removed `keep_ms` after its pages were sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from farmwatch.metrics import CANARY_PAGES_SENT
from filters.stages.canary_expiry import expire_canary, expired_canaries
from replay.live.live_run import ROUND_KEY, last_canary_round
from stream.log.contract import partition_of
from stream.processing.stage import Context
from stream.schema import topics
from stream.schema.records import Page

_RETRY_MS = 300_000  # after a round whose pages could not be made

_log = structlog.get_logger()

PagesOf = Callable[[int, int], Iterable[Page]]  # (round, now in ms) -> the pages of the round, sites together


@dataclass(slots=True)
class CanaryRounds:
    """The canaries of TALLY. If `pages_of` raises, the round is tried again."""

    pages_of: PagesOf | None  # None: send none
    every_s: int
    keep_ms: int
    partitions: int
    rows: str = topics.SITES  # the topic of rows
    sent_before: Callable[[int], int] = lambda _: -1  # partition -> start of the last round of other runs, or -1; slow
    _before: dict[int, int] = field(init=False, default_factory=dict)  # its results
    _not_before: int = field(init=False, default=0)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Remove expired sites, and send the due round, in these partitions."""
        for ctx in contexts.values():
            for site in expired_canaries(ctx):
                ctx.state.delete(site.encode())
                ctx.tombstone(self.rows, site)
        if self.pages_of is None:
            return
        late = [ctx for ctx in contexts.values() if self._is_late(ctx)]
        if not late or late[0].now_ms < self._not_before:
            return
        number = max(map(self._number, late))
        try:
            pages = list(self.pages_of(number, late[0].now_ms))
        except Exception as error:  # noqa: BLE001 - a broken file of canaries must not stop the tally
            self._not_before = late[0].now_ms + _RETRY_MS
            _log.error("canaries_not_sent", round=number, error=f"{type(error).__name__}: {error}"[:300])
            return
        for ctx in late:
            mine = [page for page in pages if partition_of(page.site, self.partitions) == ctx.partition]
            for page in mine:
                ctx.emit(topics.PAGES, page)
            for site in {page.site for page in mine}:
                expire_canary(ctx, site, self.keep_ms)
            ctx.state.put(ROUND_KEY, str(number * self.every_s * 1000).encode())
            ctx.meter.count(CANARY_PAGES_SENT, len(mine))

    def _is_late(self, ctx: Context) -> bool:
        begun = self._number(ctx) * self.every_s * 1000
        if begun <= last_canary_round(ctx.state):
            return False
        if ctx.partition not in self._before:
            self._before[ctx.partition] = self.sent_before(ctx.partition)
        return begun > self._before[ctx.partition]

    def _number(self, ctx: Context) -> int:
        return ctx.now_ms // (self.every_s * 1000)
