"""Fits the article classifier: boosted stumps for each kind of page, merged into one step function per input.

A stump looks at one input, so their sum is a generalised additive model. scikit-learn is imported only when a model is
trained.

J. Friedman, "Stochastic gradient boosting", Computational Statistics & Data Analysis 38, 2002.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.errors import MissingExtra

Floats = NDArray[np.float64]
UNKNOWN = -1.0  # an unknown value in a matrix of inputs that are never negative

STUMPS, RATE, SHARE, INPUT_SHARE, LEAST_PAGES = 300, 0.05, 0.5, 0.3, 8
BAGS = 3  # fits with different random numbers, whose mean is taken
FOLDS = 8
_DIGITS = 4


class Steps(NamedTuple):
    """The step function of an input: `values[i]` holds from above at[i - 1] to at[i]; a column for each kind."""

    at: list[float]
    values: list[list[float]]


class AdditiveModel(NamedTuple):
    """Logit of each kind = its bias + the steps of all inputs."""

    kinds: list[str]
    bias: list[float]
    steps: dict[str, Steps]

    def logits(self, matrix: Floats, names: Sequence[str]) -> Floats:
        """Rows of logits, a column for each kind, of rows of inputs with these names."""
        found = np.tile(np.array(self.bias), (len(matrix), 1))
        for name, steps in self.steps.items():
            places = np.searchsorted(steps.at, matrix[:, list(names).index(name)], side="left")
            found += np.array(steps.values)[places]
        return np.asarray(found)


def fit(
    matrix: Floats,
    names: Sequence[str],
    kinds: Sequence[str],
    weights: Floats,
    *,
    bags: int = BAGS,
    stumps: int = STUMPS,
) -> AdditiveModel:
    """Fit a model of rows of inputs with known kinds. Raises MissingExtra; ValueError for a kind without pages."""
    known = sorted(set(kinds))
    if len(known) < 2:
        raise ValueError("the labelled pages are all of one kind")
    columns = [_fit(matrix, np.array([of == kind for of in kinds]), weights, bags, stumps) for kind in known]
    steps: dict[str, Steps] = {}
    for place, name in enumerate(names):
        parts = [column[1].get(place, ([], [0.0])) for column in columns]
        at = sorted({edge for edges, _ in parts for edge in edges})
        inside = [at[0], *at[1:], at[-1] + 1] if at else []
        values = [[round(row[bisect_left(edges, point)], _DIGITS) for edges, row in parts] for point in inside]
        if at:
            steps[name] = Steps(at, values)
    return AdditiveModel(known, [round(bias, _DIGITS) for bias, _ in columns], steps)


def out_of_fold(
    matrix: Floats, names: Sequence[str], kinds: Sequence[str], weights: Floats, groups: Sequence[str], tested: Any
) -> Floats:
    """Logits of the rows `tested` by models that saw no page of their group; a column for each kind, sorted by name."""
    folds = fold_of(groups)
    found = np.zeros((len(matrix), len(set(kinds))))
    for fold in range(FOLDS):
        seen = folds != fold
        model = fit(
            matrix[seen], names, [kind for kind, is_seen in zip(kinds, seen, strict=True) if is_seen], weights[seen]
        )
        found[~seen] = model.logits(matrix[~seen], names)
    return np.asarray(found[tested])


def fold_of(groups: Sequence[str]) -> NDArray[np.int_]:
    """The fold of each group's rows, by a hash of its name."""
    import xxhash

    return np.array([xxhash.xxh3_64_intdigest(group.encode()) % FOLDS for group in groups])


def _fit(
    matrix: Floats, is_kind: NDArray[np.bool_], weights: Floats, bags: int, stumps: int
) -> tuple[float, dict[int, tuple[list[float], list[float]]]]:
    """Bias, and for each used input its edges and the values between them."""
    try:
        from sklearn.ensemble import GradientBoostingClassifier
    except ImportError as error:
        raise MissingExtra("training needs scikit-learn: pip install 'farmwatch[train]'") from error
    bias = 0.0
    parts: dict[int, list[tuple[float, float, float]]] = {}  # input -> (edge, value up to it, value above it)
    for seed in range(bags):
        boosted = GradientBoostingClassifier(
            max_depth=1,
            n_estimators=stumps,
            learning_rate=RATE,
            subsample=SHARE,
            max_features=INPUT_SHARE,
            min_samples_leaf=LEAST_PAGES,
            random_state=seed,
        ).fit(matrix, is_kind, sample_weight=weights)
        share = float(boosted.init_.class_prior_[1])
        bias += np.log(share / (1 - share)) / bags
        for (stump,) in boosted.estimators_:
            tree = stump.tree_
            leaves = [float(value) * RATE / bags for value in tree.value[:, 0, 0]]
            if len(leaves) == 1:
                bias += leaves[0]
            else:
                parts.setdefault(int(tree.feature[0]), []).append((_edge(tree.threshold[0]), leaves[1], leaves[2]))
    return bias, {place: _merged(stumped) for place, stumped in parts.items()}


def _edge(threshold: float) -> float:
    return float(f"{threshold:.{_DIGITS}g}")


def _merged(stumps: Sequence[tuple[float, float, float]]) -> tuple[list[float], list[float]]:
    """The sum of stumps as one step function."""
    edges = sorted({edge for edge, _, _ in stumps})
    points = [*edges, edges[-1] + 1]
    return edges, [sum(low if point <= edge else high for edge, low, high in stumps) for point in points]
