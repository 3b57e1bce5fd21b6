"""The features of a node for a learner: those of its text, of the texts beside it, and of the elements around it.

A layer has 20: tag, class, and six measures of a text, of the text before it and of the text after it. The first layer
is the node, with the tag and class of its element. The others are the elements around it from inside to outside, each
between its nearest siblings with text. Link density and text density are those of C. Kohlschütter et al., "Boilerplate
Detection using Shallow Text Features", WSDM 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xxhash
from lxml import etree

from filters.templates.classes import Node
from filters.templates.words import IMAGE, Words

LAYER = 20
"""Features of a layer."""

_LINE_CHARS = 80
_NAMES = 1 << 16  # numbers of tags and of classes

Features = list[float]
_Counts = list[int]  # words, characters, characters in links, elements


def features_of(words: Words, nodes: Sequence[Node], layers: int) -> list[Features]:
    """The features of each node: LAYER times `layers`."""
    own = [_counts(words, node) for node in nodes]
    beside = [_measures(None), *map(_measures, own), _measures(None)]
    around = _elements(words, nodes, own) if layers > 1 else {}
    found = []
    for place, node in enumerate(nodes):
        element = words.runs[node.run].element
        row = [*_names(element), *beside[place + 1], *beside[place], *beside[place + 2]]
        for _ in range(layers - 1):
            row += around.get(element) or [0.0] * LAYER
            element = None if element is None else element.getparent()
        found.append(row)
    return found


def _counts(words: Words, node: Node) -> _Counts:
    texts = [len(word) for word in words.words[node.first : node.end] if not word.startswith(IMAGE)]
    element = words.runs[node.run].element
    is_link = element.tag == "a" or next(element.iterancestors("a"), None) is not None
    return [len(texts), sum(texts), sum(texts) if is_link else 0, 1]


def _elements(words: Words, nodes: Sequence[Node], own: Sequence[_Counts]) -> dict[Any, Features]:
    """The layer of each element of the body with text."""
    counts: dict[Any, _Counts] = {}
    for node, of in zip(nodes, own, strict=True):
        _add(counts, words.runs[node.run].element, of)
    found: dict[Any, Features] = {}
    for _, element in etree.iterwalk(words.tree.find("body"), events=("end",)):
        if element not in counts:
            continue
        counts[element][3] += 1
        _add(counts, element.getparent(), counts[element])
        siblings = [child for child in element if child in counts]
        for before, child, after in zip([None, *siblings], siblings, [*siblings[1:], None], strict=False):
            texts = (child, before, after)
            found[child] = [*_names(child), *(value for text in texts for value in _measures(counts.get(text)))]
    return found


def _add(counts: dict[Any, _Counts], element: Any, more: _Counts) -> None:
    have = counts.get(element, (0, 0, 0, 0))
    counts[element] = [one + other for one, other in zip(have, more, strict=True)]


def _measures(counts: _Counts | None) -> tuple[float, ...]:
    """Link density, words a line, words, characters, elements, characters an element; 0 without a text."""
    words, chars, link_chars, elements = counts or (0, 0, 0, 0)
    lines = -(-chars // _LINE_CHARS)
    density = link_chars / (chars or 1), words / (lines or 1)
    return (*density, float(words), float(chars), float(elements), chars / (elements or 1))


def _names(element: Any) -> tuple[float, float]:
    """Numbers for the tag and the class of an element."""
    return _number(element.tag), _number(element.get("class", ""))


def _number(name: str) -> float:
    return float(xxhash.xxh3_64_intdigest(name.encode()) % _NAMES)
