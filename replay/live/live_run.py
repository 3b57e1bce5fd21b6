"""The live run with its ruleset and detector, as stored in `control`.

The first live stage writes the run `live` there, with the text of its ruleset. After that, a changed ruleset file or
setting causes a message at start; it takes effect by a replay and a cutover (docs/explanation/cutover.md).
"""

from __future__ import annotations

import enum
from contextlib import suppress
from typing import NamedTuple

import msgspec

from filters.measure.epoch import epoch_settings, feature_epoch
from replay.runs.configured import (
    configured_detectors,
    load_configured_ruleset,
    refuse_perplexity,
    site_method_to_keep,
    tally_identity,
)
from replay.runs.control_update import ControlUpdate, operator, update_control
from replay.runs.lookup import FIRST_RUN, ever_live, find_run
from replay.runs.run_rules import RunRules, live_now, rules_of
from replay.settings import ReplaySettings
from scoring.sites.registry import same_method
from stream.log.contract import Clock, Log, StateReader, wall_ms
from stream.log.errors import UnknownTopic
from stream.processing.state import KeyedState
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.runs import LIVE, Run, RunStatus
from stream.text.user_errors import FarmwatchError

ROUND_KEY = b"\0canary"  # key in the state of a partition: when its last round of canaries began


def ensure_live_run(log: Log, config: ReplaySettings, *, by: str | None = None, clock: Clock = wall_ms) -> RunRules:
    """The live run. Before the first live stage, it is written from the configuration.

    If this process does not know the detector (its files may be only where SCORE runs), it leaves the detector and the
    site method empty; a process that knows them fills them in. Raises BadRuleset, Fenced, LogUnavailable.
    """
    control = Control(log)
    live = control.live
    if live is None or not (live.detector and live.site_method):
        first = _as_configured(config, by or operator(), clock()) if live is None else rules_of(control, live)
        detector = (live or FIRST_RUN).detector or _configured_detector(config)
        refuse_perplexity(first.ruleset, [detector, *config.score.detectors])
        method = configured_method(config, detector)

        def make_update(control: Control) -> ControlUpdate | None:
            now = control.live
            if now is None:
                return ControlUpdate(first.run, [(first.run.digest, first.text)])
            known = now.site_method or (method if now.detector in ("", detector) else "")
            filled = msgspec.structs.replace(now, detector=now.detector or detector, site_method=known)
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
    """The live run, or the run with this name, for commands that only read; without a live run, the configured one."""
    control = Control(log)
    if run:
        return rules_of(control, find_run(control, run))
    return live_now(control) or _as_configured(config)


class Differing(enum.Enum):
    """What differs between the configuration and the live run."""

    RULES_AS_READ = enum.auto()  # the run's ruleset has another digest in this version of farmwatch
    RULESET = enum.auto()
    DETECTOR = enum.auto()
    UNSCORED_DETECTOR = enum.auto()  # and SCORE does not run the detector of the run
    SITE_METHOD = enum.auto()
    EPOCH = enum.auto()


CHOSEN = (Differing.RULESET, Differing.DETECTOR, Differing.SITE_METHOD)  # by a cutover


class ConfigDifference(NamedTuple):
    """One difference, and the finished run that matches the configuration, if there is one."""

    what: Differing
    live: RunRules
    wanted: Run  # as the configuration would begin it
    setting: str  # judge.ruleset
    ready: Run | None
    is_back: bool  # `ready` was live before


def differences(live: RunRules, config: ReplaySettings, control: Control) -> list[ConfigDifference]:
    """Differences between configuration and live run. Raises BadRuleset if a ruleset does not load."""
    run, ruleset, configured = live.run, live.ruleset, load_configured_ruleset(config)
    detector = _configured_detector(config) or run.detector
    wanted = msgspec.structs.replace(
        run,
        ruleset=configured.name,
        digest=configured.digest,
        detector=detector,
        epoch=feature_epoch(config.measure),
        site_method=configured_method(config, detector),
    )
    differing = []
    if ruleset.digest != run.digest:
        differing.append(Differing.RULES_AS_READ)
    if configured.digest not in (run.digest, ruleset.digest):
        differing.append(Differing.RULESET)
    if detector != run.detector and run.detector:
        is_scored = run.detector in configured_detectors(config)
        differing.append(Differing.DETECTOR if is_scored else Differing.UNSCORED_DETECTOR)
    elif wanted.site_method and run.site_method and not same_method(wanted.site_method, run.site_method):
        differing.append(Differing.SITE_METHOD)
    if wanted.epoch != run.epoch:
        differing.append(Differing.EPOCH)
    matching = [
        run
        for run in control.runs.values()
        if (run.digest, run.detector, run.epoch) == (wanted.digest, wanted.detector, wanted.epoch)
        and (not (run.site_method and wanted.site_method) or same_method(run.site_method, wanted.site_method))
        and (run.state == RunStatus.DONE or (run.state == RunStatus.RUNNING and run.name in ever_live(control)))
        and run.name != control.alias.run
    ]
    ready = max(matching, key=lambda run: run.created_at, default=None)
    is_back = ready is not None and ready.name == control.alias.before
    return [ConfigDifference(what, live, wanted, config.judge.ruleset, ready, is_back) for what in differing]


def canaries_sent_before(log: Log, run: str, partition: int) -> int:
    """When runs other than `run` last began a round of canaries for a partition, ms; -1 = never. Reads their state."""
    control = Control(log)
    last = -1
    for name in ever_live(control) - {run}:
        if other := control.runs.get(name):
            with suppress(UnknownTopic), log.read_state(other.names().tally_store, partition) as state:
                last = max(last, last_canary_round(state))
    return last


def last_canary_round(state: StateReader | KeyedState) -> int:
    """When the last round of canaries began, by the state of a partition, ms; -1 = never."""
    value = state.get(ROUND_KEY)
    return -1 if value is None else int(value)


def _as_configured(config: ReplaySettings, by: str = "", at: int = 0) -> RunRules:
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
    with suppress(FarmwatchError):
        return tally_identity(config)
    return ""


def configured_method(config: ReplaySettings, detector: str) -> str:
    """The configured site method for a detector, as text; "" if there is none or it is unknown."""
    with suppress(FarmwatchError):
        return site_method_to_keep(config, detector) if detector else ""
    return ""
