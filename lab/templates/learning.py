"""From the bits of a page's nodes to their classes: the methods T001 to T006 of the thesis, and two of ours.

The learners of some are scikit-learn's, which is imported only when one is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from lab.templates.classes import Node, NodeClass, class_of, joint_class_of, text_chars
from lab.templates.features import features_of
from lab.templates.words import Words

_Rows = Sequence[Sequence[float]]
Learner = Callable[[_Rows, Sequence[str], _Rows], Sequence[str]]
"""From the features and labels of some rows, and the features of others, to the labels of the others."""


class Method(StrEnum):
    """How the nodes of a page get their classes."""

    T001 = "t001"  # the bits
    T002 = "t002"  # the same, and an invalid node is boilerplate
    T003 = "t003"  # a learner that is trained on the nodes whose bits are valid, and classifies all; one layer
    T004 = "t004"  # two layers
    T005 = "t005"  # three layers
    T006 = "t006"  # another learner, three layers
    JOINT = "joint"  # the bits, by a rule that leaves fewer nodes invalid
    RUNS = "runs"  # T002, and all nodes of a run get the class of most of its characters


_LAYERS = {Method.T003: 1, Method.T004: 2, Method.T005: 3, Method.T006: 3}
LEARNED = frozenset(_LAYERS)
MOST_LEARNED = 20_000
NEIGHBOURS = 5
TREES = 10


def classes_of(
    words: Words, nodes: Sequence[Node], cross: int, method: Method, learner: Learner | None = None
) -> list[NodeClass]:
    """The class of each node; `learner`: another than the method's.

    Under every learner, a page has T002's classes if its valid nodes are all of one class. So has one of more than
    MOST_LEARNED nodes: the time of neighbours is the square. Nodes with equal features and different classes teach
    nothing.
    """
    rule = joint_class_of if method is Method.JOINT else class_of
    classes = [rule(node.bits, cross) for node in nodes]
    if method in (Method.T001, Method.JOINT):
        return classes
    if method in LEARNED and len(nodes) <= MOST_LEARNED and {NodeClass.CONTENT, NodeClass.BOILERPLATE} <= {*classes}:
        learn = learner or (random_forest if method is Method.T006 else nearest_neighbours)
        rows = features_of(words, nodes, _LAYERS[method])
        # without rows of both labels
        valid = [(tuple(row), kind.value) for row, kind in zip(rows, classes, strict=True) if kind != NodeClass.INVALID]
        labels_of_row = Counter(row for row, _ in set(valid))
        trained = [(row, label) for row, label in valid if labels_of_row[row] == 1]
        labels = [label for _, label in trained]
        if len(set(labels)) > 1:
            return [NodeClass(label) for label in learn([row for row, _ in trained], labels, rows)]
    decided: list[NodeClass] = [NodeClass.BOILERPLATE if kind is NodeClass.INVALID else kind for kind in classes]
    if method is not Method.RUNS:
        return decided
    # a few words that a paragraph shares by chance with another page do not make a hole in it
    content_chars = Counter[int]()  # run -> characters of content minus others
    for node, kind in zip(nodes, decided, strict=True):
        chars = text_chars(words, node) or 1
        content_chars[node.run] += chars if kind is NodeClass.CONTENT else -chars
    return [NodeClass.CONTENT if content_chars[node.run] > 0 else NodeClass.BOILERPLATE for node in nodes]


def nearest_neighbours(rows: _Rows, labels: Sequence[str], others: _Rows) -> list[str]:
    """The labels of the NEIGHBOURS nearest rows decide."""
    from sklearn.neighbors import KNeighborsClassifier

    return _predicted(KNeighborsClassifier(min(NEIGHBOURS, len(rows))), rows, labels, others)


def random_forest(rows: _Rows, labels: Sequence[str], others: _Rows) -> list[str]:
    """TREES decision trees decide."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(TREES, criterion="gini", random_state=0)
    return _predicted(forest, rows, labels, others)


def _predicted(classifier: Any, rows: _Rows, labels: Sequence[str], others: _Rows) -> list[str]:
    classifier.fit(np.array(rows, np.float64), np.array(labels))
    return [str(label) for label in classifier.predict(np.array(others, np.float64))]
