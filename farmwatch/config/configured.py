"""Detectors and their warnings under the configuration."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from farmwatch.config.config import Config
from replay.runs.configured import tallied_name

if TYPE_CHECKING:
    from farmwatch.config.config import Config

if TYPE_CHECKING:
    from scoring.interface import Detector
if TYPE_CHECKING:
    from farmwatch.config.config import Config


def known_detectors(config: Config) -> list[KnownDetector]:
    """Every detector of this farmwatch, those that are configured first. Raises ConfigError for tally.detector."""
    from replay.runs.configured import tallied_name
    from scoring.detectors.registry import detector_names

    names = [*config.score.detectors, *(name for name in detector_names() if name not in config.score.detectors)]
    judging = tallied_name(config)
    found = [_known(name, config, name == judging) for name in names]
    if judging is not None:
        return found
    return [replace(one, judges_sites=one.identity == config.tally.detector) for one in found]


def configured_warnings(config: Config) -> dict[str, str]:
    """Identity -> warning of the detectors of [score] that are on this machine, without loading a language model.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    from scoring.detectors.registry import detector_warnings
    from scoring.errors import MissingExtra, MissingModel, UnsupportedModel

    found: dict[str, str] = {}
    for name in config.score.detectors:
        with suppress(MissingExtra, MissingModel, UnsupportedModel):  # they may be where SCORE runs
            found |= detector_warnings(msgspec.structs.replace(config.score, detectors=[name]))
    return found


def load_configured_detector(config: Config) -> Detector:
    """The detector whose scores make the site verdicts; the first of [score] where that is named by its identity only.

    Raises ConfigError, and as `load_detectors`.
    """
    from scoring.detectors.registry import load_detectors

    name = tallied_name(config) or config.score.detectors[0]
    return load_detectors(msgspec.structs.replace(config.score, detectors=[name]))[0]


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


def _known(name: str, config: Config, judges_sites: bool) -> KnownDetector:
    import msgspec

    from scoring.detectors.registry import detector_warnings
    from scoring.errors import ScoringError
    from scoring.interface import calibrated

    configured = name in config.score.detectors
    alone = msgspec.structs.replace(config.score, detectors=[name])
    try:
        ((identity, warning),) = detector_warnings(alone).items()
    except ScoringError as error:
        return KnownDetector(name, configured, judges_sites, "", False, "", str(error))
    return KnownDetector(name, configured, judges_sites, identity, calibrated(identity), warning, "")
