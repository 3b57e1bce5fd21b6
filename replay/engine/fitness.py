"""Checks, before a run begins, that this process can complete it."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from filters.measure.epoch import epoch_settings, feature_epoch
from filters.settings import MeasureSettings
from replay.engine.plan import Plan, further
from replay.live.fitness import require_site_method
from replay.runs.offsets import reached
from replay.runs.phases import MEASURE, phases_of
from replay.settings import ReplaySettings
from stream.log.contract import Log
from stream.schema.runs import Run
from stream.text.user_errors import UsageError
from stream.text.wording import one_line


def refuse_unfit(log: Log, config: ReplaySettings, plan: Plan) -> None:
    """Raises what would end the run later: what MEASURE has not, and TALLY cannot read.

    That is MissingExtractor, and as `require_site_method`, `refuse_other_epoch`.
    """
    run = plan.run if plan.is_new else further(log, plan.run, plan.further)
    require_site_method(config, run)
    if run.remeasures and (plan.is_new or _has_to_measure(log, run)):
        from filters.extraction.extractor import extractor

        extractor(config.measure.extractor)
        refuse_other_epoch(config, run)


def refuse_other_epoch(config: ReplaySettings, run: Run) -> None:
    """Raises UsageError where this configuration would measure in another feature epoch than the run began with."""
    epoch = feature_epoch(config.measure)
    if epoch != run.epoch:
        raise UsageError(
            f"the run {run.shown} measures pages in the feature epoch {run.epoch}, this configuration is {epoch}:"
            f" {one_line(_measured_otherwise(config, run))}, or begin another run"
        )


def _measured_otherwise(config: ReplaySettings, run: Run) -> str:
    """In which settings of [measure] they differ, or that only versions do; and how to go on."""
    here = epoch_settings(config.measure)
    names = [name for name in sorted(run.measured_by | here) if run.measured_by.get(name) != here.get(name)]
    if not names:
        return "the settings are the same, so a library, or farmwatch itself, is of another version; use that one"
    began = " ".join(f"--set {quote(f'{name}={_value(name, run.measured_by)}')}" for name in names)
    now = ", ".join(f"{name} is {_value(name, here)}" for name in names)
    return f"{now} here; use the settings that it began with, {began}"


def _value(name: str, settings: Mapping[str, str]) -> str:
    return settings.get(name) or str(getattr(MeasureSettings(), name.partition(".")[2]))


def _has_to_measure(log: Log, run: Run) -> bool:
    measure = phases_of(run)[0]
    return measure.name == MEASURE and (run.follows or not reached(log, measure.group, measure.stops(log, run)))
