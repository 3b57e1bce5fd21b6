"""Looking on while CRAWL runs: what it commits is counted, and the sums of its frontier are read, beside the log."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from crawler.frontier.rows import TOTALS_KEY, SiteRow, Totals, is_site_key, unpack
from stream.log.contract import Clock, Commit, Member, Message, Output, StateReader, wall_ms
from stream.processing.metrics import Metrics
from stream.schema.projection import projection_of
from stream.schema.records import Page, Record, decode
from stream.schema.topics import PAGES

PARTITIONS_TO_COME = "the log to give this process its partitions"
_LOOK_S = 0.5  # between two looks at the frontier
_SUMMED = ("sites", "active", "parked", "stopped", "queued", "fetched")
_WINDOW_S = 60  # over which rates and outcomes are told


@projection_of(Page)
class _PageHead(Record, frozen=True, kw_only=True):
    """The outcome of a URL; the body is not decoded."""

    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class CrawlFigures:
    """How a crawl goes; the counts are those of this process and of its partitions."""

    running_s: float = 0.0
    partitions: int = 0  # owned; none until the log has given some
    sites: int = 0
    active: int = 0  # with something left to do, parked ones among them
    parked: int = 0
    resting: int = 0
    stopped: int = 0
    queued: int = 0  # URLs
    fetched: int = 0  # pages of the frontier, those of earlier runs among them
    fetched_now: int = 0  # since this process began
    recent_per_s: float = 0.0  # pages fetched a second, over the last minute
    in_flight: int = 0  # requests
    received_bytes: int = 0  # inflated
    oldest_due_ms: int | None = None  # how long the site waits that waits longest; None = none is due
    next_due_ms: int | None = None  # how long until the next site is due; None = one is due, or none ever
    waits_for: str = PARTITIONS_TO_COME  # or what is left elsewhere, once nothing is left in these partitions
    next_parked: str = ""  # where all that is active is parked: the site that is asked again first, and why it is
    outcomes: Mapping[str, int] = field(default_factory=dict)  # reason or "fetched" -> records of the last minute

    @property
    def left_s(self) -> float | None:
        """Seconds that what is queued takes at the rate of the last minute; None where nobody can tell."""
        is_moving = self.recent_per_s > 0 and self.active > self.parked
        return self.queued / self.recent_per_s if is_moving else None


class CrawlWatch:
    """Counts what a member commits. `figures` may be asked from any thread; all else is the loop's thread's."""

    def __init__(
        self, metrics: Metrics, *, clock: Clock = wall_ms, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Read the fetcher's counts from `metrics`."""
        self.waits_for = ""
        self._metrics = metrics
        self._clock = clock
        self._monotonic = monotonic
        self._began = monotonic()
        self._lock = threading.Lock()
        self._recent: deque[tuple[int, Counter[str]]] = deque()  # second -> outcomes
        self._fetched = 0
        self._totals: dict[int, Totals] = {}
        self._due: list[int] = []
        self._parked: tuple[int, str] | None = None
        self._looked = -_LOOK_S

    def over(self, member: Member) -> Member:
        """The member, watched."""
        return cast(Member, _Watched(member, self))

    def committed(self, outputs: Iterable[Output]) -> None:
        """Count the page records among what has become visible."""
        found: Counter[str] = Counter()
        for output in outputs:
            if output.topic == PAGES and output.value:
                page = decode(_PageHead, output.value)
                found[page.reason or page.outcome] += 1
                self._fetched += page.outcome == "fetched"
        if found:
            second = int(self._monotonic())
            with self._lock:
                if not self._recent or self._recent[-1][0] != second:
                    self._recent.append((second, Counter()))
                self._recent[-1][1].update(found)

    def look(self, member: Member) -> None:
        """Read the sums of the member's partitions, at most twice a second."""
        now = self._monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        totals: dict[int, Totals] = {}
        due: list[int] = []
        parked: list[tuple[int, str]] = []
        for partition in member.assignment():
            state = member.state(partition)
            value = state.get(TOTALS_KEY)
            sums = totals[partition] = unpack(Totals, value) if value is not None else Totals()
            at = state.next_due()
            if at is not None:
                due.append(at)
                if sums.parked and sums.parked == sums.active:
                    parked += _first_parked(state, at)
        with self._lock:
            self._totals, self._due, self._parked = totals, due, min(parked, default=None)

    def figures(self) -> CrawlFigures:
        """How it goes now."""
        now, now_ms = self._monotonic(), self._clock()
        with self._lock:
            while self._recent and self._recent[0][0] < now - _WINDOW_S:
                self._recent.popleft()
            outcomes: Counter[str] = sum((counts for _, counts in self._recent), Counter())
            totals, first_due = list(self._totals.values()), min(self._due, default=None)
            parked = self._parked
        sums = {name: sum(getattr(each, name) for each in totals) for name in _SUMMED}
        running_s = now - self._began
        waits_ms = None if first_due is None else now_ms - first_due
        return CrawlFigures(
            running_s=running_s,
            partitions=len(totals),
            resting=sums["sites"] - sums["active"] - sums["stopped"],
            **sums,
            fetched_now=self._fetched,
            recent_per_s=outcomes["fetched"] / min(max(running_s, 1.0), _WINDOW_S),
            in_flight=int(self._sum("fetch_inflight")),
            received_bytes=int(self._sum("fetch_response_bytes")),
            oldest_due_ms=waits_ms if waits_ms is not None and waits_ms >= 0 else None,
            next_due_ms=-waits_ms if waits_ms is not None and waits_ms < 0 else None,
            waits_for=self.waits_for or ("" if totals else PARTITIONS_TO_COME),
            next_parked=parked[1] if parked and parked[0] == first_due and sums["active"] == sums["parked"] else "",
            outcomes=dict(outcomes.most_common()),
        )

    def _sum(self, name: str) -> float:
        """Sum of a metric over its labels."""
        return sum(
            sample.value
            for metric in self._metrics.of(name).collect()
            for sample in metric.samples
            if not sample.name.endswith("_created")
        )


def _first_parked(state: StateReader, at_ms: int) -> Iterator[tuple[int, str]]:
    """When the site is asked again that is due first, with its name and why it is parked."""
    for key, value, due_ms in state.due(at_ms, 1):
        if is_site_key(key) and (row := unpack(SiteRow, value)).parked_why:
            yield due_ms, f"{row.site}, {row.parked_why}"


class _Watched:
    """A member that has a watch look now and then, and reports to it what it has committed."""

    def __init__(self, member: Member, watch: CrawlWatch) -> None:
        self._member = member
        self._watch = watch

    def __getattr__(self, name: str) -> object:
        return getattr(self._member, name)

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        self._watch.look(self._member)
        return self._member.poll(timeout_s, max_records, max_bytes)

    def commit(self, commit: Commit) -> None:
        self._member.commit(commit)
        self._watch.committed(commit.outputs)
