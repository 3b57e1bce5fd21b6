"""The learners of `farmwatch templates`, by scikit-learn: imported here only, and only when one is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scoring.errors import MissingExtra

NEIGHBOURS = 5
TREES = 10
_SEED = 0

Rows = Sequence[Sequence[float]]


def nearest_neighbours(rows: Rows, labels: Sequence[str], others: Rows) -> list[str]:
    """Labels of the others by their five nearest rows. Raises MissingExtra."""
    return _predicted(_sklearn().neighbors.KNeighborsClassifier(min(NEIGHBOURS, len(rows))), rows, labels, others)


def random_forest(rows: Rows, labels: Sequence[str], others: Rows) -> list[str]:
    """Labels of the others by ten trees, split by Gini impurity; the same for the same rows. Raises MissingExtra."""
    forest = _sklearn().ensemble.RandomForestClassifier(TREES, criterion="gini", random_state=_SEED)
    return _predicted(forest, rows, labels, others)


def check_installed() -> None:
    """Raises MissingExtra without scikit-learn."""
    _sklearn()


def _sklearn() -> Any:
    try:
        import sklearn.ensemble
        import sklearn.neighbors
    except ImportError as error:
        raise MissingExtra("this method needs scikit-learn", extra="train") from error
    return sklearn


def _predicted(classifier: Any, rows: Rows, labels: Sequence[str], others: Rows) -> list[str]:
    classifier.fit(np.array(rows, np.float64), np.array(labels))
    return [str(label) for label in classifier.predict(np.array(others, np.float64))]
