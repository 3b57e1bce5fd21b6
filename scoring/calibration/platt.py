r"""Fits a curve from score to probability, and measures its reliability.

Platt (1999): logit p = slope x + offset, the pair that makes the labels most likely. Each label has half of the weight,
so p is the probability if half of all texts were llm, whatever the mixture of the labels. The targets are Platt's
(N + 1)/(N + 2) and 1/(N + 2) instead of 1 and 0, because two separate heaps of scores would otherwise make a step. The
log-likelihood is concave: Newton's method finds its maximum. The curve is rounded, because it is part of an identity.

A curve looks better on its own texts, so reliability uses curves fitted to the other folds, with all texts of a site in
one fold: ten groups of rising p, each with its mean p and its share of llm. The expected calibration error is the mean
distance of the two, the Brier score the mean squared distance of p from the label.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.statistics.logistic import logistic
from scoring.statistics.rounding import OFFSET_PLACES, SCORE_DIGITS, significant
from scoring.statistics.shares import Codes, Numbers, Share, share
from scoring.thresholds.threshold_set import Curve

FOLDS = 5
GROUPS = 10
_P_PLACES = 9  # digits after the point: closer values are in one group
_FLAT = 1e-12  # differences of the loss below this are rounding errors
_SEED = 5  # of the assignment of sites to folds: any number, fixed for reproducible reports

Labels = NDArray[np.bool_]


class ReliabilityGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Texts of neighbouring p. Shares at equal weights of both labels."""

    low: float  # least p
    high: float  # greatest p
    mean: float
    human: int
    llm: int
    observed: Share


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """The reliability of probabilities, at equal weights of both labels."""

    groups: list[ReliabilityGroup]
    calibration_error: float
    brier: float


def equal_weights(llm: Labels) -> Numbers:
    """Weights [n] that sum to one half for each label."""
    positives = int(llm.sum())
    return np.where(llm, 0.5 / max(positives, 1), 0.5 / max(len(llm) - positives, 1))


def fit_curve(score: Numbers, llm: Labels) -> Curve:
    """Platt's curve through scores [n] of both labels, rounded.

    The offset is that of the rounded slope: log odds near the mean score lose nothing, wherever the scores' zero lies.
    """
    centre, width = float(score.mean()), float(score.std()) or 1.0
    x = (score - centre) / width
    weights, positives = equal_weights(llm), int(llm.sum())
    target = np.where(llm, (positives + 1) / (positives + 2), 1 / (len(llm) - positives + 2))
    beta = np.zeros(2)
    design = np.stack([x, np.ones_like(x)])
    loss = _loss(beta, design, target, weights)
    for _ in range(100):
        p = logistic(beta @ design)
        gradient = design @ (weights * (p - target))
        curvature = (design * (weights * p * (1 - p))) @ design.T + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        if float(np.abs(step).max()) < 1e-10:
            break
        while (new := _loss(beta - step, design, target, weights)) > loss + _FLAT and float(np.abs(step).max()) > 1e-12:
            step /= 2  # a full step of Newton's method may overshoot far from the maximum
        beta, loss = beta - step, min(loss, new)
    slope = significant(float(beta[0]) / width, SCORE_DIGITS)
    return Curve(slope=slope, offset=round(float(beta[1]) - slope * centre, OFFSET_PLACES))


def cross_fitted(score: Numbers, llm: Labels, clusters: Codes) -> Numbers:
    """p of each text, by the curve fitted to the folds without its cluster."""
    # clusters are assigned to folds in turn, mostly-llm ones separately
    names, codes = np.unique(clusters, return_inverse=True)
    mostly_llm = np.bincount(codes, llm) * 2 > np.bincount(codes)
    shuffled = np.random.default_rng(_SEED).permutation(len(names))
    fold_of = np.empty(len(names), np.intp)
    for kind in (False, True):
        dealt = shuffled[mostly_llm[shuffled] == kind]
        fold_of[dealt] = np.arange(len(dealt)) % FOLDS
    folds = fold_of[codes]
    p = np.empty(len(score))
    for fold in range(FOLDS):
        held = folds == fold
        curve = fit_curve(score[~held], llm[~held])
        p[held] = logistic(curve.slope * score[held] + curve.offset)
    return p


def reliability(p: Numbers, llm: Labels, clusters: Codes) -> Reliability:
    """Measure the reliability of probabilities [n] for texts of these labels."""
    p = np.round(p, _P_PLACES)
    weights = equal_weights(llm)
    order = np.argsort(p, kind="stable")
    cumulated = np.cumsum(weights[order])
    # a group ends when it has a tenth of the weight; texts of equal p stay together
    ends = p[order][np.searchsorted(cumulated, np.arange(1, GROUPS) / GROUPS * cumulated[-1]).clip(max=len(p) - 1)]
    group_of = np.searchsorted(np.unique(ends), p, side="left")
    groups, error = [], 0.0
    for number in np.unique(group_of):
        inside = group_of == number
        w, truth = weights[inside], llm[inside]
        group = ReliabilityGroup(
            low=float(p[inside].min()),
            high=float(p[inside].max()),
            mean=float((w * p[inside]).sum() / w.sum()),
            human=int((~truth).sum()),
            llm=int(truth.sum()),
            observed=share(truth, clusters[inside], w),
        )
        assert group.observed.share is not None
        error += float(w.sum()) * abs(group.mean - group.observed.share)
        groups.append(group)
    return Reliability(groups=groups, calibration_error=error, brier=float((weights * (p - llm) ** 2).sum()))


def _loss(beta: Numbers, design: Numbers, target: Numbers, weights: Numbers) -> float:
    logit = beta @ design
    value = float((weights * (np.logaddexp(0, logit) - target * logit)).sum())
    return value if math.isfinite(value) else math.inf
