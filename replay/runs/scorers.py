"""Which detectors SCORE runs: what it wrote to `control` at its last start, not what a configuration says.

A replay asks only for scores of these: a request that SCORE cannot answer as wanted would be lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.settings import ReplaySettings
from scoring.detectors.registry import detector_identities
from scoring.errors import ScoringError
from stream.log.clock import Clock, wall_ms
from stream.log.contract import Log
from stream.schema.control import Control, Scorers, tell_scorers


def announce_detectors(log: Log, detectors: Sequence[str], clock: Clock = wall_ms) -> None:
    """As SCORE, before it reads a request: write its detectors down, if they are others than those that stand there.

    Raises as `Log.append`.
    """
    scorers = Control(log).scorers
    if scorers is None or scorers.detectors != detectors:
        tell_scorers(log, Scorers(detectors=list(detectors), at=clock()))


def scored_detectors(control: Control, config: ReplaySettings) -> list[str]:
    """Identities that SCORE runs; those that are configured where it never said; none where that cannot be known."""
    if control.scorers is not None:
        return control.scorers.detectors
    return configured_detectors(config)


def configured_detectors(config: ReplaySettings) -> list[str]:
    """Identities that SCORE runs once it is restarted; none where that cannot be known here."""
    try:
        return detector_identities(config.score)
    except ScoringError:  # what they are made of may be where SCORE runs
        return []


def is_scored(control: Control, config: ReplaySettings, detector: str) -> bool:
    """Whether SCORE runs a detector; also where that is not known: a request names what is wanted."""
    detectors = scored_detectors(control, config)
    return not detectors or detector in detectors
