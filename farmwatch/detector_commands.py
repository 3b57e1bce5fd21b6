"""`farmwatch detectors`: which detectors there are, and what the configuration makes of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from farmwatch.errors import Exit
from farmwatch.messages import one_line, put_json, put_table, put_wrapped
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

    No language model is loaded. Exit code 1 when one of score.detectors cannot be used: its models are not there, its
    thresholds are of another detector, or it has none, so that `farmwatch up` would refuse it.
    """
    found = known_detectors(common.load().config)
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
            put_wrapped(one_line(f"{detector.name}: {detector.problem or detector.warning}"), "  ")
    unfit = any(detector.configured and not detector.calibrated for detector in found)
    return Exit.PROBLEM if unfit else Exit.OK


def known_detectors(config: Config) -> list[KnownDetector]:
    """Every detector of this farmwatch, those that are configured first. Raises ConfigError for tally.detector."""
    from farmwatch.roles import tallied_name
    from scoring.detector import detector_names

    names = [*config.score.detectors, *(name for name in detector_names() if name not in config.score.detectors)]
    judging = tallied_name(config)
    return [_known(name, config, name == judging) for name in names]


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
