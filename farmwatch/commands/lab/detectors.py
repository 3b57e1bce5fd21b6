"""`farmwatch lab detectors`: the detectors, and their state under the configuration."""

from __future__ import annotations

from farmwatch.commands.options import JUST_CONFIGURED, Configured
from farmwatch.config.detector_config import KnownDetector, known_detectors
from farmwatch.doctor import model_checks
from farmwatch.doctor.check_result import Subject
from farmwatch.tables.columns import Column, columns_of
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from farmwatch.terminal.remedies import in_full
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import one_line

_COLUMNS: list[Column[KnownDetector]] = columns_of(
    KnownDetector,
    configured={"meaning": "in score.detectors"},
    judges_sites={"meaning": "its scores decide site verdicts"},
    calibrated={"meaning": "it has thresholds"},
    identity={"said": lambda row: row.identity or "cannot be used here"},
)


def detectors(*, listing: Listing = LISTING, common: Configured = JUST_CONFIGURED) -> int:
    """One row per detector: identity under the configuration, thresholds, and below them warnings about their errors.

    No language model is loaded. Exit code 1 when `farmwatch up` would refuse what is configured: models or libraries
    that are not there, no thresholds or those of another detector, no numbers to judge sites by.
    """
    selection = listing.of(_COLUMNS)
    config = common.load().config
    known = known_detectors(config)
    selection.put(known, "detector", [column.name for column in _COLUMNS[:-2]])
    said: dict[str, list[str]] = {}  # what several have in common is said once
    for detector in known if listing.is_table else ():
        said.setdefault(detector.problem or detector.warning, []).append(detector.name)
    for text, names in said.items():
        message(one_line(f"{', '.join(names)}: {text}"))
    refused = ""
    try:  # what SCORE and TALLY check at their start
        for check in (model_checks.detectors, model_checks.models, model_checks.sites):
            list(check(Subject(config)))
    except FarmwatchError as error:
        refused = in_full(error)
        message(one_line(f"`farmwatch up` refuses this: {refused}"))
    return Exit.PROBLEM if refused else Exit.OK
