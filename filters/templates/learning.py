"""The methods T001 to T006 of the thesis: from the bits of a page's nodes to their classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from filters.templates.classes import Node, NodeClass, class_of
from filters.templates.features import Features, features_of
from filters.templates.words import Words

Learner = Callable[[Sequence[Features], Sequence[str], Sequence[Features]], Sequence[str]]
"""From the features and labels of some rows, and the features of others, to the labels of the others."""


class Method(StrEnum):
    """How the nodes of a page get their classes."""

    T001 = "t001"  # the bits
    T002 = "t002"  # the same, and an invalid node is boilerplate
    T003 = "t003"  # a learner that is trained on the nodes whose bits are valid, and classifies all; one layer
    T004 = "t004"  # two layers
    T005 = "t005"  # three layers
    T006 = "t006"  # another learner, three layers


_LAYERS = {Method.T003: 1, Method.T004: 2, Method.T005: 3, Method.T006: 3}
LEARNED = frozenset(_LAYERS)


def classes_of(
    words: Words, nodes: Sequence[Node], cross: int, method: Method, learner: Learner | None = None
) -> list[NodeClass]:
    """The class of each node. A page whose valid nodes are all of one class has T002's classes under every learner."""
    classes = [class_of(node.bits, cross) for node in nodes]
    if method is Method.T001:
        return classes
    if learner is not None and method in LEARNED:
        valid = [place for place, of in enumerate(classes) if of is not NodeClass.INVALID]
        labels = [classes[place].value for place in valid]
        if len(set(labels)) > 1:
            rows = features_of(words, nodes, _LAYERS[method])
            return [NodeClass(label) for label in learner([rows[place] for place in valid], labels, rows)]
    return [NodeClass.BOILERPLATE if of is NodeClass.INVALID else of for of in classes]
