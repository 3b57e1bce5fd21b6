"""Detectors and their warnings under the configuration."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from farmwatch.config.config import Config
from farmwatch.terminal.messages import message
from farmwatch.terminal.remedies import in_full
from replay.runs.configured import tallied_name
from scoring.detectors.registry import DETECTORS, detector_warnings, load_detectors
from scoring.errors import MissingModel, UnsupportedModel
from scoring.interface import Detector, calibrated, name_of
from stream.text.user_errors import FarmwatchError, MissingExtra


def known_detectors(config: Config) -> list[KnownDetector]:
    """Every detector of this farmwatch, configured ones first. Raises ConfigError for tally.detector."""
    names = [*config.score.detectors, *(name for name in sorted(DETECTORS) if name not in config.score.detectors)]
    judging = tallied_name(config)
    known = []
    for name in names:
        configured, judges = name in config.score.detectors, name == judging
        try:
            ((identity, warning),) = detector_warnings(msgspec.structs.replace(config.score, detectors=[name])).items()
        except FarmwatchError as error:
            known.append(KnownDetector(name, configured, judges, "", False, "", in_full(error)))
        else:
            judges = identity == config.tally.detector if judging is None else judges
            known.append(KnownDetector(name, configured, judges, identity, calibrated(identity), warning, ""))
    return known


def configured_warnings(config: Config) -> dict[str, str]:
    """Identity -> warning of the detectors of [score] that are on this machine, without loading a language model.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    warnings: dict[str, str] = {}
    for name in config.score.detectors:
        with suppress(MissingExtra, MissingModel, UnsupportedModel):  # their files may be only where SCORE runs
            warnings |= detector_warnings(msgspec.structs.replace(config.score, detectors=[name]))
    return warnings


def load_configured_detector(config: Config) -> Detector:
    """The detector whose scores decide site verdicts; the first of [score] if only its identity is configured."""
    name = tallied_name(config) or config.score.detectors[0]
    return load_detectors(msgspec.structs.replace(config.score, detectors=[name]))[0]


@dataclass(frozen=True, slots=True)
class KnownDetector:
    """A detector under the configuration. Without an identity it cannot be used, and `problem` has the reason."""

    name: str
    configured: bool  # in score.detectors
    judges_sites: bool  # its scores decide site verdicts
    identity: str
    calibrated: bool
    warning: str
    problem: str


def caveats(config: Config, identities: Iterable[str]) -> dict[str, str]:
    """Detector identity -> the warning to show with its scores; "" has none.

    It covers the detectors configured here, and pairs of language models.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    named = sorted(set(identities) - {""})
    if not named:
        return {"": ""}
    known = configured_warnings(config)
    for identity in named:
        if not known.get(identity):
            known[identity] = "not a detector configured here; what its scores are worth is not known here"
            kind = DETECTORS.get(name_of(identity))
            with suppress(ValueError):  # the parts of its identity differ from ours
                if kind is not None and kind.warning_of is not None:
                    known[identity] = kind.warning_of(identity)
    return {"": "", **{identity: known[identity] for identity in named}}


def print_caveats(warnings: dict[str, str], *, short: bool = False) -> None:
    """Print the warnings of `caveats` on stderr; `short`: the first sentence, and where to find the rest."""
    for identity, warning in warnings.items():
        first, _, rest = warning.partition(". ")
        if short and rest:
            message(f"{identity.partition('/')[0]}: {first} (rate --verbose)")
        elif warning:
            message(f"{identity}: {warning}")
