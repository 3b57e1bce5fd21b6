"""A detector on an engine: a score per text, and a flag by its threshold set.

A text's score is the mean of the scores of its windows, weighted by tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from scoring.errors import BadThresholds, PoisonText
from scoring.interface import UNCALIBRATED, TextScore
from scoring.statistics.rounding import SCORE_DIGITS, significant

if TYPE_CHECKING:
    from scoring.engine.engine import ModelEngine
    from scoring.thresholds.threshold_set import ThresholdSet


class CountedReading(Protocol):
    """A reading that knows its tokens."""

    @property
    def tokens(self) -> int: ...


Read = TypeVar("Read", bound=CountedReading)


class EngineDetector(Generic[Read]):
    """A score of the readings of an engine, with thresholds if it has any."""

    warning: str

    def __init__(self, engine: ModelEngine[Any, Read], base: str, thresholds: ThresholdSet | None = None) -> None:
        """Judge the readings of `engine`; `base` is the identity without the threshold set.

        Raises BadThresholds for a set that is not on the score.
        """
        if thresholds is not None and thresholds.number != "score":
            raise BadThresholds(
                f"{thresholds.name} is a threshold on p_llm, which {base} does not have: calibrate anew"
            )
        self.engine = engine
        self.thresholds = thresholds
        self.identity = f"{base}/{UNCALIBRATED if thresholds is None else thresholds.tag}"

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

    def judge(self, result: Sequence[Read] | TextScore | PoisonText) -> TextScore | PoisonText:
        """Score the readings of a text's windows; an abstention and a PoisonText stay as they are.

        A flag follows from a rounded score, so a record explains it.
        """
        if isinstance(result, PoisonText | TextScore):
            return result
        tokens = sum(window.tokens for window in result)
        weighted = [(window.tokens / tokens, self.number(window)) for window in result]
        mean = math.fsum(weight * number for weight, number in weighted)
        score, spread = significant(mean, SCORE_DIGITS), None
        if len(result) > 1:
            variance = math.fsum(weight * (number - mean) ** 2 for weight, number in weighted)
            spread = significant(math.sqrt(variance), SCORE_DIGITS)
        text = TextScore(score=score, tokens=tokens, windows=len(result), windows_spread=spread)
        chosen = self.thresholds
        if chosen is None:
            return text
        p_llm = None if chosen.curve is None else significant(chosen.curve.p_llm(score), SCORE_DIGITS)
        flagged = sum(chosen.flag(significant(number, SCORE_DIGITS)) for _, number in weighted)
        return replace(text, p_llm=p_llm, flag=chosen.flag(score), windows_flagged=flagged)

    def number(self, reading: Read) -> float:
        """The detector's score of a window."""
        raise NotImplementedError


def of_threshold_set(tag: str, measured_on: str) -> str:
    """The end of the warning of a detector with a threshold set that is not published."""
    if measured_on:
        return f"threshold set {tag}, measured on {measured_on}"
    return f"threshold set {tag} of the operator: error rates in the report of its calibration"
