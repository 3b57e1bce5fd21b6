"""Live first: a replay waits between two batches while a group of the live run is behind.

A group is behind with more than a few records and twice its usual lag: otherwise a stage with a permanent backlog (a
detector on one core) would block every replay for ever. A replay works at least a tenth of the time in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from replay.runs.offsets import lag_on
from replay.runs.topology import Reads, reads_of_run
from stream.log.contract import Log
from stream.schema.roles import Role
from stream.schema.runs import RunNames

LEAST_SHARE = 0.1  # of its time that a replay works, however far live is behind
_FEW = 50  # records behind that are no reason to wait: less than a batch of MEASURE
_USUAL_S = 120.0  # time over which the usual lag is taken
_MEMBERS_S = 5.0  # between checks for members of the live groups: a replay does not wait for a daemon that is down
_SLICE_S = 0.1  # of a wait


@dataclass(eq=False)
class LiveLag:
    """How far the live run is behind; `look` is called once a second, by one thread."""

    log: Log
    monotonic: Callable[[], float] = time.monotonic
    behind: Mapping[str, int] = field(default_factory=dict)  # group -> records, of those that are behind
    _usual: dict[str, float] = field(default_factory=dict)
    _members: dict[str, bool] = field(default_factory=dict)
    _members_s: float = float("-inf")
    _looked_s: float | None = None

    def look(self, live: RunNames) -> None:
        """Ask the log. Raises as `Log.committed`."""
        groups = live_reads(live)
        now = self.monotonic()
        if now - self._members_s >= _MEMBERS_S:
            self._members_s = now
            self._members = {group: bool(self.log.members(group)) for group in groups}
        passed_s = 0.0 if self._looked_s is None else now - self._looked_s
        self._looked_s = now
        topics = self.log.topics()
        behind = {}
        for group, reads in groups.items():
            if not self._members.get(group):
                continue
            lag = sum(lag_on(self.log, group, topic) for topic in reads if topic in topics)
            usual = self._usual.get(group, 0.0)
            if lag > _FEW + 2 * usual:
                behind[group] = lag
            self._usual[group] = usual + (lag - usual) * min(1.0, passed_s / _USUAL_S)
        self.behind = behind

    @property
    def text(self) -> str:
        """The groups that are behind, in words; "" = none."""
        return ", ".join(f"{group} {lag}" for group, lag in self.behind.items())


@dataclass(eq=False)
class LiveFirstThrottle:
    """Delays a loop while live is behind, by at most 9 times the time that it works."""

    live: LiveLag
    _: KW_ONLY
    on_wait: Callable[[float], None] = lambda _: None  # gets the seconds of each wait
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    most_owed_s: float = 10.0  # the longest wait in one go

    def __post_init__(self) -> None:
        self._owed_s = self.most_owed_s  # of waiting
        self._worked_from = self.monotonic()

    def hold(self, longest_s: float) -> bool:
        """Wait a little, at most `longest_s`, if the replay has to wait now; whether it did."""
        began = self.monotonic()
        worked_s = began - self._worked_from
        self._worked_from = began
        self._owed_s = min(self.most_owed_s, self._owed_s + worked_s * (1 / LEAST_SHARE - 1))
        slice_s = min(_SLICE_S, longest_s, self._owed_s)
        if slice_s <= 0 or not self.live.behind:
            return False
        self.sleep(slice_s)
        self._worked_from = self.monotonic()
        waited_s = self._worked_from - began
        self._owed_s -= waited_s
        self.on_wait(waited_s)
        return True


def live_reads(live: RunNames) -> Reads:
    """Group -> topics of the stages that live waits for. CRAWL is left out: its backlog of answers shows in no lag."""
    return {**reads_of_run(live), Role.SCORE.value: (live.requests,)}
