"""Fits the article classifier: boosted stumps for each kind of page, merged into one step function per input.

A stump looks at one input, so their sum is a generalised additive model. Each kind against all others is fitted by
stochastic gradient boosting of the logistic loss, several times, and the mean is taken. The values of an input are put
into bins first, so that a stump is found by sums over bins.

J. Friedman, "Stochastic gradient boosting", Computational Statistics & Data Analysis 38, 2002; T. Chen and C. Guestrin,
"XGBoost: a scalable tree boosting system", KDD 2016, for the gain of a split by first and second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from filters.articles.model import StepFunction
from scoring.errors import TooFewLabels
from scoring.statistics.logistic import logistic
from scoring.statistics.rounding import significant

Floats = NDArray[np.float64]
UNKNOWN = -1.0
"""An unknown value in a matrix of inputs, which are never negative: always in a bin of its own."""

STUMPS, RATE, SHARE, INPUT_SHARE, LEAST_PAGES = 1400, 0.05, 0.5, 0.3, 8
FITS = 4
"""Boostings from other random draws, whose mean is the model: it varies less with the pages than each of them."""
BINS = 32
FOLDS = 8
_LEAST_CURVATURE = 0.05  # of a leaf: below this all its pages are fitted already, and its value would be huge
_EDGE_DIGITS = 4
_GAIN_PLACES = 9  # of a share of the largest gain; the last bits of a sum are the processor's
_LOGIT_PLACES = 3


class AdditiveModel(NamedTuple):
    """Logit of each kind = its bias + the steps of all inputs.

    The mean of each step function over the training pages is 0, so a step says how an input differs from the usual.
    """

    kinds: tuple[str, ...]
    bias: tuple[float, ...]
    steps: dict[str, StepFunction]

    def parts(self, matrix: Floats, names: Sequence[str]) -> dict[str, Floats]:
        """Input -> its part in the logits of rows of inputs with these names, a column for each kind."""
        return {
            name: np.array(table.values)[np.searchsorted(table.at, matrix[:, list(names).index(name)])]
            for name, table in self.steps.items()
        }

    def logits(self, matrix: Floats, names: Sequence[str]) -> Floats:
        """Rows of logits, a column for each kind."""
        return sum(self.parts(matrix, names).values(), np.tile(np.array(self.bias), (len(matrix), 1)))


def fit(
    matrix: Floats, names: Sequence[str], kinds: Sequence[str], weights: Floats, *, known: Sequence[str] = ()
) -> AdditiveModel:
    """Fit a model of rows of inputs with known kinds, of all kinds that occur or of `known`. Raises TooFewLabels."""
    classes = sorted(set(known or kinds))
    if len(classes) < 2:
        raise TooFewLabels("the labelled pages are all of one kind: label pages of other kinds too")
    edges = [_edges(column) for column in matrix.T]
    codes = np.stack([np.searchsorted(at, column) for at, column in zip(edges, matrix.T, strict=True)], axis=1)
    is_kind = np.array(kinds)[:, None] == np.array(classes)
    share = (weights @ is_kind + 1) / (weights.sum() + len(classes))  # never 0 or 1
    bias = np.log(share / (1 - share))
    tables = np.mean([_boosted(codes, is_kind, weights, bias, np.random.default_rng(seed)) for seed in range(FITS)], 0)
    steps = {}
    for place, name in enumerate(names):
        table = tables[place, : len(edges[place]) + 1]
        mean = weights @ table[codes[:, place]] / weights.sum()
        bias += mean
        rows = [tuple(_rounded(row)) for row in table - mean]
        kept = [edge for edge in range(len(edges[place])) if rows[edge] != rows[edge + 1]]
        if kept:
            at = tuple(edges[place][edge] for edge in kept)
            steps[name] = StepFunction(at, (*(rows[edge] for edge in kept), rows[-1]))
    return AdditiveModel(tuple(classes), tuple(_rounded(bias)), steps)


def out_of_fold(
    matrix: Floats,
    names: Sequence[str],
    kinds: Sequence[str],
    weights: Floats,
    groups: Sequence[str],
    on_progress: Callable[[int], None] = lambda _: None,
) -> Floats:
    """The logits of each row by a model that saw no page of its group; a column for each kind, sorted by name.

    `on_progress` gets 1 after each of the FOLDS fits. Raises TooFewLabels.
    """
    folds, known = fold_of(groups), sorted(set(kinds))
    logits = np.zeros((len(matrix), len(known)))
    labels = np.array(kinds)
    for fold in range(FOLDS):
        seen = folds != fold
        model = fit(matrix[seen], names, labels[seen].tolist(), weights[seen], known=known)
        logits[~seen] = model.logits(matrix[~seen], names)
        on_progress(1)
    return logits


def fold_of(groups: Sequence[str], number: int = FOLDS) -> NDArray[np.int_]:
    """The fold of each group's rows: all folds have as many groups, or one more. Raises TooFewLabels."""
    ordered = sorted(set(groups), key=lambda group: (xxhash.xxh3_64_intdigest(group.encode()), group))
    if len(ordered) < number:
        raise TooFewLabels(f"pages of {len(ordered)} domains are too few to test on: label pages of at least {number}")
    folds = {group: place % number for place, group in enumerate(ordered)}
    return np.array([folds[group] for group in groups])


