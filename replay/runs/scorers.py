"""Which detectors SCORE runs: what it wrote to `control` at its last start, not what a configuration says.

A replay asks only for scores of these: a request that SCORE cannot answer as wanted would be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from replay.settings import ReplaySettings
from scoring.detectors.registry import detector_identities
from scoring.errors import ScoringError
from stream.log.contract import Clock, Log, wall_ms
from stream.schema.control import Control, Scorers, tell_scorers

LOOK_S = 5.0  # between looks of a replay at work


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


def scorers_watch(
    log: Log,
    config: ReplaySettings,
    detector: str,
    look_s: float = LOOK_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> Callable[[], bool]:
    """`is_scored` as a function for one thread, which looks at the log every few seconds. It raises LogUnavailable."""
    looked_s, found = float("-inf"), False

    def is_scored_now() -> bool:
        nonlocal looked_s, found
        if monotonic() - looked_s >= look_s:
            found = is_scored(Control(log), config, detector)
            looked_s = monotonic()
        return found

    return is_scored_now
