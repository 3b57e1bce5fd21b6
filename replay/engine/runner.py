"""Runs a replay: its phases one after another as ordinary stage loops, in threads that the main one watches.

The log keeps all durable state: offsets of the run's groups, their state, the row in `control`. A new process
therefore resumes the work of a killed one, and several processes share the partitions.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import structlog

from filters.rules.ruleset import Ruleset
from replay.engine.bounded_member import BoundedMember
from replay.engine.lifecycle import finish, record_error, record_features_end, record_gap
from replay.engine.plan import refuse_other_epoch
from replay.engine.stages import RECORDS, loop_settings, stage_of
from replay.engine.throttle import LiveFirstThrottle, LiveLag
from replay.runs.lookup import names_of_live
from replay.runs.offsets import Stops, reached
from replay.runs.phases import ASK, MEASURE, Phase, RunProgress, ask_phase, phases_of, progress_of
from replay.runs.scores import count_unrequested, is_scored
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.log.errors import LogUnavailable, StreamError
from stream.processing.health import Health
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.control import Control, Scorers
from stream.schema.runs import Run, RunStatus
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted

_log = structlog.get_logger()
_RATE_S = 30.0  # time over which rate and ETA are taken


@dataclass(slots=True)
class Tempo:
    """How often a replay checks what, and how much it does in one go."""

    look_s: float = 0.2  # between checks for a stop and for the end of a phase
    control_s: float = 1.0  # and of `control`, what SCORE runs, the lag of live and the progress
    records: int = RECORDS  # of a batch of JUDGE or TALLY
    most_owed_s: float = 10.0  # longest wait for live in one go


class Ending(enum.Enum):
    """Why a replay ended."""

    DONE = "done"
    STOPPED = "stopped"  # by a signal; it can be resumed
    CANCELLED = "cancelled"
    LIVE = "live"  # the run became live: the live stages continue it
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class ReplayStatus:
    """The status of a replay, for display."""

    progress: RunProgress
    rate: float | None  # records of the phase a second; None = not known yet
    eta_s: float | None  # of the whole run
    waits_for: str  # the live groups that it waits for; "" = none
    follows: bool = False  # it has caught up and processes new records


class Pace:
    """Rate and ETA from looks at the progress."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, str, int, float]] = []

    def look(self, now_s: float, progress: RunProgress) -> tuple[float | None, float | None]:
        """(records of the phase a second, seconds left) over the last half minute; None where it is not known."""
        current = progress.current
        self._looks.append((now_s, current.phase, current.done, progress.effort))
        self._looks = [look for look in self._looks if now_s - look[0] <= _RATE_S]
        first_s, _, _, effort = self._looks[0]
        of_phase = [look for look in self._looks if look[1] == current.phase]
        spent = progress.effort - effort
        eta_s = progress.effort_left * (now_s - first_s) / spent if spent > 0 else None
        passed_s = now_s - of_phase[0][0]
        return ((current.done - of_phase[0][2]) / passed_s if passed_s > 0 else None), eta_s


