"""Settings of SCORE: the detectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from scoring.pair.settings import MEASURES, PairSettings
from stream.text.ranges import Count


class ScoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of SCORE, in order of use."""

    detectors: list[str] = msgspec.field(default_factory=lambda: ["lite-ngram"])
    """Names of the detectors, each with its own identity; `farmwatch detectors` lists them."""
    weights: Path | None = None
    """Weights file of lite-ngram instead of the shipped one; its numbers are next to it as .json."""
    thresholds: dict[str, str] = {}
    """Detector's name -> a threshold set: the name of a published one, or a file of `farmwatch calibrate`."""
    batch_texts: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Texts per batch; 0: 256, or 16 if a pair of models reads on a cpu. Two batches are in flight, and a live text
    waits for at most these while replays are scored."""
    remembered_texts: Count = 20_000
    """Texts whose scores are kept in memory; 0 = none."""
    pair: PairSettings = PairSettings()

    def __post_init__(self) -> None:
        if not self.detectors:
            raise ValueError("score.detectors is empty: name at least one, such as lite-ngram")
        twice = sorted({name for name in self.detectors if self.detectors.count(name) > 1})
        if twice:
            raise ValueError(f"score.detectors names {', '.join(twice)} twice")

    @property
    def texts_at_once(self) -> int:
        """Texts per batch: as set, or else by the device; a stop may repeat a batch."""
        return self.batch_texts or (16 if self.uses_pair and self.pair.device == "cpu" else 256)

    @property
    def uses_pair(self) -> bool:
        return any(name in MEASURES for name in self.detectors)
