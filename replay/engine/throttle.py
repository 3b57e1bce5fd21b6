"""Throttles a replay while a group of the live run is behind.

A group is behind if its lag is more than a few records and twice its usual lag. Otherwise a stage with a permanent
backlog (a detector on one core) would block every replay for ever. A replay always works at least a tenth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from replay.runs.topology import Reads, lag_on, reads_of_run
from stream.log.contract import Log
from stream.schema.roles import Role
from stream.schema.runs import RunNames

MIN_WORK_SHARE = 0.1  # of the time, even if live is far behind
_SMALL_LAG = 50  # records; less than a batch of MEASURE
_USUAL_S = 120.0  # averaging time of the usual lag
_MEMBERS_S = 5.0  # between checks for live members: a replay does not wait for a daemon that is down
_SLICE_S = 0.1  # of a wait


@dataclass(eq=False)
class LiveLag:
    """The lag of the live run. One thread calls `refresh` once a second."""

    log: Log
    monotonic: Callable[[], float] = time.monotonic
    behind: Mapping[str, int] = field(default_factory=dict)  # group -> lag, of the groups that are behind
    _usual: dict[str, float] = field(default_factory=dict)
    _members: dict[str, bool] = field(default_factory=dict)
    _members_s: float = float("-inf")
    _checked_s: float | None = None

    def refresh(self, live: RunNames) -> None:
        """Read the lag from the log. Raises as `Log.committed`."""
        groups = live_reads(live)
        now = self.monotonic()
        if now - self._members_s >= _MEMBERS_S:
            self._members_s = now
            self._members = {group: bool(self.log.members(group)) for group in groups}
        passed_s = 0.0 if self._checked_s is None else now - self._checked_s
        self._checked_s = now
        topics = self.log.topics()
        behind = {}
        for group, reads in groups.items():
            if not self._members.get(group):
                continue
            lag = sum(lag_on(self.log, group, topic) for topic in reads if topic in topics)
            usual = self._usual.get(group, 0.0)
            if lag > _SMALL_LAG + 2 * usual:
                behind[group] = lag
            self._usual[group] = usual + (lag - usual) * min(1.0, passed_s / _USUAL_S)
        self.behind = behind

    @property
    def text(self) -> str:
        """The groups that are behind, as text; "" = none."""
        return ", ".join(f"{group} {lag}" for group, lag in self.behind.items())


@dataclass(eq=False)
class LiveFirstThrottle:
    """Delays a loop while the live run is behind, by at most 9 times its working time."""

    live: LiveLag
    _: KW_ONLY
    on_wait: Callable[[float], None] = lambda _: None  # gets the seconds of each wait
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    max_wait_s: float = 10.0  # the longest wait in one go

    def __post_init__(self) -> None:
        self._wait_budget_s = self.max_wait_s  # of waiting
        self._worked_from = self.monotonic()

    def hold(self, longest_s: float) -> bool:
        """Wait at most `longest_s` if the live run is behind. Returns whether it waited."""
        began = self.monotonic()
        worked_s = began - self._worked_from
        self._worked_from = began
        self._wait_budget_s = min(self.max_wait_s, self._wait_budget_s + worked_s * (1 / MIN_WORK_SHARE - 1))
        slice_s = min(_SLICE_S, longest_s, self._wait_budget_s)
        if slice_s <= 0 or not self.live.behind:
            return False
        self.sleep(slice_s)
        self._worked_from = self.monotonic()
        waited_s = self._worked_from - began
        self._wait_budget_s -= waited_s
        self.on_wait(waited_s)
        return True


def live_reads(live: RunNames) -> Reads:
    """Group -> topics of the stages that a replay waits for. CRAWL is left out: no lag shows its backlog."""
    return {**reads_of_run(live), Role.SCORE.value: (live.requests,)}
