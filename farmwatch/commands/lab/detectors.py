"""`farmwatch lab detectors`: the detectors, and their state under the configuration."""

from __future__ import annotations

from dataclasses import asdict

from farmwatch.commands.options import JUST_CONFIGURED, AsJson, Configured
from farmwatch.config.detector_config import known_detectors
from farmwatch.doctor import model_checks
from farmwatch.doctor.check_result import Subject
from farmwatch.terminal.messages import message, put_columns, put_json
from farmwatch.terminal.remedies import in_full
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import one_line


def detectors(*, json: AsJson = False, common: Configured = JUST_CONFIGURED) -> int:
    """List the detectors: identity under the configuration, thresholds, and a warning about its errors.

    No language model is loaded. Exit code 1 when `farmwatch up` would refuse what is configured: models or libraries
    that are not there, no thresholds or those of another detector, no numbers to judge sites by.
    """
    config = common.load().config
    known = known_detectors(config)
    if json:
        put_json([asdict(detector) for detector in known])
    else:
        put_columns(
            known,
            {
                "detector": "name",
                "scores": lambda row: "yes" if row.configured else "",
                "judges sites": lambda row: "yes" if row.judges_sites else "",
                "thresholds": lambda row: "" if not row.identity else "calibrated" if row.calibrated else "none",
                "identity": lambda row: row.identity or "-",
            },
        )
        for detector in known:
            message(one_line(f"{detector.name}: {detector.problem or detector.warning}"))
    refused = ""
    try:  # what SCORE and TALLY check at their start
        for check in (model_checks.detectors, model_checks.pair, model_checks.sites):
            list(check(Subject(config)))
    except FarmwatchError as error:
        refused = in_full(error)
        message(one_line(f"`farmwatch up` refuses this: {refused}"))
    return Exit.PROBLEM if refused else Exit.OK
