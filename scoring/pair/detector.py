"""Binoculars and Fast-DetectGPT as detectors: two measures of the readings of one engine.

Nothing at the top of this module needs torch: identities and warnings are known without it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scoring.engine.detector import EngineDetector, of_threshold_set
from scoring.engine.loading import libraries, unchanged
from scoring.engine.settings import cut_in_words
from scoring.interface import UNCALIBRATED
from scoring.pair.settings import Measure, PairSettings, pair_identity

if TYPE_CHECKING:
    from scoring.pair.engine import PairEngine
    from scoring.pair.scores import PairReading
    from scoring.thresholds.threshold_set import ThresholdSet

_TITLES = {"binoculars": "Binoculars (arXiv 2401.12070)", "fast-detectgpt": "Fast-DetectGPT (arXiv 2310.05130)"}
STATED = {"accuracy": 0.021, "low-fpr": 0.004}
_PUBLISHED = {"accuracy": ("80%", "9%"), "low-fpr": ("41%", "4%")}
"""Published threshold -> share flagged of 2,106 human pages of 100 words or more; then of 511 LLM pages, and of 1,306
shorter human pages: 69 real sites of 2025, labelled by site."""


class PairDetector(EngineDetector["PairReading"]):
    """One measure of a pair of language models, with its thresholds if it has any."""

    def __init__(self, engine: PairEngine, base: str, measure: Measure, thresholds: ThresholdSet | None = None) -> None:
        """As `EngineDetector`, by `measure`."""
        super().__init__(engine, base, thresholds)
        self.measure: Measure = measure
        self.warning = pair_warning(self.identity, thresholds.measured_on if thresholds else "")

    def number(self, reading: PairReading) -> float:
        return reading.binoculars if self.measure == "binoculars" else reading.fast_detectgpt


def load_pair_engine(settings: PairSettings) -> PairEngine:
    """The pair of `settings` on its device, ready to read.

    Raises MissingExtra, MissingModel, UnsupportedModel, NoDevice, DeviceLost.
    """
    libraries()  # names the install command if torch is missing; the engine imports it
    from scoring.engine.suspects import default_file
    from scoring.pair.engine import PairEngine
    from scoring.pair.models import load_models

    load, identify = partial(load_models, settings), partial(pair_identity, settings, "binoculars")
    return PairEngine(load(), settings, reload=unchanged(load, identify), suspects=default_file(identify()))


def pair_warning(identity: str, measured_on: str = "") -> str:
    """The warning shown with every score of the pair detector `identity`; `measured_on` is of its threshold set."""
    measure, pair, number_format, cut, tag = identity.split("/")
    said = f"{_TITLES[measure]} on {pair.partition('@')[0]} in {number_format}, English prose, {cut_in_words(cut)}"
    if tag == UNCALIBRATED:
        return f"{said}; no threshold: its scores are not flags, and error rates are unknown for this pair"
    if tag not in _PUBLISHED:
        return f"{said}; {of_threshold_set(tag, measured_on)}"
    flagged, (sensitivity, short) = STATED[tag], _PUBLISHED[tag]
    return (
        f"{said}; published threshold {tag}, for the original weights, which a folder's name does not prove: of pages"
        f" with 100 words or more of 69 real sites (2025) it flags {flagged:.1%} of the human ones and finds"
        f" {sensitivity} of the LLM ones ({short} of shorter human pages, which are not scored by default); newer"
        " models may evade it"
    )
