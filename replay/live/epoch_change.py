"""Moves the live run to another feature epoch: MEASURE processes all retained pages again, before new ones.

Pages are compared with earlier ones of their site, so that a site's memory has one epoch. `change_epoch` sets the
offsets of MEASURE back to the first retained page, removes the memory of the old epoch, and then writes the new epoch
into the run. After a crash in between, all of it is repeated. A site's row drops the pages of the old epoch with the
first verdict of the new one (`scoring.stages.site_tally`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from filters.measure.epoch import epoch_settings, feature_epoch
from filters.settings import MeasureSettings
from replay.runs.control_update import update_run
from replay.runs.lookup import find_run
from stream.log.contract import CleanupPolicy, Log, Topic
from stream.schema.control import Control
from stream.schema.runs import Run, memory_store
from stream.schema.topics import PAGES
from stream.text.wording import moment


class EpochChange(NamedTuple):
    """The live run's feature epoch, the configured one, and the records of `pages` to measure."""

    before: str
    after: str
    records: int


def epoch_change(log: Log, measure: MeasureSettings) -> EpochChange | None:
    """The change that this installation needs; None if the live run has its epoch, or before the first run."""
    live, after = Control(log).live, feature_epoch(measure)
    if live is None or live.epoch in ("", after):
        return None
    return EpochChange(live.epoch, after, log.sizes([PAGES])[PAGES].records)


def change_epoch(log: Log, measure: MeasureSettings, now_ms: int) -> None:
    """Move the live run to the epoch of `measure`. Raises StreamError, and changes nothing, while MEASURE runs."""
    control, after = Control(log), feature_epoch(measure)
    run = control.alias.run
    names = control.runs[run].names(is_live=True)
    begin = log.beginning(PAGES)
    log.reset(names.measure_group, PAGES, begin)
    log.remove([names.templates])  # the memory that would take its rows back is left behind
    made = f"state.{memory_store(names.features, after)}", names.templates
    log.create([Topic(name, len(begin), CleanupPolicy.COMPACT) for name in made])
    log.remove(stores=[memory_store(names.features, control.runs[run].epoch)])

    def moved(_: Control, row: Run) -> Run:
        return msgspec.structs.replace(
            row,
            epoch=after,
            measured_by=epoch_settings(measure),
            earlier_epochs={**row.earlier_epochs, row.epoch: now_ms},
        )

    update_run(log, run, moved)


def seams_of(control: Control, run: str = "") -> list[str]:
    """As `seams`, for a run by name; default: the live run. Raises NotFound."""
    row = find_run(control, run) if run else control.live
    return [] if row is None else list(seams(row))


def seams(run: Run) -> Iterator[str]:
    """The changes of a run's feature epoch, one sentence each, oldest first."""
    changes = sorted(run.earlier_epochs.items(), key=lambda item: item[1])
    following = [*(epoch for epoch, _ in changes), run.epoch][1:]
    for (epoch, until_ms), after in zip(changes, following, strict=True):
        yield (
            f"feature epoch {epoch} until {moment(until_ms)}, then {after}: each row rests on one of them, and the"
            " share may change because of the features alone"
        )
