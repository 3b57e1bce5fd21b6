"""Carries a run out: phase after phase as ordinary stage loops, watched beside by one thread.

All that must outlast the process stands in the log: offsets of the run's groups, their state, the row in `control`. So
a process that was killed is followed by one that does the same again, and several at once share the partitions.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import structlog

from filters.rules.ruleset import Ruleset
from replay.engine.bounded_member import BoundedMember
from replay.engine.fitness import refuse_other_epoch
from replay.engine.lifecycle import finish, measured, note_error, note_gap
from replay.engine.request_pass import PassBegin, begin_pass, is_held, texts_to_ask
from replay.engine.stages import loop_settings, stage_of
from replay.engine.throttle import LiveFirstThrottle, LiveLag
from replay.runs.lookup import names_of_live
from replay.runs.offsets import NO_STOPS, Stops, reached
from replay.runs.phases import ASK, MEASURE, Phase, RunProgress, ask_phase, phases_of, progress_of
from replay.runs.scorers import is_scored
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.processing.health import Health
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.control import Control, Scorers
from stream.schema.runs import Gap, Run, RunStatus
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted

_log = structlog.get_logger()
_LOOK_S = 0.2  # between looks of the watching thread: whether it is told to stop
_CONTROL_S = 1.0  # and at `control`, the lag of live and the progress
_RATE_S = 30.0  # time over which rate and ETA are taken


class Ending(enum.Enum):
    """Why a replay ended."""

    DONE = "done"
    STOPPED = "stopped"  # by a signal; it can be gone on with
    CANCELLED = "cancelled"
    LIVE = "live"  # the run became live: the live stages carry it on
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a replay stands, as its view shows it."""

    progress: RunProgress
    rate: float | None  # records of the phase a second; None = not known yet
    eta_s: float | None  # of the whole run
    waits_for: str  # the live groups that it makes way for; "" = nobody
    follows: bool = False  # it has caught up, and goes on with what comes


class Pace:
    """Rate and ETA from looks at the progress."""

    def __init__(self) -> None:
        """Nothing is known before two looks."""
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


