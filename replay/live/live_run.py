"""Which run is live, and by which ruleset and detector: as `control` has it, whatever the configuration says.

The first live stage writes the run `live` there, with the text of its ruleset. From then on a changed file or setting
causes a message at start, and takes a replay and a cutover (docs/explanation/cutover.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from filters.measure.epoch import feature_epoch
from filters.rules.ruleset import Ruleset, load_ruleset, shipped_rulesets
from replay.runs.configured import load_configured_ruleset, site_method_to_keep, tally_identity
from replay.runs.control_update import ControlUpdate, change, operator
from replay.runs.lookup import FIRST_RUN, ever_live, find_run
from replay.runs.run_rules import RunRules, live_now, method_name, rules_of
from replay.runs.scores import configured_detectors
from replay.settings import ReplaySettings
from scoring.errors import ScoringError
from scoring.sites.stored_method import same_method
from stream.log.contract import Clock, Log, StateReader, wall_ms
from stream.log.errors import UnknownTopic
from stream.processing.state import KeyedState
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.runs import LIVE, Run, RunStatus, shown_run
from stream.text.user_errors import FarmwatchError

ROUND_KEY = b"\0canary"  # of the state of a partition: when the last round began that was sent there


def live_or_begun(log: Log, config: ReplaySettings, *, by: str | None = None, clock: Clock = wall_ms) -> RunRules:
    """The live run; where no live stage has ever begun, it is written as the configuration has it.

    A process that cannot know the detector (its files are where SCORE runs) leaves it and the site method open, for
    one that can.
    Raises BadRuleset, Fenced, LogUnavailable.
    """
    control = Control(log)
    live = control.live
    if live is None or not (live.detector and live.site_method):
        first = None if live is not None else _as_configured(config, by or operator(), clock())
        detector = (live or FIRST_RUN).detector or _configured_detector(config)
        method = configured_method(config, detector)

        def decide(control: Control) -> ControlUpdate | None:
            now = control.live
            if now is None:
                assert first is not None
                return ControlUpdate(first.run, [(first.run.digest, first.text)])
            known = now.site_method or (method if now.detector in ("", detector) else "")
            filled = msgspec.structs.replace(now, detector=now.detector or detector, site_method=known)
            return ControlUpdate(filled) if filled != now else None

        change(log, decide)
        control.refresh()
        live = control.live
    assert live is not None
    return rules_of(control, live)


def first_rules(role: Role, log: Log, config: ReplaySettings) -> RunRules:
    """What a live role begins with: the live run, which JUDGE and TALLY begin where none was. Raises as they do."""
    if role is not Role.MEASURE:
        return live_or_begun(log, config)
    return live_now(Control(log)) or RunRules(FIRST_RUN)


def in_force(log: Log, config: ReplaySettings, run: str = "") -> RunRules:
    """The live run as a command that only looks sees it: as configured where no live stage has ever begun.

    Or another run, by its name. Raises NotFound for one that is not there, BadRuleset, LogUnavailable.
    """
    control = Control(log)
    if run:
        return rules_of(control, find_run(control, run))
    return live_now(control) or _as_configured(config)


def differences(live: RunRules, config: ReplaySettings, control: Control) -> Iterator[str]:
    """Settings that differ from the live run, and so are not in force: a sentence each, with the remedy.

    It names a run of `control` that matches the configuration, where there is one. Raises BadRuleset where a ruleset
    does not load.
    """
    run, ruleset, configured = live.run, live.ruleset, load_configured_ruleset(config)
    detector = _configured_detector(config) or run.detector
    epoch = feature_epoch(config.measure)
    method = configured_method(config, detector)
    asked = msgspec.structs.replace(run, digest=configured.digest, detector=detector, epoch=epoch, site_method=method)
    how = _how(asked, run, config, control)
    if ruleset.digest != run.digest:
        yield (
            f"the live run {run.shown} began with the ruleset {run.ruleset} {run.digest}; this version of farmwatch"
            f" reads it as {ruleset.digest}, and judges by that from now on. To judge all by one: {how}"
        )
    if configured.digest not in (run.digest, ruleset.digest):
        yield (
            f"judge.ruleset ({configured.name} {configured.digest}) differs from the live run {run.shown}"
            f" ({ruleset.name} {ruleset.digest}). The live run wins. To remove this notice: {_kept(ruleset)}. To change"
            f" over: {how}"
        )
    if detector != run.detector and run.detector:
        if run.detector in configured_detectors(config):
            goes_on = f"keeps {run.detector}"
        else:
            goes_on = f"has {run.detector}, which SCORE as configured no longer gives: new articles stay unscored in it"
        yield f"tally.detector is {detector}, and the live run {run.shown} {goes_on}. To change over: {how}"
    elif method and run.site_method and not same_method(method, run.site_method):
        yield (
            f"[tally] gives the site method {method_name(method)}, and the live run {run.shown} keeps"
            f" {method_name(run.site_method)}. To change over: {how}"
        )
    if epoch != run.epoch:
        yield (
            f"[measure] gives features of the epoch {epoch}, and the live run {run.shown} began with {run.epoch}: pages"
            f" are compared with those of the same epoch only. To measure all by one: {how}"
        )


def canaries_sent_before(log: Log, run: str, partition: int) -> int:
    """When the last round of canaries began that another run than `run` has sent to a partition, ms; -1 = none.

    On a broker this reads the changelogs of those runs, where there are any.
    """
    control = Control(log)
    last = -1
    for name in ever_live(control) - {run}:
        if (other := control.runs.get(name)) is None:
            continue
        with suppress(UnknownTopic), log.read_state(other.names().tally_store, partition) as state:
            last = max(last, sent_last(state))
    return last


def sent_last(state: StateReader | KeyedState) -> int:
    """When the last round of canaries began that was sent to a partition, ms, by its state; -1 = none."""
    value = state.get(ROUND_KEY)
    return -1 if value is None else int(value)


def _how(asked: Run, run: Run, config: ReplaySettings, control: Control) -> str:
    """The commands that make the configured run live in place of `run`."""
    if ready := _ready(asked, control):
        if ready == control.alias.before:
            return f"the run {shown_run(ready)}, which was live before, has it so: `farmwatch cutover --back`"
        name = shown_run(ready)
        return f"the run {name} has it so already: `farmwatch compare live {name}`, `farmwatch cutover {name}`"
    options = f" --detector {asked.detector}" if asked.detector != run.detector else ""
    if asked.digest != run.digest or not options:
        options = f" --ruleset {config.judge.ruleset}{options}"
    return f"`farmwatch replay{options} --name NEW`, `farmwatch compare live NEW`, `farmwatch cutover NEW`"


def _kept(ruleset: Ruleset) -> str:
    """What the configuration has to say so that it agrees with the live run."""
    if ruleset.name in shipped_rulesets() and load_ruleset(ruleset.name).digest == ruleset.digest:
        return f'set judge.ruleset = "{ruleset.name}"'
    return "set judge.ruleset to its file (`farmwatch runs show live --ruleset-text` prints it)"


def _ready(asked: Run, control: Control) -> str:
    """The newest run that is done, or was live, and matches; "" = none."""
    fit = [
        run
        for run in control.runs.values()
        if (run.digest, run.detector, run.epoch) == (asked.digest, asked.detector, asked.epoch)
        and (not (run.site_method and asked.site_method) or same_method(run.site_method, asked.site_method))
        and (run.state == RunStatus.DONE or (run.state == RunStatus.RUNNING and run.name in ever_live(control)))
        and run.name != control.alias.run
    ]
    return max(fit, key=lambda run: run.created_at).name if fit else ""


def _as_configured(config: ReplaySettings, by: str = "", at: int = 0) -> RunRules:
    """The run that a log begins with."""
    ruleset, detector = load_configured_ruleset(config), _configured_detector(config)
    run = Run(
        name=LIVE,
        ruleset=ruleset.name,
        digest=ruleset.digest,
        detector=detector,
        epoch=feature_epoch(config.measure),
        state=RunStatus.RUNNING,
        created_at=at,
        created_by=by,
        why="the first start of a live stage",
        site_method=configured_method(config, detector),
    )
    return RunRules(run, ruleset.source)


def _configured_detector(config: ReplaySettings) -> str:
    """Identity; "" where this machine does not have what it is made of."""
    try:
        return tally_identity(config)
    except (FarmwatchError, ScoringError):
        return ""


def configured_method(config: ReplaySettings, detector: str) -> str:
    """The site method for a detector, as text; "" where there is none, or it is not known."""
    if not detector:
        return ""
    try:
        return site_method_to_keep(config, detector)
    except (FarmwatchError, ScoringError):
        return ""
