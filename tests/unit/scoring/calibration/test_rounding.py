"""A fit gives the same numbers on every processor.

Processors differ in the last digits: the tests change the inputs of a fit by one in 10^12. Rounding makes a difference
improbable, not impossible: the numbers here are not near a rounding boundary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scoring.calibration.labelled_scores import ScoredLabel, gather
from scoring.calibration.threshold import calibrate
from scoring.lite_ngram.weights import quantise
from scoring.pair.detector import PairDetector
from scoring.pair.scores import PairReading
from scoring.sites.registry import method_of_text
from scoring.statistics.rounding import significant
from scoring.thresholds.threshold_set import Curve, ThresholdSet

BASE = "binoculars/observer+performer@0a1b2c3d/float32/512"
SEEDS = range(1, 6)


def disturbed(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Each value changed by up to one in 10^12."""
    return np.asarray(values * (1 + np.random.default_rng(seed).uniform(-1e-12, 1e-12, values.shape)))


def texts() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of 400 human and 200 LLM texts, with 17 digits, and the labels."""
    rng = np.random.default_rng(3)
    llm = np.arange(600) >= 400
    return np.where(llm, rng.normal(0.8, 0.06, 600), rng.normal(1.0, 0.06, 600)), llm


class _Engine:
    """Reads a text as a number, with the last digits of some processor."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def read(self, texts: Sequence[str]) -> list[list[PairReading]]:
        """One reading per text."""
        numbers = disturbed(np.array([float(text) for text in texts]), self._seed)
        return [[PairReading(float(number), float(number), 2.0, 2.3, 300)] for number in numbers]


def pair(seed: int, chosen: ThresholdSet | None = None) -> PairDetector:
    """A pair of models on some processor."""
    engine: Any = _Engine(seed)
    return PairDetector(engine, BASE, "binoculars", chosen)


@pytest.mark.parametrize(
    ("number", "digits", "rounded"),
    [(-54.72080026, 6, -54.7208), (0.020143815219, 9, 0.0201438152), (123456789.0, 6, 123457000.0), (0.0, 6, 0.0)],
)
def test_significant_digits(number: float, digits: int, rounded: float) -> None:
    """They are counted from the first digit that is not 0; infinite numbers do not change."""
    assert significant(number, digits) == rounded == significant(rounded, digits)
    assert math.isnan(significant(math.nan, digits)) and significant(-math.inf, digits) == -math.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_do_not_depend_on_last_digits(seed: int) -> None:
    """Every quantised weight is equal, and so is the scale, which is part of the detector's identity."""
    vector = np.random.default_rng(7).normal(size=1 << 15)
    (bytes_before, before), (bytes_after, after) = quantise(vector), quantise(disturbed(vector, seed))
    assert before == after == significant(before, 9) and (bytes_before == bytes_after).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_a_pair_do_not_depend_on_last_digits(seed: int) -> None:
    """Score, probability and flag are equal, also for a score at the threshold."""
    chosen = ThresholdSet(name="mine", detector=BASE, threshold=0.9, llm_below=True, curve=Curve(-54.7208, 49.1125))
    numbers = ["0.8412345678", "0.9", "0.9000000000001", "1.012345678"]
    found = pair(seed, chosen).score(numbers)
    assert found == pair(0, chosen).score(numbers)
    assert [text.flag for text in found] == [True, False, False, False]
    assert [text.score for text in found] == [0.841235, 0.9, 0.9, 1.01235]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_calibration_does_not_depend_on_last_digits_of_the_scores(seed: int) -> None:
    """Scoring and calibration on two processors give equal sets, identities and reports."""
    score, llm = texts()

    def made(processor: int) -> tuple[ThresholdSet, object]:
        scored = pair(processor).score([str(number) for number in score])
        rows = [
            ScoredLabel(f"{BASE}/uncalibrated", bool(label), text.score, 300, f"{int(label)}{number % 20}.example")
            for number, (text, label) in enumerate(zip(scored, llm, strict=True))
        ]
        return calibrate(gather(rows), "mine", 0.05)

    found = made(seed)
    assert found == made(0)
    curve = found[0].curve
    assert curve == Curve(slope=significant(curve.slope, 6), offset=round(curve.offset, 6)) if curve else False


@pytest.mark.parametrize(
    ("text", "digest"),
    [('{"method":"sprt","numbers":{"p0":0.3333333333333333,"p1":0.6666666666666666},"close_after_ms":1}', "46816457")],
)
def test_methods_of_runs_that_began_before_keep_their_digest(text: str, digest: str) -> None:
    """Numbers from a file are not rounded: a run that stored 17 digits keeps its digest."""
    assert method_of_text(text).digest == digest
