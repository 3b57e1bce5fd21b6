"""Binoculars and Fast-DetectGPT as detectors: two measures of the readings of one engine.

Nothing at the top of this module needs torch: identities and warnings are known without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scoring.errors import BadThresholds, PoisonText, UnsupportedModel
from scoring.interface import UNCALIBRATED, TextScore
from scoring.pair.settings import Measure, PairSettings, pair_identity
from scoring.statistics.rounding import SCORE_DIGITS, significant

if TYPE_CHECKING:
    from scoring.pair.engine import PairEngine, Result
    from scoring.pair.models import PairModels
    from scoring.thresholds.threshold_set import ThresholdSet

_TITLES = {"binoculars": "Binoculars (arXiv 2401.12070)", "fast-detectgpt": "Fast-DetectGPT (arXiv 2310.05130)"}
_PUBLISHED = {"accuracy": ("2.1%", "80%", "9%"), "low-fpr": ("0.4%", "41%", "4%")}
"""Published threshold -> share flagged of 2,106 human pages of 100 words or more, of 511 LLM pages, and of 1,306
shorter human pages: 69 real sites of 2025, labelled by site."""


class PairDetector:
    """One measure of a pair of language models, with its thresholds if it has any."""

    def __init__(self, engine: PairEngine, base: str, measure: Measure, thresholds: ThresholdSet | None = None) -> None:
        """Judge the readings of `engine` by `measure`; `base` is the identity without the threshold set.

        Raises BadThresholds for a set that is not on the score.
        """
        if thresholds is not None and thresholds.number != "score":
            raise BadThresholds(
                f"{thresholds.name} is a threshold on p_llm, which {base} does not have: calibrate anew"
            )
        self.engine = engine
        self.measure: Measure = measure
        self.thresholds = thresholds
        self.identity = f"{base}/{UNCALIBRATED if thresholds is None else thresholds.tag}"
        self.warning = pair_warning(self.identity)

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """One TextScore per text.

        Raises the PoisonText of a text that must be dead-lettered (`DetectorSet` returns it), DeviceLost, DeviceGone.
        """
        scores = []
        for result in self.engine.read(texts):
            judged = self.judge(result)
            if isinstance(judged, PoisonText):
                raise judged
            scores.append(judged)
        return scores

    def judge(self, result: Result) -> TextScore | PoisonText:
        """Score a reading of the engine; an abstention and a PoisonText stay as they are.

        The flag follows from the rounded score, so a record explains it.
        """
        if isinstance(result, PoisonText | TextScore):
            return result
        number = result.binoculars if self.measure == "binoculars" else result.fast_detectgpt
        score = significant(number, SCORE_DIGITS)
        chosen = self.thresholds
        if chosen is None:
            return TextScore(score=score, tokens=result.tokens)
        p_llm = None if chosen.curve is None else significant(chosen.curve.p_llm(score), SCORE_DIGITS)
        return TextScore(score=score, p_llm=p_llm, flag=chosen.flag(score), tokens=result.tokens)


def load_pair_engine(settings: PairSettings) -> PairEngine:
    """The pair of `settings` on its device, ready to read.

    Raises MissingExtra, MissingModel, UnsupportedModel, NoDevice, DeviceLost.
    """
    from scoring.pair.models import libraries, load_models

    libraries()  # names the install command if torch is missing; the engine imports it
    from scoring.pair.engine import PairEngine
    from scoring.pair.suspects import default_file

    models = load_models(settings)
    identity = pair_identity(settings, "binoculars")

    def reload() -> PairModels:
        if pair_identity(settings, "binoculars") != identity:
            raise UnsupportedModel("the files of the models have changed since the start: start this process anew")
        return load_models(settings)

    return PairEngine(models, settings, reload=reload, suspects=default_file(identity))


def pair_warning(identity: str) -> str:
    """The warning shown with every score of the pair detector `identity`."""
    measure, pair, number_format, tokens, tag = identity.split("/")
    said = f"{_TITLES[measure]} on {pair.partition('@')[0]} in {number_format}, English prose, first {tokens} tokens"
    if tag == UNCALIBRATED:
        return f"{said}; no threshold: its scores are not flags, and error rates are unknown for this pair"
    if tag not in _PUBLISHED:
        return f"{said}; threshold set {tag} of the operator: error rates in the report of its calibration"
    flagged, sensitivity, short = _PUBLISHED[tag]
    return (
        f"{said}; published threshold {tag}, for the original weights, which a folder's name does not prove: of pages"
        f" with 100 words or more of 69 real sites (2025) it flags {flagged} of the human ones and finds {sensitivity}"
        f" of the LLM ones ({short} of shorter human pages, which are not scored by default); newer models may evade it"
    )
