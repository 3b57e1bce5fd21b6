"""Plans a replay: builds the row of a run from command line, configuration and log. Writes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import msgspec

from filters.measure.epoch import epoch_settings, feature_epoch
from filters.rules.ruleset import Ruleset, load_ruleset
from replay.engine.source import choose_source, stops_of
from replay.runs.configured import (
    identity_of,
    load_configured_ruleset,
    refuse_perplexity,
    require_site_method,
    site_method_to_keep,
    tally_identity,
)
from replay.runs.control_update import operator
from replay.runs.lookup import FIRST_RUN, resolve_name, run_named
from replay.runs.phases import phases_of
from replay.runs.run_rules import rules_of
from replay.runs.topology import is_at_stops
from replay.runs.window import FOLLOW, NOW, Window, read_window
from replay.settings import ReplaySettings
from scoring.detectors.registry import refuse_bad_identity
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
    """The run of this name has other parameters. The operator takes another name, or omits the parameters."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The request from the command line; None = not given."""

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
    later_window: Window | None = None  # a resumed run is extended to its end


def plan(log: Log, control: Control, config: ReplaySettings, request: ReplayRequest, clock: Clock = wall_ms) -> Plan:
    """Build the plan for a request."""
    known = control.runs.get(FIRST_RUN.name if request.name == FIRST else request.name or "")
    is_new = known is None or request.name == FIRST_RUN.name
    if is_new and request.name is not None and (request.name in RESERVED or not RUN_NAME.fullmatch(request.name)):
        raise UsageError(
            f"{one_line(request.name)[:60]!r}: a name has 1 to 40 letters a-z, digits and hyphens, and no"
            f" hyphen first; {', '.join(sorted(RESERVED))} are reserved"
        )
    begin, now_ms = request.begin and resolve_name(control, request.begin), clock()
    if is_new and request.name is not None and request.ruleset is None and request.detector is None:
        try:
            run_named(control, request.name)
        except NotFound as error:
            raise NotFound(str(error), case="nothing to begin by") from None
    ruleset = None if request.ruleset is None else load_ruleset(request.ruleset)
    detector = request.detector
    if detector is not None and "/" not in detector:
        detector = identity_of(config, detector)
    elif detector is not None:
        refuse_bad_identity(detector)
    resolved = _ResolvedRequest(request, ruleset, detector, read_window(begin, request.end, control.runs, now_ms))
    if known is None or is_new:
        return _plan_new(log, control, config, resolved, now_ms)
    return _plan_resumed(control, known, resolved)


class _ResolvedRequest(NamedTuple):
    request: ReplayRequest
    ruleset: Ruleset | None
    detector: str | None  # identity
    window: Window


def _plan_resumed(control: Control, run: Run, resolved: _ResolvedRequest) -> Plan:
    if run.state == RunStatus.REMOVED:
        raise RunRefused(f"the run {run.shown} is being removed", case="being removed", run=run)
    if control.alias.run == run.name:
        raise RunRefused(f"the run {run.shown} is live", case="continued live")
    request, ruleset, detector, window = resolved
    different, had = [], Window(run.from_at, run.to_at)
    if ruleset is not None and ruleset.digest != run.digest:
        different.append(f"the ruleset is {ruleset.name} {ruleset.digest}, the run has {run.ruleset} {run.digest}")
    if detector not in (None, run.detector):
        different.append(f"the detector is {detector}, the run has {run.detector}")
    if request.begin is not None and window.from_at != run.from_at:
        begin = window.text.partition(" .. ")[0]
        different.append(f"the window begins at {begin}, the run has {had.text}")
    ends_sooner = run.follows or (request.end != NOW and window.to_at < run.to_at)
    if request.end not in (None, FOLLOW) and ends_sooner:
        different.append(f"it ends at {request.end}, the run has {had.text}")
    if different:
        raise OtherParameters(f"the run {run.shown} was begun with other parameters: {'; '.join(different)}")
    ruleset = rules_of(control, run).ruleset
    if ruleset.digest != run.digest:
        raise RunRefused(
            f"the run {run.shown} was begun with the ruleset {run.ruleset} {run.digest}, which this version of"
            f" farmwatch reads as {ruleset.digest}, and a run has one ruleset",
            case="other ruleset",
        )
    return Plan(run, ruleset, is_new=False, later_window=None if request.end is None else window)


def with_later_end(log: Log, run: Run, window: Window | None) -> Run:
    """The run, with the row that it has now, extended to the end of a window. An earlier end changes nothing."""
    if window is None or run.follows:
        return run
    if window.follows:
        return msgspec.structs.replace(run, stop={}, to_at=0)
    ends = {topic: stops_of(log, topic, window) for topic in (run.source, HITS)}
    later = {topic: [max(pair) for pair in zip(run.stop[topic], end, strict=True)] for topic, end in ends.items()}
    stop = {**run.stop, **later}
    if run.remeasures and later[PAGES] != run.stop[PAGES]:
        stop.pop(run.features, None)  # `record_features_end` writes it after MEASURE
    return msgspec.structs.replace(run, stop=stop, to_at=max(run.to_at, window.to_at))


def _plan_new(log: Log, control: Control, config: ReplaySettings, resolved: _ResolvedRequest, now_ms: int) -> Plan:
    request, ruleset, detector, window = resolved
    if FEATURES not in log.topics():
        raise NotFound("the log has no topics yet: there is nothing to replay")
    live = control.live
    if ruleset is None:
        ruleset = rules_of(control, live).ruleset if live is not None else load_configured_ruleset(config)
    detector = detector or (live or FIRST_RUN).detector or tally_identity(config)
    stem = _UNFIT.sub("-", ruleset.name.lower()).strip("-")[:_NAME_KEPT].strip("-") or "ruleset"
    free = (f"{stem}-{ruleset.digest[:_SHORT]}-{number}" for number in count(1))
    name = request.name or next(name for name in free if name not in control.runs)
    measured_by, epoch = epoch_settings(config.measure), feature_epoch(config.measure)
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
        why=request.why,
        gaps=source.offsets.gaps,
        site_method=site_method_to_keep(config, detector),
        measured_by=measured_by,
    )
    return Plan(run, ruleset, is_new=True)


def refuse_unfit(log: Log, config: ReplaySettings, plan: Plan) -> None:
    """Raises early what would end the run later: MissingExtra, BadModel, a site method or an epoch that is none."""
    run = plan.run if plan.is_new else with_later_end(log, plan.run, plan.later_window)
    require_site_method(config, run)
    refuse_perplexity(plan.ruleset, [run.detector])
    measure = phases_of(run)[0]
    if run.remeasures and (plan.is_new or run.follows or not is_at_stops(log, measure.group, measure.stops(log, run))):
        from filters.measure.extractors import extractor
        from filters.measure.worker_process import first_frame

        extractor(config.measure)
        first_frame(config.measure)
        refuse_other_epoch(config, run)


def refuse_other_epoch(config: ReplaySettings, run: Run) -> None:
    """Raises UsageError if this configuration measures in another feature epoch than that of the run."""
    epoch = feature_epoch(config.measure)
    if epoch != run.epoch:
        raise UsageError(
            f"the run {run.shown} measures pages in the feature epoch {run.epoch}, this configuration in {epoch}",
            case="epoch",
            run=run,
            configured=epoch_settings(config.measure),
        )
