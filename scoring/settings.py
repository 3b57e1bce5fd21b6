"""Settings of the SCORE and TALLY stages."""

from __future__ import annotations

from pathlib import Path

import msgspec

from scoring.site_verdict import SprtParams


class ScoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of SCORE, in order of use."""

    detector: str = "lite-ngram"
    """Name of the detector, see `scoring.detector.detector_names`."""
    weights: Path | None = None
    """Weights file in place of the one that ships with farmwatch; its numbers lie beside it as .json."""


class TallySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of TALLY, in order of use."""

    sprt: SprtParams | None = None
    """Parameters of the sequential test; unset: those that belong to the detector."""
    enough_articles: int = 20
    """Usable scores (articles of different text, not abstained) after which crawling stops without a verdict."""

    def __post_init__(self) -> None:
        if self.enough_articles < 1:
            raise ValueError("enough_articles must be at least 1 article")
