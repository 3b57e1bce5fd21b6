"""The live run with its ruleset and detector, as stored in `control`.

The first live stage writes the run `live` there, with the text of its ruleset. After that, a changed ruleset file or
setting causes a message at start; it takes effect by a replay and a cutover (docs/explanation/cutover.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from filters.measure.epoch import epoch_settings, feature_epoch
from filters.rules.ruleset import Ruleset, load_ruleset, shipped_rulesets
from replay.rows.scores import configured_detectors
from replay.runs.configured import as_flags, load_configured_ruleset, site_method_to_keep, tally_identity
from replay.runs.control_update import ControlUpdate, operator, update_control
from replay.runs.lookup import FIRST_RUN, ever_live, find_run
from replay.runs.run_rules import RunRules, live_now, method_name, rules_of
from replay.settings import ReplaySettings
from scoring.errors import ScoringError
from scoring.sites.registry import same_method
from stream.log.contract import Clock, Log, StateReader, wall_ms
from stream.log.errors import UnknownTopic
from stream.processing.state import KeyedState
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.runs import LAYOUT, LIVE, Run, RunStatus, shown_run
from stream.text.user_errors import FarmwatchError

ROUND_KEY = b"\0canary"  # key in the state of a partition: when its last round of canaries began


def ensure_live_run(log: Log, config: ReplaySettings, *, by: str | None = None, clock: Clock = wall_ms) -> RunRules:
    """The live run. Before the first live stage, it is written from the configuration.

    If this process does not know the detector (its files may be only where SCORE runs), it leaves the detector and the
    site method empty; a process that knows them fills them in. Raises BadRuleset, Fenced, LogUnavailable.
    """
    control = Control(log)
    live = control.live
    if live is None or not (live.detector and live.site_method) or live.v < LAYOUT:
        first = None if live is not None else _as_configured(config, by or operator(), clock())
        detector = (live or FIRST_RUN).detector or _configured_detector(config)
        method = configured_method(config, detector)

        def make_update(control: Control) -> ControlUpdate | None:
            now = control.live
            if now is None:
                assert first is not None
                return ControlUpdate(first.run, [(first.run.digest, first.text)])
            known = now.site_method or (method if now.detector in ("", detector) else "")
            filled = msgspec.structs.replace(now, detector=now.detector or detector, site_method=known, v=LAYOUT)
            return ControlUpdate(filled) if filled != now else None

        update_control(log, make_update)
        control.refresh()
        live = control.live
    assert live is not None
    return rules_of(control, live)


def first_rules(role: Role, log: Log, config: ReplaySettings) -> RunRules:
    """The live run at the start of a role. JUDGE and TALLY create it if there is none. Raises as `ensure_live_run`."""
    if role is not Role.MEASURE:
        return ensure_live_run(log, config)
    return live_now(Control(log)) or RunRules(FIRST_RUN)


def find_rules(log: Log, config: ReplaySettings, run: str = "") -> RunRules:
    """The live run, or the run with this name, for commands that only read; without a live run, the configured one.

    Raises NotFound for an unknown run, BadRuleset, LogUnavailable.
    """
    control = Control(log)
    if run:
        return rules_of(control, find_run(control, run))
    return live_now(control) or _as_configured(config)


def differences(live: RunRules, config: ReplaySettings, control: Control) -> Iterator[str]:
    """Differences between configuration and live run; one sentence each, with the remedy.

    The remedy names a finished run of `control` that matches the configuration, if there is one. Raises BadRuleset if a
    ruleset does not load.
    """
    run, ruleset, configured = live.run, live.ruleset, load_configured_ruleset(config)
    detector = _configured_detector(config) or run.detector
    epoch = feature_epoch(config.measure)
    method = configured_method(config, detector)
    wanted = msgspec.structs.replace(run, digest=configured.digest, detector=detector, epoch=epoch, site_method=method)
    commands = _cutover_commands(wanted, run, config, control)
    if ruleset.digest != run.digest:
        yield (
            f"the live run {run.shown} began with the ruleset {run.ruleset} {run.digest}; this version of farmwatch"
            f" reads it as {ruleset.digest} and judges by that from now on. To judge all by one ruleset: {commands}"
        )
    if configured.digest not in (run.digest, ruleset.digest):
        yield (
            f"judge.ruleset ({configured.name} {configured.digest}) differs from the live run {run.shown}"
            f" ({ruleset.name} {ruleset.digest}). The live run wins. To remove this notice:"
            f" {_matching_settings(ruleset)}. To change over: {commands}"
        )
    if detector != run.detector and run.detector:
        if run.detector in configured_detectors(config):
            keeps = f"keeps {run.detector}"
        else:
            keeps = f"has {run.detector}, which the configured SCORE does not run: its new articles stay unscored"
        yield f"tally.detector is {detector}, and the live run {run.shown} {keeps}. To change over: {commands}"
    elif method and run.site_method and not same_method(method, run.site_method):
        yield (
            f"[tally] gives the site method {method_name(method)}, and the live run {run.shown} keeps"
            f" {method_name(run.site_method)}. To change over: {commands}"
        )
    if epoch != run.epoch:
        yield (
            f"[measure] has the feature epoch {epoch}, and the live run {run.shown} began with {run.epoch}: pages"
            f" are compared only within an epoch. Start `farmwatch up` with the settings of the run,"
            f" {as_flags(run.measured_by)}, and its versions. Or, to measure all pages in one: {commands}"
        )


def canaries_sent_before(log: Log, run: str, partition: int) -> int:
    """When runs other than `run` last began a round of canaries for a partition, ms; -1 = never.

    On a broker this reads the changelogs of those runs.
    """
    control = Control(log)
    last = -1
    for name in ever_live(control) - {run}:
        if (other := control.runs.get(name)) is None:
            continue
        with suppress(UnknownTopic), log.read_state(other.names().tally_store, partition) as state:
            last = max(last, last_canary_round(state))
    return last


def last_canary_round(state: StateReader | KeyedState) -> int:
    """When the last round of canaries began, by the state of a partition, ms; -1 = never."""
    value = state.get(ROUND_KEY)
    return -1 if value is None else int(value)


def _cutover_commands(wanted: Run, run: Run, config: ReplaySettings, control: Control) -> str:
    """The commands that make the configured run live instead of `run`."""
    if ready := _finished_run(wanted, control):
        if ready == control.alias.before:
            return f"the run {shown_run(ready)}, which was live before, matches: `farmwatch cutover --back`"
        name = shown_run(ready)
        return f"the run {name} matches already: `farmwatch compare live {name}`, `farmwatch cutover {name}`"
    options = f" --detector {wanted.detector}" if wanted.detector != run.detector else ""
    if wanted.digest != run.digest or not options:
        options = f" --ruleset {config.judge.ruleset}{options}"
    return f"`farmwatch replay{options} --name NEW`, `farmwatch compare live NEW`, `farmwatch cutover NEW`"


def _matching_settings(ruleset: Ruleset) -> str:
    """The setting that matches the ruleset of the live run."""
    if ruleset.name in shipped_rulesets() and load_ruleset(ruleset.name).digest == ruleset.digest:
        return f'set judge.ruleset = "{ruleset.name}"'
    return "set judge.ruleset to its file (`farmwatch runs show live --ruleset-text` prints it)"


def _finished_run(wanted: Run, control: Control) -> str:
    """The newest run that matches and is done or was live; "" = none."""
    matching = [
        run
        for run in control.runs.values()
        if (run.digest, run.detector, run.epoch) == (wanted.digest, wanted.detector, wanted.epoch)
        and (not (run.site_method and wanted.site_method) or same_method(run.site_method, wanted.site_method))
        and (run.state == RunStatus.DONE or (run.state == RunStatus.RUNNING and run.name in ever_live(control)))
        and run.name != control.alias.run
    ]
    return max(matching, key=lambda run: run.created_at).name if matching else ""


def _as_configured(config: ReplaySettings, by: str = "", at: int = 0) -> RunRules:
    """The first run of a log, from the configuration."""
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
        measured_by=epoch_settings(config.measure),
    )
    return RunRules(run, ruleset.stored)


def _configured_detector(config: ReplaySettings) -> str:
    """Identity of the configured detector; "" if its files are not on this machine."""
    try:
        return tally_identity(config)
    except (FarmwatchError, ScoringError):
        return ""


def configured_method(config: ReplaySettings, detector: str) -> str:
    """The configured site method for a detector, as text; "" if there is none or it is unknown."""
    if not detector:
        return ""
    try:
        return site_method_to_keep(config, detector)
    except (FarmwatchError, ScoringError):
        return ""
