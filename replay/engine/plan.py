"""What a replay is to do: from a command line, the configuration and the log to a row of a run; nothing is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from shlex import quote
from typing import NamedTuple

import msgspec

from filters.measure.epoch import epoch_settings, feature_epoch
from filters.rules.ruleset import Ruleset, load_ruleset
from replay.engine.source import choose_source
from replay.runs.configured import (
    identity_of,
    load_configured_ruleset,
    require_site_method,
    site_method_to_keep,
    tally_identity,
)
from replay.runs.control_update import operator
from replay.runs.lookup import FIRST_RUN, resolve_name, run_named
from replay.runs.offsets import reached
from replay.runs.phases import phases_of
from replay.runs.run_rules import rules_of
from replay.runs.window import FOLLOW, NOW, Window, read_window, run_window, stops_of, window_text
from replay.settings import ReplaySettings
from scoring.interface import refuse_bad_identity
from stream.log.contract import Clock, Log, wall_ms
from stream.schema.control import Control
from stream.schema.runs import FIRST, RESERVED, RUN_NAME, Run, RunStatus, features_of
from stream.schema.topics import FEATURES, HITS, PAGES, SCORES
from stream.text.user_errors import NotFound, RunRefused, UsageError
from stream.text.wording import one_line

_SHORT = 6  # digits of a ruleset's digest in a run's name
_NAME_KEPT = 24  # characters of a ruleset's name in it
_UNFIT = re.compile(r"[^a-z0-9]+")


class OtherParameters(UsageError):
    """A run of this name was begun with other parameters. The operator takes another name, or leaves them out."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What the command line says; None = it does not."""

    ruleset: str | None = None
    detector: str | None = None
    begin: str | None = None
    end: str | None = None
    name: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run to begin or to resume, and its ruleset."""

    run: Run
    ruleset: Ruleset
    is_new: bool
    later_window: Window | None = None  # a resumed run is extended to its end, if that is later


def plan(log: Log, control: Control, config: ReplaySettings, asked: ReplayRequest, clock: Clock = wall_ms) -> Plan:
    """What is asked for, as a plan.

    Raises UsageError, RunRefused, NotFound, BadRuleset, OutsideRetention, and as `site_method_to_keep`.
    """
    if asked.ruleset is None and asked.detector is None and asked.name is None:
        raise UsageError("name what is to be replayed: --ruleset, --detector, or by --name a run to resume")
    known = control.runs.get(FIRST_RUN.name if asked.name == FIRST else asked.name or "")
    is_new = known is None or asked.name == FIRST_RUN.name
    if is_new and asked.name is not None and (asked.name in RESERVED or not RUN_NAME.fullmatch(asked.name)):
        raise UsageError(
            f"--name {one_line(asked.name)[:60]!r}: a run is named by 1 to 40 letters a-z, digits and hyphens, a hyphen"
            f" not first; {', '.join(sorted(RESERVED))} have other meanings"
        )
    begin, now_ms = asked.begin and resolve_name(control, asked.begin), clock()
    ruleset = None if asked.ruleset is None else load_ruleset(asked.ruleset)
    detector = asked.detector
    if detector is not None and "/" in detector:
        refuse_bad_identity(detector)
    elif detector is not None:
        detector = identity_of(config, detector)
    given = _Given(asked, ruleset, detector, read_window(begin, asked.end, control.runs, now_ms))
    if known is None or is_new:
        return _plan_new(log, control, config, given, now_ms)
    return _plan_resumed(control, known, given)


class _Given(NamedTuple):
    """A request with what its words mean; None = it does not say."""

    asked: ReplayRequest
    ruleset: Ruleset | None
    detector: str | None  # identity
    window: Window


def _plan_resumed(control: Control, run: Run, given: _Given) -> Plan:
    if run.state == RunStatus.REMOVED:
        raise RunRefused(
            f"the run {run.shown} is being removed: end it by `farmwatch runs rm {run.shown}`, or name another"
        )
    if control.alias.run == run.name:
        raise RunRefused(f"the run {run.shown} is live: the daemon (`farmwatch up`) continues it")
    different = "; ".join(_differences(run, given))
    if different:
        raise OtherParameters(
            f"the run {run.shown} was begun with other parameters: {different}. Take another --name, or give only"
            " --name to resume it"
        )
    ruleset = rules_of(control, run).ruleset
    if ruleset.digest != run.digest:
        raise RunRefused(
            f"the run {run.shown} was begun with the ruleset {run.ruleset} {run.digest}, which this version of"
            f" farmwatch reads as {ruleset.digest}: one run is not judged in two ways; begin another one"
        )
    return Plan(run, ruleset, is_new=False, later_window=None if given.asked.end is None else given.window)


def with_later_end(log: Log, run: Run, window: Window | None) -> Run:
    """The run up to the end of a window: what came since it ended, or all that comes. An earlier end changes nothing.

    Take the row as it stands when it is written: another process may have given it an end meanwhile.
    """
    if window is None or run.follows:
        return run
    if window.follows:
        return msgspec.structs.replace(run, stop={}, to_at=0)
    ends = {topic: stops_of(log, topic, window) for topic in (run.source, HITS)}
    later = {topic: [max(pair) for pair in zip(run.stop[topic], end, strict=True)] for topic, end in ends.items()}
    stop = {**run.stop, **later}
    if run.remeasures and later[PAGES] != run.stop[PAGES]:
        stop.pop(run.features, None)  # more will be measured: `record_features_end` writes its end then
    return msgspec.structs.replace(run, stop=stop, to_at=max(run.to_at, window.to_at))


def _differences(run: Run, given: _Given) -> list[str]:
    asked, ruleset, detector, window = given
    found = []
    if ruleset is not None and ruleset.digest != run.digest:
        found.append(f"--ruleset is {ruleset.name} {ruleset.digest}, the run has {run.ruleset} {run.digest}")
    if detector not in (None, run.detector):
        found.append(f"--detector is {detector}, the run has {run.detector}")
    if asked.begin is not None and window.from_at != run.from_at:
        found.append(f"--from is {window_text(window.from_at, 1).split(' .. ')[0]}, the run has {run_window(run)}")
    ends_sooner = run.follows or (asked.end != NOW and window.to_at < run.to_at)
    if asked.end not in (None, FOLLOW) and ends_sooner:
        found.append(f"--to is {asked.end}, the run has {run_window(run)}")
    return found


def _plan_new(log: Log, control: Control, config: ReplaySettings, given: _Given, now_ms: int) -> Plan:
    asked, ruleset, detector, window = given
    if asked.name is not None and ruleset is None and detector is None:
        try:
            run_named(control, asked.name)
        except NotFound as error:
            raise NotFound(f"{error}. A new run is begun by --ruleset or --detector") from None
    if FEATURES not in log.topics():
        raise NotFound("the log has no topics yet: nothing was crawled that could be replayed")
    live = control.live
    ruleset = ruleset or (load_configured_ruleset(config) if live is None else rules_of(control, live).ruleset)
    detector = detector or (live or FIRST_RUN).detector or tally_identity(config)
    name = asked.name or _free_name(control.runs, ruleset)
    epoch = feature_epoch(config.measure)
    source = choose_source(log, control, window, epoch)
    stop = {source.topic: source.offsets.stop, HITS: stops_of(log, HITS, window), SCORES: log.end(SCORES)}
    run = Run(
        name=name,
        ruleset=ruleset.name,
        digest=ruleset.digest,
        detector=detector,
        epoch=epoch,
        features=features_of(name) if source.topic == PAGES else source.topic,
        remeasures=source.topic == PAGES,
        why_source=source.why,
        start={source.topic: source.offsets.start, HITS: log.beginning(HITS)},
        stop={} if window.follows else stop,
        from_at=window.from_at,
        to_at=window.to_at,
        created_at=now_ms,
        created_by=operator(),
        why=asked.why,
        gaps=source.offsets.gaps,
        site_method=site_method_to_keep(config, detector),
        measured_by=epoch_settings(config.measure),
    )
    return Plan(run, ruleset, is_new=True)


def _free_name(runs: Mapping[str, Run], ruleset: Ruleset) -> str:
    stem = _UNFIT.sub("-", ruleset.name.lower()).strip("-")[:_NAME_KEPT].strip("-") or "ruleset"
    names = (f"{stem}-{ruleset.digest[:_SHORT]}-{number}" for number in count(1))
    return next(name for name in names if name not in runs)


def refuse_unfit(log: Log, config: ReplaySettings, plan: Plan) -> None:
    """Raises what would end the run later: what MEASURE has not, and TALLY cannot read.

    That is MissingExtractor, and as `require_site_method`, `refuse_other_epoch`.
    """
    run = plan.run if plan.is_new else with_later_end(log, plan.run, plan.later_window)
    require_site_method(config, run)
    measure = phases_of(run)[0]
    if run.remeasures and (plan.is_new or run.follows or not reached(log, measure.group, measure.stops(log, run))):
        from filters.extraction.extractor import extractor

        extractor(config.measure.extractor)
        refuse_other_epoch(config, run)


def refuse_other_epoch(config: ReplaySettings, run: Run) -> None:
    """Raises UsageError where this configuration would measure in another feature epoch than the run began with."""
    epoch = feature_epoch(config.measure)
    if epoch != run.epoch:
        raise UsageError(
            f"the run {run.shown} measures pages in the feature epoch {run.epoch}, with {_settings(run.measured_by)};"
            f" this configuration is {epoch}, with {_settings(epoch_settings(config.measure))}. Use the settings, and"
            " the version of farmwatch and its libraries, that it began with, or begin another run"
        )


def _settings(measured_by: Mapping[str, str]) -> str:
    named = " ".join(f"--set {quote(f'{name}={value}')}" for name, value in measured_by.items())
    return one_line(named) or "the default settings"