class Replay:
    """One process at work on one run."""

    def __init__(
        self,
        log: Log,
        config: ReplaySettings,
        run: Run,
        ruleset: Ruleset,
        member: str,
        *,
        metrics: Metrics,
        stop: threading.Event,
        full_speed: bool = False,
        told: Callable[[Standing], None] = lambda _: None,
        said: Callable[[str], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`member` is this process's name in the groups; `told` hears how it stands, `said` what happens in words."""
        self._log = log
        self._config = config
        self._run = run
        self._ruleset = ruleset
        self._member = member
        self._metrics = metrics
        self._stop = stop
        self._told = told
        self._said = said
        self._monotonic = monotonic
        self._live = None if full_speed else LiveLag(log, monotonic)
        self._loops: Sequence[StageLoop] = ()
        self._ending: Ending | None = None
        self._phase_ends = threading.Event()
        self._pace = Pace()
        self._asks = False  # at work on ASK
        self._follows = False  # all phases side by side
        self._asked = False  # for what SCORE was to be asked
        self._scorers: Scorers | None = None  # by what SCORE said that it runs, then
        metrics.touch("replay_yield_seconds", run=run.name)
        for phase in phases_of(run):
            metrics.touch("replay_records", run=run.name, phase=phase.name)

    def carry_out(self) -> Ending:
        """Work until the run is done, or the process is told to end.

        Raises as the stages and `StageLoop.run` do; that is written to the run's row.
        """
        try:
            return self._carry_on()
        except Exception as error:
            with suppress(StreamError, FarmwatchError):  # the log may be what failed
                note_error(self._log, self._run.name, error)
            raise

    def _carry_on(self) -> Ending:
        with self._watched():
            while self._ending is None:
                for phase in phases_of(self._run):
                    if self._ending is None:
                        self._carry_out(phase)
                    if self._ending is None and phase.name == MEASURE:
                        self._run = measured(self._log, self._run.name)
                if self._ending is None:
                    self._ask()
                if self._ending is None and not self._run.follows:
                    self._run = finish(self._log, self._run.name)
                    if self._run.state == RunStatus.DONE:
                        self._ending = Ending.DONE
                elif self._ending is None:
                    self._follow()
        try:
            self._tell()
        except StreamError as error:  # of a removed run the topics are gone; what it came to stands in the log
            _log.warning("replay_untold", error=f"{type(error).__name__}: {error}"[:300])
        return self._ending or Ending.STOPPED

    def health(self) -> Health:
        """For /healthz and /readyz; from any thread."""
        found = [loop.health() for loop in self._loops]
        bad = next((health for health in found if not health.ok), None)
        if bad is not None:
            return bad
        return Health(True, bool(found) and all(health.ready for health in found), "ok" if found else "between phases")

    def _carry_out(self, phase: Phase) -> None:
        stops = phase.stops(self._log, self._run)
        if reached(self._log, phase.group, stops):
            return
        if phase.name == MEASURE:
            refuse_other_epoch(self._config, self._run)  # more may be to measure than when it was begun
        self._phase_ends = threading.Event()
        if self._ending is None:
            self._loops = [self._loop(phase, stops, self._phase_ends)]
            self._loops[0].run(self._phase_ends)

    def _ask(self) -> None:
        """Ask for the texts without a score that nobody has asked for, if SCORE runs the detector by now.

        In one pass, and before it in the rest of one that was broken off: what these do not find is not there to be
        asked for, or became unasked meanwhile, which is left to whoever goes on with the run.
        """
        control = Control(self._log)
        if not self._may_ask(control):
            return
        self._asked, self._scorers = True, control.scorers
        goes_on = True
        while self._ending is None:
            texts = texts_to_ask(self._log, self._run, lambda: self._ending is not None)
            if not texts:
                return
            begun = begin_pass(self._log, self._run, goes_on=goes_on)
            if begun is PassBegin.HELD:
                self._wait_for_others()
                continue
            self._make_pass(texts, begun)
            if begun is PassBegin.START or not goes_on:
                return
            goes_on = False

    def _may_ask(self, control: Control) -> bool:
        """Whether SCORE runs the detector, and nothing was asked for since it said what it runs."""
        is_new = not self._asked or control.scorers != self._scorers
        return is_new and is_scored(control, self._config, self._run.detector)

    def _wait_for_others(self) -> None:
        """Until who has nothing to do there has left the pass's group; one that was killed does as its lease ends."""
        self._said("waits for another process of the run, which is ending or was killed, to request texts")
        while self._ending is None:
            self._stop.wait(_CONTROL_S)
            if not is_held(self._log, self._run):
                return

    def _make_pass(self, texts: int, begun: PassBegin) -> None:
        self._said(f"{counted(texts, 'text')} without a score that nobody has asked for: to be requested")
        before = self._requested()
        self._asks = True
        try:
            self._carry_out(ask_phase(self._run))
        finally:
            self._asks = False
        where = " in the rest of a pass that was begun before" if begun is PassBegin.MIDST else ""
        self._said(f"{counted(self._requested() - before, 'text')} requested{where}")

    def _requested(self) -> int:
        """Texts that this process has asked for in passes."""
        labels = {"run": self._run.name, "ruleset": self._ruleset.name, "stage": ASK, "result": "asked"}
        return int(self._metrics.registry.get_sample_value("farmwatch_stage_records_total", labels) or 0)

    def _follow(self) -> None:
        """All phases side by side, without an end; until SCORE comes to run the detector, see `_look_at_row`."""
        self._said("caught up; it follows until it is cancelled, stopped or put live")
        self._phase_ends = ends = threading.Event()
        loops: list[StageLoop] = []
        try:
            for phase in phases_of(self._run):
                loops.append(self._loop(phase, NO_STOPS, ends))
        except BaseException:
            ends.set()
            for loop in loops:
                loop.run(ends)  # leaves its group
            raise
        self._loops = loops
        self._follows = True
        failed: list[BaseException] = []

        def work(loop: StageLoop) -> None:
            try:
                loop.run(ends)
            except BaseException as error:  # noqa: BLE001 - told to the thread that waits, which raises it
                failed.append(error)
                ends.set()

        threads = [threading.Thread(target=work, args=(loop,)) for loop in loops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._follows = False
        if failed:
            raise failed[0]

    def _loop(self, phase: Phase, stops: Stops, ends: threading.Event) -> StageLoop:
        stage = stage_of(phase, self._log, self._config, self._run, self._ruleset, self._metrics)
        try:
            joined = self._log.join(
                phase.group, list(stage.inputs), member=self._member, store=stage.store, background=stage.background
            )
        except BaseException:
            stage.close()
            raise
        member = BoundedMember(
            joined,
            self._log,
            phase.group,
            phase.topics,
            stops,
            gate=None
            if self._live is None
            else LiveFirstThrottle(self._live, waited=self._waited, monotonic=self._monotonic),
            at_end=ends.set,
            lost=self._note_gap if phase.name != ASK else lambda _: None,  # JUDGE has read all that ASK reads
            advanced=lambda records: self._metrics.count(
                "replay_records", records, run=self._run.name, phase=phase.name
            ),
            monotonic=self._monotonic,
        )
        return StageLoop(stage, member, metrics=self._metrics, settings=loop_settings(self._config))

    def _note_gap(self, gap: Gap) -> None:
        note_gap(self._log, self._run.name, gap)

    def _waited(self, wait_s: float) -> None:
        self._metrics.count("replay_yield_seconds", wait_s, run=self._run.name)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(ended,), name="replay-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _watch(self, ended: threading.Event) -> None:
        """Beside the loops: is it told to end, is live behind, how far is it?"""
        control: Control | None = None
        looked_s = float("-inf")
        while not ended.wait(_LOOK_S):
            if self._stop.is_set():
                self._end(Ending.STOPPED)
            now_s = self._monotonic()
            if now_s - looked_s < _CONTROL_S:
                continue
            looked_s = now_s
            try:
                if control is None:
                    control = Control(self._log)
                control.refresh()
                self._look_at_row(control)
                if self._live is not None:
                    self._live.look(names_of_live(control))
                self._tell()
            except Exception as error:  # noqa: BLE001 - this thread is who hears of a stop: it must not die of a look
                _log.warning("replay_watch_failed", error=f"{type(error).__name__}: {error}"[:300])

    def _look_at_row(self, control: Control) -> None:
        row = control.runs.get(self._run.name)
        if row is None or row.state == RunStatus.REMOVED:
            self._end(Ending.REMOVED)
        elif row.state == RunStatus.CANCELLED:
            self._end(Ending.CANCELLED)
        elif control.alias.run == self._run.name:
            self._end(Ending.LIVE)
        elif self._follows and self._may_ask(control):
            self._phase_ends.set()  # the phases begin anew, up to the present ends, and ASK with them

    def _end(self, ending: Ending) -> None:
        if self._ending is None:
            self._ending = ending
        self._phase_ends.set()

    def _tell(self) -> None:
        run = self._run
        progress = progress_of(self._log, run, asks=self._asks)
        rate, eta_s = self._pace.look(self._monotonic(), progress)
        for advance in progress.advances:
            self._metrics.set("replay_records_expected", advance.total, run=run.name, phase=advance.phase)
        if eta_s is not None:
            self._metrics.set("replay_eta_seconds", eta_s, run=run.name)
        waits_for = "" if self._live is None else self._live.text
        self._told(Standing(progress, rate, eta_s, waits_for, self._follows))
