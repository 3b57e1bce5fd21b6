"""Settings of SCORE: the detectors."""

from __future__ import annotations

from pathlib import Path

import msgspec

from scoring.encoder.settings import EncoderSettings
from scoring.pair.settings import MEASURES, PairSettings

ModelSettings = PairSettings | EncoderSettings


class ScoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of SCORE, in order of use."""

    detectors: list[str] = msgspec.field(default_factory=lambda: ["lite-ngram"])
    """Names of the detectors, each with its own identity."""
    weights: Path | None = None
    """Weights file of lite-ngram instead of the shipped one; its numbers are next to it as .json."""
    thresholds: dict[str, str] = {}
    """Detector's name -> a threshold set: the name of a published one, or a file of calibrated ones."""
    pair: PairSettings = PairSettings()
    encoder: EncoderSettings = EncoderSettings()

    def __post_init__(self) -> None:
        if not self.detectors:
            raise ValueError("score.detectors is empty: name at least one, such as lite-ngram")
        twice = sorted({name for name in self.detectors if self.detectors.count(name) > 1})
        if twice:
            raise ValueError(f"score.detectors names {', '.join(twice)} twice")

    @property
    def texts_at_once(self) -> int:
        """Texts per batch. A stop may repeat one, and a live text waits for two while replays are scored."""
        devices = [models.device for models in self.models]
        return 16 if "cpu" in devices else 256

    @property
    def models(self) -> list[ModelSettings]:
        """Settings of the language models that these detectors read with."""
        pair: list[ModelSettings] = [self.pair] if any(name in MEASURES for name in self.detectors) else []
        return [*pair, self.encoder] if "encoder" in self.detectors else pair
