"""The learners of the methods, by scikit-learn: imported here only, and only when one is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.extras import require_sklearn
from lab.templates.learning import LEARNED, Learner, Method

NEIGHBOURS = 5
TREES = 10

Rows = Sequence[Sequence[float]]


def learner_of(method: Method) -> Learner | None:
    """The learner of a method; None if it needs none. Raises MissingExtra."""
    if method not in LEARNED:
        return None
    require_sklearn()
    return random_forest if method is Method.T006 else nearest_neighbours


def nearest_neighbours(rows: Rows, labels: Sequence[str], others: Rows) -> list[str]:
    """Labels of the others by their five nearest rows."""
    from sklearn.neighbors import KNeighborsClassifier

    return _predicted(KNeighborsClassifier(min(NEIGHBOURS, len(rows))), rows, labels, others)


def random_forest(rows: Rows, labels: Sequence[str], others: Rows) -> list[str]:
    """Labels of the others by ten trees, split by Gini impurity; the same for the same rows."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(TREES, criterion="gini", random_state=0)
    return _predicted(forest, rows, labels, others)


def _predicted(classifier: Any, rows: Rows, labels: Sequence[str], others: Rows) -> list[str]:
    classifier.fit(np.array(rows, np.float64), np.array(labels))
    return [str(label) for label in classifier.predict(np.array(others, np.float64))]