def _edges(values: Floats) -> list[float]:
    """Up to BINS - 1 rising edges: one parts unknown values, with about as many known values between the others."""
    known, counts = np.unique(values[values != UNKNOWN], return_counts=True)
    middles = (known[:-1] + known[1:]) / 2
    if len(middles) > BINS - 2:
        wanted = np.linspace(0, counts.sum(), BINS)[1:-1]
        middles = middles[np.unique(np.searchsorted(np.cumsum(counts)[:-2], wanted))]
    unknown = {UNKNOWN / 2} if (values == UNKNOWN).any() else set()
    return sorted(unknown | {significant(float(middle), _EDGE_DIGITS) for middle in middles})


def _boosted(
    codes: NDArray[np.int_], is_kind: NDArray[np.bool_], weights: Floats, bias: Floats, rng: np.random.Generator
) -> Floats:
    """The sum of all stumps as a table: input, bin, kind."""
    pages, inputs = codes.shape
    kinds = is_kind.shape[1]
    tables = np.zeros((inputs, BINS, kinds))
    logits = np.tile(bias, (pages, 1))
    for _ in range(STUMPS):
        rows = rng.permutation(pages)[: max(1, round(pages * SHARE))]
        chosen = np.sort(rng.permutation(inputs)[: max(1, round(inputs * INPUT_SHARE))])
        probability = logistic(logits[rows])
        slopes = (is_kind[rows] - probability) * weights[rows, None]
        curvatures = probability * (1 - probability) * weights[rows, None]
        bins = (codes[np.ix_(rows, chosen)] + np.arange(len(chosen)) * BINS).T.ravel()

        def below(numbers: Floats, bins: NDArray[np.int_] = bins, width: int = len(chosen)) -> Floats:
            """Input, edge -> the sum of `numbers`, one for each row, of the rows up to the edge."""
            sums = np.bincount(bins, np.tile(numbers, width), minlength=width * BINS)
            return np.asarray(np.cumsum(sums.reshape(width, BINS), axis=1)[:, :-1])

        few = below(np.ones(len(rows)))
        possible = (few >= LEAST_PAGES) & (few <= len(rows) - LEAST_PAGES)
        for kind in range(kinds):
            slope, curvature = slopes[:, kind], curvatures[:, kind]
            total, bend = slope.sum(), curvature.sum()
            low, low_bend = below(slope), below(curvature)
            high, high_bend = total - low, bend - low_bend
            allowed = possible & (low_bend >= _LEAST_CURVATURE) & (high_bend >= _LEAST_CURVATURE)
            if not allowed.any():
                continue
            gain = np.full(low.shape, -1.0)
            gain[allowed] = (low**2)[allowed] / low_bend[allowed] + (high**2)[allowed] / high_bend[allowed]
            best = np.argmax(np.round(gain / gain.max(), _GAIN_PLACES))  # of equal ones the first, on every processor
            place, edge = np.unravel_index(best, gain.shape)
            column = chosen[place]
            low_leaf = RATE * low[place, edge] / low_bend[place, edge]
            high_leaf = RATE * high[place, edge] / high_bend[place, edge]
            tables[column, : edge + 1, kind] += low_leaf
            tables[column, edge + 1 :, kind] += high_leaf
            logits[:, kind] += np.where(codes[:, column] <= edge, low_leaf, high_leaf)
    return tables


def _rounded(numbers: Floats) -> list[float]:
    return [round(float(number), _LOGIT_PLACES) + 0.0 for number in numbers]  # + 0.0: no minus zero
