"""From score to probability: the curve recovers the law of the labels, and reliability shows a wrong curve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scoring.calibration.platt import cross_fitted, equal_weights, fit_curve, reliability


def drawn(slope: float, offset: float, texts: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels; the odds of llm are exp(slope x + offset)."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 2, texts)
    return score, rng.random(texts) < 1 / (1 + np.exp(-(slope * score + offset)))


def test_the_curve_is_the_law_that_made_the_labels() -> None:
    """From 40,000 texts, slope and offset are recovered.

    Equal weights move the offset by the log odds of the labels.
    """
    score, llm = drawn(1.5, -1.0, 40_000)
    odds = math.log(llm.mean() / (1 - llm.mean()))
    curve = fit_curve(score, llm)
    assert curve.slope == pytest.approx(1.5, abs=0.06)
    assert curve.offset == pytest.approx(-1.0 - odds, abs=0.08)


def test_separate_heaps_make_no_step() -> None:
    """If a score separates the labels, the probabilities are Platt's (N + 1)/(N + 2), not 0 and 1."""
    score = np.repeat([0.0, 1.0], 50)
    curve = fit_curve(score, score > 0.5)
    assert curve.p_llm(1.0) == pytest.approx(51 / 52, abs=1e-6)
    assert curve.p_llm(0.0) == pytest.approx(1 / 52, abs=1e-6)


def test_equal_scores_say_one_half() -> None:
    """A constant score gives a flat curve, and the fit does not fail."""
    curve = fit_curve(np.full(20, 3.0), np.arange(20) < 5)
    assert curve.p_llm(3.0) == pytest.approx(0.5, abs=0.12)


def test_true_probabilities_are_reliable_and_false_ones_are_not() -> None:
    """The true p has a calibration error below .02; a p with the square root of the odds has one above .05."""
    score, llm = drawn(2.0, 0.0, 20_000)
    own = np.arange(len(score))
    honest = reliability(1 / (1 + np.exp(-2.0 * score)), llm, own)
    timid = reliability(1 / (1 + np.exp(-0.7 * score)), llm, own)
    assert honest.calibration_error < 0.02 and timid.calibration_error > 0.05
    assert honest.brier < timid.brier < 0.25
    covered = [g.observed.low <= g.mean <= g.observed.high for g in honest.groups if g.observed.low is not None]  # type: ignore[operator]
    assert sum(covered) >= 8


def test_groups_hold_every_text_once() -> None:
    """Ten groups have about a tenth of the weight each; every text is in one group."""
    score, llm = drawn(1.0, -1.5, 5_000)
    found = reliability(1 / (1 + np.exp(-score)), llm, np.arange(5_000))
    assert len(found.groups) == 10
    assert sum(group.human for group in found.groups) == int((~llm).sum())
    assert sum(group.llm for group in found.groups) == int(llm.sum())
    weights = equal_weights(llm)
    for group in found.groups:
        held = group.llm * weights[llm][0] + group.human * weights[~llm][0]
        assert held == pytest.approx(0.1, abs=0.01)


def test_no_text_helps_to_judge_itself() -> None:
    """Random labels per site, with one score for all pages of a site, cannot be predicted.

    Cross-fitted by site, the Brier score is that of chance or worse; with a site's own texts in the fit it is better.
    """
    rng = np.random.default_rng(4)
    sites = np.repeat(np.arange(12), 30)
    llm = np.repeat(rng.permutation(12) < 6, 30)
    score = np.repeat(rng.normal(0, 1, 12), 30)
    crossed = reliability(cross_fitted(score, llm, sites), llm, sites).brier
    curve = fit_curve(score, llm)
    own = reliability(np.array([curve.p_llm(float(s)) for s in score]), llm, sites).brier
    assert own < 0.25 < crossed
