"""The state of each run: read from `control` and offsets, without reading site rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replay.runs.lookup import ever_live
from replay.runs.phases import PhaseProgress, RunProgress, groups_of, progress_of, request_phase
from replay.runs.retention import topics_held
from replay.runs.topology import lag_by_group
from replay.runs.window import FOLLOW, window_text
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.runs import Run, RunStatus

LIVE_NOW, WAS_LIVE = "live", "was live"
STOPPED = "stopped"  # no process is at work on it, after a signal, a kill or an error


@dataclass(frozen=True, slots=True)
class RunState:
    """The current state of a run. Times in ms; rate in records per second."""

    run: Run
    state: str  # see `state_of`
    progress: RunProgress
    rate: float | None = None  # since its process began; None if it only waits for new records
    eta_s: float | None = None
    lags: Mapping[str, int] = field(default_factory=dict)  # group -> unprocessed records
    members: Sequence[str] = ()
    live_until: int = 0  # when a cutover replaced it; 0 = never
    holds: Sequence[str] = ()  # of a stopped run: topics whose old records are kept for it alone

    @property
    def lag(self) -> int:
        return sum(self.lags.values())

    @property
    def is_live(self) -> bool:
        return self.state == LIVE_NOW

    @property
    def to_at(self) -> int:
        """The end of its window; 0 = none. The live stages continue a run beyond the end of its replay."""
        return self._until(self.run.to_at)

    @property
    def ended_at(self) -> int:
        """When it ended, or a cutover replaced it; 0 = not yet."""
        return self._until(self.run.ended_at)

    @property
    def window(self) -> str:
        text = window_text(self.run.from_at, self.to_at)
        return f"{text.removesuffix(FOLLOW)}{LIVE_NOW}" if self.is_live else text

    def _until(self, at: int) -> int:
        if self.state == WAS_LIVE:
            return max(at, self.live_until)
        return 0 if self.is_live else at

    @property
    def _replayed(self) -> bool:
        return self.state not in (LIVE_NOW, WAS_LIVE)

    @property
    def phases(self) -> Sequence[PhaseProgress]:
        return self.progress.phases if self._replayed else ()

    @property
    def phase(self) -> str:
        """The current phase of a replay; "" = none. A run that is up to date has none: its lag is only heartbeats."""
        up_to_date = self.run.follows and not self.lag
        return self.progress.phase if self._replayed and not up_to_date else ""

    @property
    def done(self) -> str:
        """The finished share of a replay, as text; "follows" if it processes new records."""
        if self.run.follows or not self._replayed:
            return "follows" if self.state == RunStatus.RUNNING else ""
        return f"{self.progress.share:.0%}"

    @property
    def tallied(self) -> tuple[int, int] | None:
        """Articles, and unscored articles, at the end of the last replay."""
        run = self.run
        known = self._replayed and run.articles is not None and run.unscored is not None
        return (run.articles or 0, run.unscored or 0) if known else None


def run_states(log: Log, control: Control, now_ms: int) -> list[RunState]:
    """All runs, the live one first, then by creation time. Raises LogUnavailable."""
    runs = sorted(control.runs.values(), key=lambda run: (run.name != control.alias.run, run.created_at, run.name))
    return [run_state(log, control, run, now_ms) for run in runs]


def run_state(log: Log, control: Control, run: Run, now_ms: int) -> RunState:
    """The state of one run. Raises LogUnavailable."""
    if run.state == RunStatus.REMOVED or run.names().sites not in log.topics():
        return RunState(run, state_of(log, control, run), RunProgress([]), live_until=live_until(control, run))
    members = members_of(log, run)
    state = state_of(log, control, run, members)
    progress = progress_of(log, run, requesting=bool(log.members(request_phase(run).group)))
    lags = lag_by_group(log, control, run)
    rate = eta_s = None
    passed_s = (now_ms - run.began_at) / 1000
    if state == RunStatus.RUNNING and passed_s > 0 and not (run.follows and not any(lags.values())):
        done = progress.done - run.began_done
        spent = progress.effort - run.began_effort
        rate = done / passed_s if done > 0 else None
        eta_s = progress.effort_left * passed_s / spent if spent > 0 and not run.follows else None
    holds = topics_held(log, control, run, now_ms) if state == STOPPED else ()
    return RunState(run, state, progress, rate, eta_s, lags, members, live_until(control, run), holds)


def members_of(log: Log, run: Run) -> list[str]:
    """Names of the processes at work on a run. A killed process counts until its lease or session ends."""
    return sorted({member for group in groups_of(run) for member in log.members(group)})


def live_until(control: Control, run: Run) -> int:
    """When a cutover last replaced this run as the live one, ms UTC; 0 = never."""
    return max((move.at for move in control.cutovers if move.from_run == run.name), default=0)


def state_of(log: Log, control: Control, run: Run, members: Sequence[str] | None = None) -> str:
    """The state as a word: live, was live, running, stopped, done, cancelled or removed.

    A run that was live is "running" while a replay works on it; live stages that are still leaving it do not count.
    `members` saves a second call of `members_of`. Raises LogUnavailable.
    """
    if run.name == control.alias.run:
        return LIVE_NOW
    replayed = run.name not in ever_live(control) or run.began_at > live_until(control, run)
    if run.state == RunStatus.RUNNING and replayed and (members_of(log, run) if members is None else members):
        return RunStatus.RUNNING
    if run.state in (RunStatus.RUNNING, RunStatus.DONE) and run.name in ever_live(control):
        return WAS_LIVE
    return STOPPED if run.state == RunStatus.RUNNING else run.state
