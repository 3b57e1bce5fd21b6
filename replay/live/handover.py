"""What a live role does when another run becomes live: it ends its loop, drained, and begins again as that run.

The batch under way is committed under the run that it began with, so each batch is of one ruleset. Process, endpoints
and counters stay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import structlog

from filters.errors import BadRuleset
from replay.runs.configured import require_site_method
from replay.runs.run_rules import RunRules, live_now
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.text.user_errors import FarmwatchError, NotFound, RunRefused
from stream.text.wording import one_line

LOOK_S = 1.0  # between two looks at which run is live

_log = structlog.get_logger()

Work = Callable[[RunRules, threading.Event], None]  # carry on a run until the event is set
Fit = Callable[[Control, RunRules], None]  # raises LiveRunUnfit where the role cannot carry it on


class LiveRunUnfit(FarmwatchError):
    """This farmwatch cannot carry the live run on. The operator goes back, or does what the message says.

    A role that meets it at its start ends with it; one that goes over to the run stays with the run that it has.
    """


def require_live(control: Control, config: ReplaySettings, live: RunRules, roles: Collection[Role]) -> None:
    """Raises LiveRunUnfit where one of the roles cannot carry the live run on; it names the way back."""
    try:
        if Role.JUDGE in roles or Role.TALLY in roles:
            _ = live.ruleset
        if Role.TALLY in roles:
            require_site_method(config, live.run)
    except (BadRuleset, NotFound, RunRefused) as error:
        before = control.alias.before
        back = f"; `farmwatch cutover --back` goes back to the run {before}" if before else ""
        raise LiveRunUnfit(one_line(f"the live run {live.run.shown} cannot be carried on: {error}{back}")) from error


def follow(role: Role, log: Log, live: RunRules, metrics: Metrics, stop: threading.Event, work: Work, fit: Fit) -> None:
    """Carry on the run `live`, and then each run that is live, until `stop`.

    Raises what `fit` raises of the first one, what `work` raises, and what the look at which run is live did not
    expect.
    """
    fit(Control(log), live)
    while True:
        _show(live, metrics)
        watch = _Watch(role, log, live, metrics, stop, fit)
        thread = threading.Thread(target=watch.run, name="alias", daemon=True)
        thread.start()
        try:
            work(live, watch.ended)
        finally:
            watch.ended.set()
            thread.join(2 * LOOK_S)
        if watch.failed is not None:
            raise watch.failed
        if stop.is_set() or watch.next is None:
            return
        live = watch.next


@dataclass(eq=False)
class _Watch:
    """Looks which run is live, in a thread of its own, and sets `ended` when the work at hand is to end."""

    role: Role
    log: Log
    live: RunRules
    metrics: Metrics
    stop: threading.Event
    fit: Fit
    next: RunRules | None = None  # the run to carry on instead
    ended: threading.Event = field(default_factory=threading.Event)
    failed: Exception | None = None
    _trouble: str = ""

    def run(self) -> None:
        control: Control | None = None
        try:
            while not self.stop.wait(LOOK_S) and not self.ended.is_set() and self.next is None:
                try:
                    control = control or Control(self.log)
                    control.refresh()
                    self._look(control)
                except LiveRunUnfit as error:
                    self._report("cannot_go_over", error)
                except (StreamError, FarmwatchError) as error:
                    self._report("cannot_see_which_run_is_live", error)
        except Exception as error:  # noqa: BLE001 - the thread that works raises it
            self.failed = error
        finally:
            self.ended.set()  # without this thread nobody could stop the work

    def _look(self, control: Control) -> None:
        found, before = live_now(control), self.live
        if found is None or found.run.name == before.run.name:
            return
        self.fit(control, found)  # a run that cannot be carried on must not end the work for one that can
        self.live, self._trouble = found, ""
        self.metrics.count("cutovers")
        _log.info(
            "switched",
            role=self.role.value,
            from_run=before.run.name,
            to_run=found.run.name,
            from_digest=before.run.digest,
            to_digest=found.run.digest,
        )
        if self.role is Role.MEASURE and found.names.features == before.names.features:
            _show(found, self.metrics)  # it measures for the one as for the other
        else:
            self.next = found

    def _report(self, event: str, error: Exception) -> None:
        trouble = one_line(f"{type(error).__name__}: {error}")[:300]
        if trouble != self._trouble:
            self._trouble = trouble
            _log.error(event, goes_on_with=self.live.run.name, error=trouble)


def _show(live: RunRules, metrics: Metrics) -> None:
    metrics.clear("live_run_info")
    metrics.set("live_run_info", 1, run=live.run.name)
