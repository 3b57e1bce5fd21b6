"""Several detectors: a text is read once, scores keep their order, and thresholds choose the displayed number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scoring.detectors.detector_set import DetectorSet, number_of
from scoring.interface import TextScore
from scoring.pair.detector import PairDetector
from scoring.thresholds.threshold_set import ThresholdSet
from tests.support.fake_detector import FakeDetector

BASE = "a+b@12345678/float32/512"


class Engine:
    """Abstains from everything, and records its inputs."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def read(self, texts: list[str]) -> list[Any]:
        self.asked.append(list(texts))
        return [TextScore(abstain="too_short", tokens=len(text)) for text in texts]


def pair(engine: Any, measure: Any, thresholds: ThresholdSet | None = None) -> PairDetector:
    """One measure of a pair."""
    return PairDetector(engine, f"{measure}/{BASE}", measure, thresholds)


def test_two_measures_of_one_pair_read_a_text_once() -> None:
    """The engine reads once for both; each detector gives its own score, in order."""
    engine = Engine()
    detectors = DetectorSet([FakeDetector(), pair(engine, "binoculars"), pair(engine, "fast-detectgpt")])
    scores = detectors.score(["LLM", "x"])
    assert engine.asked == [["LLM", "x"]]
    assert detectors.identities == ["fake/1", f"binoculars/{BASE}/uncalibrated", f"fast-detectgpt/{BASE}/uncalibrated"]
    abstained = [TextScore(abstain="too_short", tokens=tokens) for tokens in (3, 1)]
    assert [row[0].flag for row in scores if isinstance(row[0], TextScore)] == [True, False]
    assert [row[1:] for row in scores] == [(said, said) for said in abstained]


@pytest.mark.parametrize(("number", "expected"), [("score", 2.0), ("p_llm", 0.25)])
def test_the_number_compared_is_that_of_the_threshold_set(number: Any, expected: float) -> None:
    """The threshold set defines whether a threshold applies to the score or to p_llm."""
    thresholds = ThresholdSet(name="mine", detector="fake", number=number, threshold=0.5, llm_below=False)
    compared = number_of(SimpleNamespace(thresholds=thresholds))
    assert compared(TextScore(score=2.0, p_llm=0.25)) == expected


def test_without_a_set_the_probability_goes_before_the_score() -> None:
    """Without a threshold set, p_llm is shown if it exists, else the score, else nothing."""
    compared = number_of(FakeDetector())
    assert compared(TextScore(score=2.0, p_llm=0.25)) == 0.25
    assert compared(TextScore(score=2.0)) == 2.0
    assert compared(TextScore(abstain="too_short")) is None
