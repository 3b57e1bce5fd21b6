"""The encoder as a detector. Nothing at the top of this module needs torch: identities are known without it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scoring.encoder.settings import EncoderSettings, encoder_identity
from scoring.engine.detector import EngineDetector, of_threshold_set
from scoring.engine.loading import libraries, unchanged
from scoring.engine.settings import cut_in_words
from scoring.interface import UNCALIBRATED

if TYPE_CHECKING:
    from scoring.encoder.engine import EncoderEngine, EncoderReading
    from scoring.thresholds.threshold_set import ThresholdSet


class EncoderDetector(EngineDetector["EncoderReading"]):
    """A sequence classifier's logit, with thresholds if it has any; high for a language model's text."""

    def __init__(self, engine: EncoderEngine, base: str, thresholds: ThresholdSet | None = None) -> None:
        super().__init__(engine, base, thresholds)
        self.warning = encoder_warning(self.identity, thresholds.measured_on if thresholds else "")

    def number(self, reading: EncoderReading) -> float:
        return reading.logit


def load_encoder_engine(settings: EncoderSettings) -> EncoderEngine:
    """The classifier of `settings` on its device, ready to read.

    Raises MissingExtra, MissingModel, UnsupportedModel, NoDevice, DeviceLost.
    """
    libraries()  # names the install command if torch is missing; the engine imports it
    from scoring.encoder.engine import EncoderEngine
    from scoring.encoder.model import load_encoder
    from scoring.engine.suspects import default_file

    load, identify = partial(load_encoder, settings), partial(encoder_identity, settings)
    return EncoderEngine(load(), settings, reload=unchanged(load, identify), suspects=default_file(identify()))


def encoder_warning(identity: str, measured_on: str = "") -> str:
    """The warning shown with every score of the encoder `identity`; `measured_on` is of its threshold set."""
    _, model, number_format, cut, tag = identity.split("/")
    said = f"the sequence classifier {model.partition('@')[0]} in {number_format}, {cut_in_words(cut)}"
    if tag == UNCALIBRATED:
        return (
            f"{said}; no threshold: its scores are not flags; thresholds published for a classifier fail on other pages"
            " than its own, so calibrate it on labelled ones"
        )
    return f"{said}; {of_threshold_set(tag, measured_on)}"
