"""Handover: when another run becomes live, a live role drains its loop and starts it again for that run.

The current batch is committed under the old run, so each batch has one ruleset. Process, endpoints and counters stay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import structlog

from filters.errors import BadRuleset
from filters.measure.epoch import feature_epoch
from replay.metrics import CUTOVERS, LIVE_RUN_INFO
from replay.runs.configured import refuse_perplexity, require_site_method
from replay.runs.run_rules import RunRules, live_now
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.runs import shown_run
from stream.text.user_errors import FarmwatchError, NotFound, RunRefused
from stream.text.wording import one_line

_log = structlog.get_logger()
_ERROR_CHARS = 400

Work = Callable[[RunRules, threading.Event], None]  # processes a run until the event is set
RunCheck = Callable[[Control, RunRules], None]  # raises LiveRunUnfit if the role cannot process the run


class LiveRunUnfit(FarmwatchError):
    """This version of farmwatch cannot process the live run. The operator goes back, or follows the message.

    At its start a role ends with this error; at a handover it stays with its present run.
    """


def require_live(control: Control, config: ReplaySettings, live: RunRules, roles: Collection[Role]) -> None:
    """Raises LiveRunUnfit if one of the roles cannot process the live run; the message names the way back."""
    epoch = feature_epoch(config.measure) if Role.MEASURE in roles else ""
    if epoch and live.run.epoch not in ("", epoch):
        raise LiveRunUnfit(
            f"this installation measures in the feature epoch {epoch}, the live run {live.run.shown} in"
            f" {live.run.epoch}",
            case="epoch",
            run=live.run,
        )
    try:
        if {Role.JUDGE, Role.SCORE, Role.TALLY}.intersection(roles):
            refuse_perplexity(live.ruleset, [live.run.detector, *config.score.detectors])
        if Role.TALLY in roles:
            require_site_method(config, live.run)
    except (BadRuleset, NotFound, RunRefused) as error:
        before = control.alias.before
        problem = one_line(f"the live run {live.run.shown} cannot be processed: {error}")
        raise LiveRunUnfit(problem, case="back" if before else "", before=shown_run(before)) from error


def follow(
    role: Role,
    log: Log,
    live: RunRules,
    metrics: Metrics,
    stop: threading.Event,
    work: Work,
    check_run: RunCheck,
    *,
    check_s: float,
    in_words: Callable[[Exception], str] = str,
) -> None:
    """Process the run `live`, and after each cutover the new live run, until `stop`.

    A thread checks every `check_s` for another live run. `in_words` words the errors that it logs.
    Raises what `check_run` raises for the first run, what `work` raises, and unexpected errors of the watching thread.
    """
    check_run(Control(log), live)
    while True:
        _show(live, metrics)
        watch = _Watch(role, log, live, metrics, stop, check_run, check_s, in_words)
        thread = threading.Thread(target=watch.run, name="alias", daemon=True)
        thread.start()
        try:
            work(live, watch.ended)
        finally:
            watch.ended.set()
            thread.join(2 * check_s)
        if watch.failed is not None:
            raise watch.failed
        if stop.is_set() or watch.next is None:
            return
        live = watch.next


@dataclass(eq=False)
class _Watch:
    """Watches, in its own thread, which run is live, and sets `ended` at a handover."""

    role: Role
    log: Log
    live: RunRules
    metrics: Metrics
    stop: threading.Event
    check_run: RunCheck
    check_s: float
    in_words: Callable[[Exception], str]
    next: RunRules | None = None  # the new live run
    ended: threading.Event = field(default_factory=threading.Event)
    failed: Exception | None = None
    _last_error: str = ""

    def run(self) -> None:
        control: Control | None = None
        try:
            while not self.stop.wait(self.check_s) and not self.ended.is_set() and self.next is None:
                try:
                    control = control or Control(self.log)
                    control.refresh()
                    self._check(control)
                except LiveRunUnfit as error:
                    self._report("cannot_go_over", error)
                except (StreamError, FarmwatchError) as error:
                    self._report("cannot_see_which_run_is_live", error)
        except Exception as error:  # noqa: BLE001 - `follow` raises it
            self.failed = error
        finally:
            self.ended.set()  # without this thread nothing else could stop the work

    def _check(self, control: Control) -> None:
        new, before = live_now(control), self.live
        if new is None or new.run.name == before.run.name:
            return
        self.check_run(control, new)  # stay with the present run if the new one cannot be processed
        self.live, self._last_error = new, ""
        self.metrics.count(CUTOVERS)
        _log.info(
            "switched",
            role=self.role.value,
            from_run=before.run.shown,
            to_run=new.run.shown,
            from_digest=before.run.digest,
            to_digest=new.run.digest,
        )
        if self.role is Role.MEASURE and new.names.features == before.names.features:
            _show(new, self.metrics)  # both runs judge its features
        else:
            self.next = new

    def _report(self, event: str, error: Exception) -> None:
        trouble = one_line(f"{type(error).__name__}: {self.in_words(error)}")[:_ERROR_CHARS]
        if trouble != self._last_error:
            self._last_error = trouble
            _log.error(event, goes_on_with=self.live.run.shown, error=trouble)


def _show(live: RunRules, metrics: Metrics) -> None:
    metrics.clear(LIVE_RUN_INFO)
    metrics.set(LIVE_RUN_INFO, 1, run=live.run.name, epoch=live.run.epoch)
