"""The progress of a running crawl: counts its commits and requests, and reads the sums of its frontier."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from crawler.frontier.rows import TOTALS_KEY, Totals, unpack
from crawler.stages.crawl import CrawlStage
from stream.log.contract import Clock, Commit, Member, Message, Output, wall_ms
from stream.log.forwarding import ForwardingMember
from stream.processing.stage import Stage
from stream.schema.projection import projection_of
from stream.schema.records import Page, Record, decode
from stream.schema.topics import PAGES
from stream.schema.vocabulary import FetchOutcome
from stream.text.wording import lasting, one_line, size

PARTITIONS_TO_COME = "the log to give this process its partitions"
_READ_S = 0.5  # between two readings of the frontier
_REASONS_SHOWN = 8
_WINDOW_S = 60  # of the rate and the outcomes


@projection_of(Page)
class _PageHead(Record, frozen=True, kw_only=True):
    """The outcome of a URL. The body is not decoded."""

    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class CrawlFigures:
    """The progress of a crawl, in this process and its partitions."""

    active: int = 0  # sites with open work, including parked ones
    parked: int = 0
    resting: int = 0
    stopped: int = 0
    queued: int = 0  # URLs
    fetched_now: int = 0  # pages since this process started
    recent_per_s: float = 0.0  # pages fetched per second in the last minute
    in_flight: int = 0  # requests
    received_bytes: int = 0  # inflated
    next_due_ms: int | None = None  # time until the next site is due, below 0 if it waits; None = no site is queued
    waits_for: str = PARTITIONS_TO_COME  # or open work of other processes, once these partitions are done
    paused: str = ""  # why no request starts
    outcomes: Mapping[str, int] = field(default_factory=dict)  # reason or "fetched" -> records of the last minute

    @property
    def text(self) -> str:
        """All figures in one line."""
        ranked = sorted(self.outcomes.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{one_line(reason)} {count:,}" for reason, count in ranked[:_REASONS_SHOWN])
        due = "no site is queued"
        if self.next_due_ms is not None:
            due = (
                f"{'the next in' if self.next_due_ms > 0 else 'the oldest for'} {lasting(abs(self.next_due_ms) / 1000)}"
            )
        return (
            f"{self.fetched_now:,} pages fetched ({self.recent_per_s:.1f}/s), {self.in_flight} requests in flight,"
            f" sites {self.active - self.parked:,} active, {self.parked:,} parked, {self.resting:,} resting,"
            f" {self.stopped:,} stopped; {self.queued:,} URLs queued; due: {due};"
            f" {size(self.received_bytes)} received; last minute: {shown or 'no answer'}"
            + (f"; waits for {self.waits_for}" if self.waits_for else "")
            + (f"; paused: {self.paused}" if self.paused else "")
        )


class CrawlWatch:
    """Observes a stage and its member. `figures` is thread-safe; all else belongs to the thread of the loop."""

    def __init__(self, *, clock: Clock = wall_ms, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Without an observed stage, all figures are 0."""
        self.waits_for = ""
        self._stage: CrawlStage | None = None
        self._clock = clock
        self._monotonic = monotonic
        self._began = monotonic()
        self._lock = threading.Lock()
        self._recent: deque[tuple[int, Counter[str]]] = deque()  # second -> outcomes
        self._fetched = 0
        self._totals: dict[int, Totals] = {}
        self._due: list[int] = []
        self._read_at = -_READ_S

    def observe(self, stage: Stage, member: Member) -> Member:
        """Observe both from now on; the loop works with the returned member."""
        if isinstance(stage, CrawlStage):
            self._stage = stage
        return _ObservedMember(member, self)

    def count_pages(self, outputs: Iterable[Output]) -> None:
        outcomes: Counter[str] = Counter()
        for output in outputs:
            if output.topic == PAGES and output.value:
                page = decode(_PageHead, output.value)
                outcomes[page.reason or page.outcome] += 1
                self._fetched += page.outcome == FetchOutcome.FETCHED
        if outcomes:
            second = int(self._monotonic())
            with self._lock:
                if not self._recent or self._recent[-1][0] != second:
                    self._recent.append((second, Counter()))
                self._recent[-1][1].update(outcomes)

    def read_frontier(self, member: Member) -> None:
        """Read the sums of the member's partitions, at most twice a second."""
        now = self._monotonic()
        if now - self._read_at < _READ_S:
            return
        self._read_at = now
        totals: dict[int, Totals] = {}
        due: list[int] = []
        for partition in member.assignment():
            state = member.state(partition)
            value = state.get(TOTALS_KEY)
            totals[partition] = unpack(Totals, value) if value is not None else Totals()
            at = state.next_due()
            if at is not None:
                due.append(at)
        with self._lock:
            self._totals, self._due = totals, due

    def figures(self) -> CrawlFigures:
        now, now_ms = self._monotonic(), self._clock()
        with self._lock:
            while self._recent and self._recent[0][0] < now - _WINDOW_S:
                self._recent.popleft()
            outcomes: Counter[str] = sum((counts for _, counts in self._recent), Counter())
            totals, first_due = list(self._totals.values()), min(self._due, default=None)
        sums = {name: sum(getattr(each, name) for each in totals) for name in ("active", "parked", "stopped", "queued")}
        window_s = min(max(now - self._began, 1.0), _WINDOW_S)
        return CrawlFigures(
            resting=sum(each.sites - each.active - each.stopped for each in totals),
            **sums,
            fetched_now=self._fetched,
            recent_per_s=outcomes[FetchOutcome.FETCHED] / window_s,
            in_flight=self._stage.in_flight if self._stage else 0,
            received_bytes=self._stage.received_bytes if self._stage else 0,
            next_due_ms=None if first_due is None else first_due - now_ms,
            waits_for=self.waits_for or ("" if totals else PARTITIONS_TO_COME),
            paused="; ".join(self._stage.paused.values()) if self._stage else "",
            outcomes=dict(outcomes),
        )


class _ObservedMember(ForwardingMember):
    def __init__(self, member: Member, watch: CrawlWatch) -> None:
        super().__init__(member)
        self._watch = watch

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        self._watch.read_frontier(self._member)
        return self._member.poll(timeout_s, max_records, max_bytes)

    def commit(self, commit: Commit) -> None:
        self._member.commit(commit)
        self._watch.count_pages(commit.outputs)
