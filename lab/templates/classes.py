"""Nodes of a page, which of the other pages have them, and the class that follows.

A node is a stretch of words between two tags that the same pages have. A page is compared with the pages of its cross:
`up` and `down` are pages of the site at other URLs, `prev` and `next` are snapshots of its own. Content stays over time
and is on no other page; boilerplate is on the others, or changes. R. Leśniak, "Joint Approach to Boilerplate Detection
in Web Archives", 2017, tables B.1 to B.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from lxml import etree

from lab.templates.diff import matches
from lab.templates.words import IMAGE, Words

CUR, UP, DOWN, PREV, NEXT = 16, 8, 4, 2, 1
"""The bits of the pages of a cross; CUR is the page itself."""

ROLES = {"up": UP, "down": DOWN, "prev": PREV, "next": NEXT}


class NodeClass(StrEnum):
    """The class of a node; `invalid`: the pages do not decide it."""

    CONTENT = "content"
    BOILERPLATE = "boilerplate"
    INVALID = "invalid"


class Node(NamedTuple):
    """Words `first` to `end` of run `run`, and the pages that have them: `bits`."""

    run: int
    first: int
    end: int
    bits: int


def class_of(bits: int, cross: int) -> NodeClass:
    """The class of a node by its bits, as in the thesis; `cross` has the bits of the pages that there are.

    If it has `down` and a snapshot, a node is boilerplate only on all pages; else, if it is not content.
    """
    snapshots = cross & (PREV | NEXT)
    if bits == CUR | snapshots:
        return NodeClass.CONTENT
    if bits == cross or not cross & DOWN or not snapshots:
        return NodeClass.BOILERPLATE
    return NodeClass.INVALID


def joint_class_of(bits: int, cross: int) -> NodeClass:
    """The same, but a node that is not on `down`, or in no snapshot, is not invalid: it is boilerplate."""
    of = class_of(bits, cross)
    decided = not bits & DOWN or not bits & (PREV | NEXT)
    return NodeClass.BOILERPLATE if of is NodeClass.INVALID and decided else of


def bits_of(page: Sequence[str], others: Mapping[int, Sequence[str]]) -> list[int]:
    """The bits of each word of a page; `others` has the words of the pages of its cross, by their bit."""
    numbers: dict[str, int] = {}
    own = [numbers.setdefault(word, len(numbers)) for word in page]
    bits_of_words = [CUR] * len(page)
    for bit, words in others.items():
        for _, first, size in matches([numbers.setdefault(word, len(numbers)) for word in words], own):
            bits_of_words[first : first + size] = [bits | bit for bits in bits_of_words[first : first + size]]
    return bits_of_words


def nodes_of(words: Words, bits: Sequence[int]) -> list[Node]:
    """The nodes of a page, from the bits of its words."""
    nodes = []
    for number, (_, first, end) in enumerate(words.runs):
        began = first
        for word in range(first + 1, end):
            if bits[word] != bits[began]:
                nodes.append(Node(number, began, word, bits[began]))
                began = word
        nodes.append(Node(number, began, end, bits[began]))
    return nodes


def text_chars(words: Words, node: Node) -> int:
    """The characters of the words of a node; images have none."""
    return sum(len(word) for word in words.words[node.first : node.end] if not word.startswith(IMAGE))


def propagated(words: Words, nodes: Sequence[Node], classes: Sequence[NodeClass]) -> dict[Any, NodeClass]:
    """Element -> class, of the elements whose nodes and elements with text are all of one class."""
    class_of_element: dict[Any, NodeClass | None] = {}

    def add(element: Any, kind: NodeClass | None) -> None:
        class_of_element[element] = kind if class_of_element.get(element, kind) == kind else None

    for node, kind in zip(nodes, classes, strict=True):
        add(words.runs[node.run].element, kind)
    body = words.tree.find("body")
    for _, element in etree.iterwalk(words.tree, events=("end",)):
        if element in class_of_element and element is not body:
            add(element.getparent(), class_of_element[element])
    return {element: kind for element, kind in class_of_element.items() if kind is not None}
