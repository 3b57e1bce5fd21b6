"""`farmwatch detectors`: which detectors there are, and what the configuration makes of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from farmwatch.errors import Exit
from farmwatch.messages import message, one_line, put_json, put_table
from farmwatch.options import JUST_CONFIGURED, AsJson, Configured

if TYPE_CHECKING:
    from farmwatch.config import Config


@dataclass(frozen=True, slots=True)
class KnownDetector:
    """One detector as the configuration has it. Without an identity it cannot be used; `problem` says why."""

    name: str
    configured: bool  # in score.detectors
    judges_sites: bool  # its scores make the site verdicts
    identity: str
    calibrated: bool
    warning: str
    problem: str


def detectors(*, json: AsJson = False, common: Configured = JUST_CONFIGURED) -> int:
    """List the detectors: identity under the configuration, whether it has thresholds, and what its scores are worth.

    No language model is loaded. Exit code 1 when `farmwatch up` would refuse what is configured: models or libraries
    that are not there, no thresholds or those of another detector, no numbers to judge sites by.
    """
    config = common.load().config
    found = known_detectors(config)
    if json:
        put_json([asdict(detector) for detector in found])
    else:
        put_table(
            ("detector", "scores", "judges sites", "thresholds", "identity"),
            (
                (
                    detector.name,
                    _yes(detector.configured),
                    _yes(detector.judges_sites),
                    "" if not detector.identity else "calibrated" if detector.calibrated else "none",
                    detector.identity or "-",
                )
                for detector in found
            ),
        )
        for detector in found:
            message(one_line(f"{detector.name}: {detector.problem or detector.warning}"))
    refused = _refusal(config)
    if refused:
        message(one_line(f"`farmwatch up` refuses this: {refused}"))
    return Exit.PROBLEM if refused else Exit.OK


def known_detectors(config: Config) -> list[KnownDetector]:
    """Every detector of this farmwatch, those that are configured first. Raises ConfigError for tally.detector."""
    from farmwatch.roles import tallied_name
    from scoring.detector import detector_names

    names = [*config.score.detectors, *(name for name in detector_names() if name not in config.score.detectors)]
    judging = tallied_name(config)
    found = [_known(name, config, name == judging) for name in names]
    if judging is not None:
        return found
    return [replace(one, judges_sites=one.identity == config.tally.detector) for one in found]


def _refusal(config: Config) -> str:
    """Why SCORE or TALLY would not start; "" where they would."""
    from farmwatch.preflight import check_detectors
    from farmwatch.role_names import Role
    from scoring.errors import ScoringError

    try:
        check_detectors(config, [Role.SCORE, Role.TALLY])
    except ScoringError as error:
        return str(error)
    return ""


def _known(name: str, config: Config, judges_sites: bool) -> KnownDetector:
    import msgspec

    from scoring.detector import calibrated, detector_warnings
    from scoring.errors import ScoringError

    configured = name in config.score.detectors
    alone = msgspec.structs.replace(config.score, detectors=[name])
    try:
        ((identity, warning),) = detector_warnings(alone).items()
    except ScoringError as error:
        return KnownDetector(name, configured, judges_sites, "", False, "", str(error))
    return KnownDetector(name, configured, judges_sites, identity, calibrated(identity), warning, "")


def _yes(true: bool) -> str:
    return "yes" if true else ""
