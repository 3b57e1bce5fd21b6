"""Settings of the SCORE and TALLY stages."""

from __future__ import annotations

from pathlib import Path

import msgspec

from scoring.pair_settings import PairSettings
from scoring.site_verdict import SprtParams


class ScoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of SCORE, in order of use."""

    detectors: list[str] = msgspec.field(default_factory=lambda: ["lite-ngram"])
    """Names of the detectors, side by side, each its own identity; `farmwatch detectors` lists them."""
    weights: Path | None = None
    """Weights file of lite-ngram in place of the one that ships with farmwatch; its numbers lie beside it as .json."""
    thresholds: dict[str, str] = {}
    """Detector's name -> a threshold set: the name of a published one, or a file of `farmwatch calibrate`."""
    remembered_texts: int = 20_000
    """Texts whose scores are kept in memory and not computed again; 0 = none."""
    pair: PairSettings = PairSettings()

    def __post_init__(self) -> None:
        if not self.detectors:
            raise ValueError("score.detectors is empty: name at least one, such as lite-ngram")
        twice = sorted({name for name in self.detectors if self.detectors.count(name) > 1})
        if twice:
            raise ValueError(f"score.detectors names {', '.join(twice)} twice")
        if self.remembered_texts < 0:
            raise ValueError("score.remembered_texts must be 0 or more")


class TallySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of TALLY, in order of use."""

    detector: str = ""
    """Whose scores make the site verdicts: a name among score.detectors, or a whole identity; "": the first name."""
    sprt: SprtParams | None = None
    """Parameters of the sequential test; unset: those that belong to the detector."""
    enough_articles: int = 20
    """Usable scores (articles of different text, not abstained) after which crawling stops without a verdict."""

    def __post_init__(self) -> None:
        if self.enough_articles < 1:
            raise ValueError("enough_articles must be at least 1 article")