@dataclass(eq=False)
class Replay:
    """One process at work on one run."""

    log: Log
    config: ReplaySettings
    row: Run
    ruleset: Ruleset
    member: str  # the process's name in the groups
    _: KW_ONLY
    metrics: Metrics
    stop: threading.Event
    full_speed: bool = False
    on_progress: Callable[[ReplayStatus], None] = lambda _: None
    on_message: Callable[[str], None] = lambda _: None
    monotonic: Callable[[], float] = time.monotonic
    tempo: Tempo = field(default_factory=Tempo)
    _loops: Sequence[StageLoop] = ()
    _ending: Ending | None = None
    _begins_anew: bool = False
    _control: Control | None = None
    _is_scored: bool = False  # SCORE runs the detector, as of the last look
    _looked_s: float = float("-inf")
    _pace: Pace = field(default_factory=Pace)
    _asks: bool = False  # at work on ASK
    _follows: bool = False  # all phases side by side
    _asked: bool = False  # for what SCORE was to be asked
    _scorers: Scorers | None = None  # by what SCORE said that it runs, then

    def __post_init__(self) -> None:
        self._live = None if self.full_speed else LiveLag(self.log, self.monotonic)
        self.metrics.touch("replay_yield_seconds", run=self.row.name)
        for phase in phases_of(self.row):
            self.metrics.touch("replay_records", run=self.row.name, phase=phase.name)

    def run(self) -> Ending:
        """Work until the run is done, or the process is asked to stop.

        Raises as the stages and `StageLoop.run` do; that is written to the run's row.
        """
        try:
            while self._ending is None:
                self._look()
                self._run_phases()
        except Exception as error:
            with suppress(StreamError, FarmwatchError):  # the log may be what failed
                record_error(self.log, self.row.name, error)
            raise
        try:
            self._report()
        except StreamError as error:  # a removed run has no topics
            _log.warning("replay_progress_failed", error=f"{type(error).__name__}: {error}"[:300])
        return self._ending

    def health(self) -> Health:
        """For /healthz and /readyz; from any thread."""
        found = [loop.health() for loop in self._loops]
        bad = next((health for health in found if not health.ok), None)
        if bad is not None:
            return bad
        return Health(True, bool(found) and all(health.ready for health in found), "ok" if found else "between phases")

    def _run_phases(self) -> None:
        """Each phase once up to its stops, then what is left to request; a run that follows goes on from there."""
        for phase in phases_of(self.row):
            self._run_phase(phase)
            if phase.name == MEASURE and self._ending is None:
                self.row = record_features_end(self.log, self.row.name)
        self._request_scores()
        if self._ending is not None:
            return
        if self.row.follows:
            self._follow()
            return
        self.row = finish(self.log, self.row.name)
        if self.row.state == RunStatus.DONE:
            self._ending = Ending.DONE

    def _run_phase(self, phase: Phase) -> None:
        if self._ending is not None:
            return
        stops = phase.stops(self.log, self.row)
        if not reached(self.log, phase.group, stops):
            if phase.name == MEASURE:
                refuse_other_epoch(self.config, self.row)  # more pages may be there than when it began
            self._run_loops([(phase, stops)])

    def _request_scores(self) -> None:
        """Request scores for unscored texts without a request, if SCORE runs the detector.

        The log alone says which texts these are, so a pass that was killed requests no text twice. Texts that lose
        their request meanwhile wait until the run is resumed.
        """
        control = Control(self.log)
        if self._ending is not None or not self._may_request(control):
            return
        self._asked, self._scorers = True, control.scorers
        phase = ask_phase(self.row)
        while texts := count_unrequested(self.log, self.row, lambda: not self._look()):
            if self._begin_pass(phase):
                self.on_message(f"{counted(texts, 'text')} without a score and without a request: requesting")
                self._asks = True
                self._run_phase(phase)
                self._asks = False
                return
            self.on_message("waits: another process of the run requests scores, or was killed while it did")
            self.stop.wait(self.tempo.control_s)
            while self._look() and self.log.members(phase.group):
                self.stop.wait(self.tempo.control_s)

    def _begin_pass(self, phase: Phase) -> bool:
        """Set the offsets of a request pass to the begin; False where the group has members."""
        topic = self.row.features
        kept, start = self.log.beginning(topic), phase.starts(self.log, self.row)[topic]
        try:
            self.log.reset(phase.group, topic, [max(pair) for pair in zip(kept, start, strict=True)])
        except LogUnavailable:
            raise
        except StreamError:
            return False
        return True

    def _may_request(self, control: Control) -> bool:
        """Whether SCORE runs the detector, and it has announced detectors since the last pass."""
        is_new = not self._asked or control.scorers != self._scorers
        return is_new and is_scored(control, self.config, self.row.detector)

    def _follow(self) -> None:
        """All phases side by side, without an end; until SCORE comes to run the detector."""
        self.on_message("caught up; it follows new records until it is cancelled, stopped or made live")
        self._follows = True
        self._run_loops([(phase, {}) for phase in phases_of(self.row)])
        self._follows = self._begins_anew = False

    def _run_loops(self, phases: Sequence[tuple[Phase, Stops]]) -> None:
        """Run the loops of these phases in threads, until all are at their stops, one fails, or the replay ends."""
        ends = threading.Event()
        self._loops = []
        try:
            for phase, stops in phases:
                self._loops = [*self._loops, self._loop(phase, stops)]
        except BaseException:
            ends.set()
            for loop in self._loops:
                loop.run(ends)  # leaves its group
            raise
        with ThreadPoolExecutor(len(self._loops)) as pool:
            running = [pool.submit(loop.run, ends) for loop in self._loops]
            try:
                look_s = self.tempo.look_s
                while not wait(running, look_s, FIRST_EXCEPTION).done and self._look() and not self._at_stops(phases):
                    pass
            finally:
                ends.set()
        for ran in running:
            ran.result()

    def _at_stops(self, phases: Sequence[tuple[Phase, Stops]]) -> bool:
        try:
            return all(stops and reached(self.log, phase.group, stops) for phase, stops in phases)
        except StreamError:  # a loop at work raises what stays
            return False

    def _loop(self, phase: Phase, stops: Stops) -> StageLoop:
        tempo, run, metrics = self.tempo, self.row.name, self.metrics
        stage = stage_of(phase, self.log, self.config, self.row, self.ruleset, metrics, lambda: self._is_scored)
        if phase.name != MEASURE:
            stage.max_records = tempo.records
        try:
            joined = self.log.join(
                phase.group, list(stage.inputs), member=self.member, store=stage.store, background=stage.background
            )
        except BaseException:
            stage.close()
            raise
        throttle = None
        if self._live is not None:
            on_wait = partial(metrics.count, "replay_yield_seconds", run=run)
            throttle = LiveFirstThrottle(
                self._live, on_wait=on_wait, monotonic=self.monotonic, most_owed_s=tempo.most_owed_s
            )
        member = BoundedMember(
            joined,
            self.log,
            phase.group,
            phase.topics,
            stops,
            throttle=throttle,
            on_gap=lambda gap: None if phase.name == ASK else record_gap(self.log, run, gap),  # JUDGE has read it
            on_advance=partial(metrics.count, "replay_records", run=run, phase=phase.name),
            monotonic=self.monotonic,
        )
        return StageLoop(stage, member, metrics=metrics, settings=loop_settings(self.config, tempo.records))

    def _look(self) -> bool:
        """Check for a stop, and now and then `control` and the lag of live; whether the work at hand goes on."""
        if self.stop.is_set():
            self._ending = self._ending or Ending.STOPPED
        now_s = self.monotonic()
        if now_s - self._looked_s >= self.tempo.control_s:
            self._looked_s = now_s
            try:
                control = self._control or Control(self.log)
                if control.refresh() or self._control is None:
                    self._is_scored = is_scored(control, self.config, self.row.detector)
                self._control = control
                self._look_at_row(control)
                if self._live is not None:
                    self._live.look(names_of_live(control))
                self._report()
            except Exception as error:  # noqa: BLE001 - the loops at work raise what stays
                _log.warning("replay_watch_failed", error=f"{type(error).__name__}: {error}"[:300])
        return self._ending is None and not self._begins_anew

    def _look_at_row(self, control: Control) -> None:
        row = control.runs.get(self.row.name)
        if row is None or row.state == RunStatus.REMOVED:
            self._ending = Ending.REMOVED
        elif row.state == RunStatus.CANCELLED:
            self._ending = Ending.CANCELLED
        elif control.alias.run == self.row.name:
            self._ending = Ending.LIVE
        elif self._follows and self._may_request(control):
            self._begins_anew = True  # the phases, up to the present ends, and ASK with them

    def _report(self) -> None:
        run = self.row
        progress = progress_of(self.log, run, asks=self._asks)
        rate, eta_s = self._pace.look(self.monotonic(), progress)
        for advance in progress.advances:
            self.metrics.set("replay_records_expected", advance.total, run=run.name, phase=advance.phase)
        if eta_s is not None:
            self.metrics.set("replay_eta_seconds", eta_s, run=run.name)
        waits_for = "" if self._live is None else self._live.text
        self.on_progress(ReplayStatus(progress, rate, eta_s, waits_for, self._follows))
