"""Runs a replay: its phases one after another as ordinary stage loops, in threads that the main thread watches.

The log keeps all durable state: offsets and state of the run's groups, and the row in `control`. So a new process can
resume the run of a killed one, and several processes can share its partitions.
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
from replay.engine.throttle import LiveFirstThrottle, LiveLag
from replay.metrics import REPLAY_ETA_SECONDS, REPLAY_RECORDS, REPLAY_RECORDS_EXPECTED, REPLAY_YIELD_SECONDS
from replay.rows.scores import count_unrequested, is_scored, known_texts, unrequested_texts
from replay.runs.configured import site_method_of
from replay.runs.lookup import names_of_live
from replay.runs.phases import JUDGE, MEASURE, REQUESTS, Phase, RunProgress, phases_of, progress_of, request_phase
from replay.runs.topology import Stops, is_at_stops
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.log.errors import LogUnavailable, StreamError
from stream.processing.health import Health
from stream.processing.loop import MAX_RECORDS, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.control import Control, Scorers
from stream.schema.runs import Run, RunStatus
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted

_log = structlog.get_logger()
_RATE_S = 30.0  # averaging time of rate and ETA
RECORDS = 4000  # in a batch of JUDGE or TALLY: a commit costs a few ms, whatever its size
BATCH_BYTES = 24 * 1024 * 1024


@dataclass(slots=True)
class Tempo:
    """How often a replay checks its environment, and how much it processes at a time."""

    check_s: float = 0.2  # between checks for a stop and for the end of a phase
    control_s: float = 1.0  # between checks of `control`, the detectors of SCORE, the lag of live and the progress
    records: int = RECORDS  # in a batch of JUDGE or TALLY
    max_wait_s: float = 10.0  # longest single wait for live


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
    """Rate and ETA from samples of the progress."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, str, int, float]] = []

    def update(self, now_s: float, progress: RunProgress) -> tuple[float | None, float | None]:
        """(records of the phase per second, seconds left) over the last half minute; None = unknown."""
        current = progress.current
        self._samples.append((now_s, current.phase, current.done, progress.effort))
        self._samples = [look for look in self._samples if now_s - look[0] <= _RATE_S]
        first_s, _, _, effort = self._samples[0]
        of_phase = [look for look in self._samples if look[1] == current.phase]
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
    _restarts_phases: bool = False
    _control: Control | None = None
    _is_scored: bool = False  # SCORE runs the detector, as of the last check
    _checked_s: float = float("-inf")
    _pace: Pace = field(default_factory=Pace)
    _is_requesting: bool = False  # the request pass is running
    _follows: bool = False  # all phases at once
    _has_requested: bool = False  # the request pass has run
    _requested_of: Scorers | None = None  # the detectors of SCORE at that time

    def __post_init__(self) -> None:
        self._live = None if self.full_speed else LiveLag(self.log, self.monotonic)
        self.metrics.touch(REPLAY_YIELD_SECONDS, run=self.row.name)
        for phase in phases_of(self.row):
            self.metrics.touch(REPLAY_RECORDS, run=self.row.name, phase=phase.name)

    def run(self) -> Ending:
        """Work until it is done or `stop` is set. Raises as the stages and the loop; the row has the error too."""
        try:
            while self._ending is None:
                self._check()
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
        states = [loop.health() for loop in self._loops]
        if not states:
            return Health(True, False, "between phases")
        bad = next((health for health in states if not health.ok), None)
        return bad or Health(True, all(health.ready for health in states), "ok")

    def _run_phases(self) -> None:
        """Run each phase to its stops, then the request pass. A run without an end then follows new records."""
        for phase in phases_of(self.row):
            self._run_phase(phase)
            if phase.name == MEASURE and self._ending is None:
                self.row = record_features_end(self.log, self.row.name)
        self._request_scores()
        if self._ending is not None:
            return
        if self.row.follows:
            self.on_message("caught up; follows new records until it is cancelled, stopped or made live")
            self._follows = True
            self._run_loops([(phase, {}) for phase in phases_of(self.row)])
            self._follows = self._restarts_phases = False
            return
        self.row = finish(self.log, self.row.name)
        if self.row.state == RunStatus.DONE:
            self._ending = Ending.DONE

    def _run_phase(self, phase: Phase) -> None:
        if self._ending is not None:
            return
        stops = phase.stops(self.log, self.row)
        if not is_at_stops(self.log, phase.group, stops):
            if phase.name == MEASURE:
                refuse_other_epoch(self.config, self.row)  # there may be more pages than at its begin
            self._run_loops([(phase, stops)])

    def _request_scores(self) -> None:
        """Request scores for unscored texts without a request, by the log: an interrupted pass requests none twice."""
        control = Control(self.log)
        if self._ending is not None or not self._may_request(control):
            return
        self._has_requested, self._requested_of = True, control.scorers
        phase = request_phase(self.row)
        while texts := count_unrequested(self.log, self.row, lambda: not self._check()):
            if self._begin_pass(phase):
                self.on_message(f"{counted(texts, 'text')} without a score and without a request: requesting scores")
                self._is_requesting = True
                self._run_phase(phase)
                self._is_requesting = False
                return
            self.on_message("waiting: another process of the run requests scores, or was killed while doing so")
            self.stop.wait(self.tempo.control_s)
            while self._check() and self.log.members(phase.group):
                self.stop.wait(self.tempo.control_s)

    def _begin_pass(self, phase: Phase) -> bool:
        """Reset the offsets for a request pass; False if the group has members."""
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
        is_new = not self._has_requested or control.scorers != self._requested_of
        return is_new and is_scored(control, self.config, self.row.detector)

    def _run_loops(self, phases: Sequence[tuple[Phase, Stops]]) -> None:
        """Run the loops of these phases in threads until all are at their stops, one fails, or the replay ends."""
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
                while not wait(running, self.tempo.check_s, FIRST_EXCEPTION).done and self._check():
                    with suppress(StreamError):  # a loop raises a lasting error
                        if all(stops and is_at_stops(self.log, phase.group, stops) for phase, stops in phases):
                            break
            finally:
                ends.set()
        for ran in running:
            ran.result()

    def stage_of(self, phase: Phase) -> Stage:
        """The stage of a phase. Its `close` ends what it started."""
        row, names = self.row, self.row.names()
        if phase.name == MEASURE:
            from filters.stages.measure import MeasureStage

            return MeasureStage(self.config.measure, run=row.name, names=names, replays=True, metrics=self.metrics)
        if phase.name == JUDGE:
            from filters.stages.judge import JudgeStage

            return JudgeStage(
                self.ruleset,
                run=row.name,
                names=names,
                known=known_texts(self.log, row.detector),
                replays=True,
                detector=row.detector,
                may_request=lambda: self._is_scored,
            )
        if phase.name == REQUESTS:
            from filters.stages.judge import ScoreRequestStage

            unrequested = unrequested_texts(self.log, row)
            return ScoreRequestStage(self.ruleset, unrequested, run=row.name, names=names, detector=row.detector)
        from scoring.stages.tally import TallyStage

        method = site_method_of(self.config, row)
        return TallyStage(row.detector, self.config.tally, run=row.name, method=method, names=names, decides=False)

    def _loop(self, phase: Phase, stops: Stops) -> StageLoop:
        tempo, run, metrics = self.tempo, self.row.name, self.metrics
        stage = self.stage_of(phase)
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
            on_wait = partial(metrics.count, REPLAY_YIELD_SECONDS, run=run)
            throttle = LiveFirstThrottle(
                self._live, on_wait=on_wait, monotonic=self.monotonic, max_wait_s=tempo.max_wait_s
            )
        member = BoundedMember(
            joined,
            self.log,
            phase.group,
            phase.topics,
            stops,
            throttle=throttle,
            on_gap=lambda gap: None if phase.name == REQUESTS else record_gap(self.log, run, gap),  # JUDGE has read it
            on_advance=partial(metrics.count, REPLAY_RECORDS, run=run, phase=phase.name),
            monotonic=self.monotonic,
        )
        return StageLoop(
            stage,
            member,
            metrics=metrics,
            settings=self.config.loop,
            max_records=max(MAX_RECORDS, tempo.records),
            max_bytes=BATCH_BYTES,
        )

    def _check(self) -> bool:
        """Check for a stop and, less often, `control` and the lag of live. Returns whether to continue."""
        if self.stop.is_set():
            self._ending = self._ending or Ending.STOPPED
        now_s = self.monotonic()
        if now_s - self._checked_s >= self.tempo.control_s:
            self._checked_s = now_s
            try:
                control = self._control or Control(self.log)
                if control.refresh() or self._control is None:
                    self._is_scored = is_scored(control, self.config, self.row.detector)
                self._control = control
                row = control.runs.get(self.row.name)
                if row is None or row.state == RunStatus.REMOVED:
                    self._ending = Ending.REMOVED
                elif row.state == RunStatus.CANCELLED:
                    self._ending = Ending.CANCELLED
                elif control.alias.run == self.row.name:
                    self._ending = Ending.LIVE
                elif self._follows and self._may_request(control):
                    self._restarts_phases = True  # the phases, up to the present ends, and the request pass
                if self._live is not None:
                    self._live.refresh(names_of_live(control))
                self._report()
            except Exception as error:  # noqa: BLE001 - a lasting error is raised by a loop
                _log.warning("replay_watch_failed", error=f"{type(error).__name__}: {error}"[:300])
        return self._ending is None and not self._restarts_phases

    def _report(self) -> None:
        run = self.row
        progress = progress_of(self.log, run, requesting=self._is_requesting)
        rate, eta_s = self._pace.update(self.monotonic(), progress)
        for advance in progress.phases:
            self.metrics.set(REPLAY_RECORDS_EXPECTED, advance.total, run=run.name, phase=advance.phase)
        if eta_s is not None:
            self.metrics.set(REPLAY_ETA_SECONDS, eta_s, run=run.name)
        waits_for = "" if self._live is None else self._live.text
        self.on_progress(ReplayStatus(progress, rate, eta_s, waits_for, self._follows))
