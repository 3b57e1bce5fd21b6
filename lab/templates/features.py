"""The features of a node for a learner: those of its text, of the texts beside it, and of the elements around it.

A layer has 20: tag and five measures of a text, of the text before it and of the text after it; class and characters an
element of the text. The first layer is the node, with the tag and class of its element. The others are the elements
around it from inside to outside, each between its nearest siblings with text. Link density and text density are those
of C. Kohlschütter et al., "Boilerplate Detection using Shallow Text Features", WSDM 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import xxhash
from lxml import etree

from lab.templates.classes import Node
from lab.templates.words import IMAGE, Words

LAYER = 20
"""Features of a layer."""

_LINE_CHARS = 80
_CLASSES = 1 << 16

Features = list[float]
_Counts = list[int]  # words, characters, characters in links, elements


class _Text(NamedTuple):
    element: Any
    counts: _Counts


def features_of(words: Words, nodes: Sequence[Node], layers: int) -> list[Features]:
    """The features of each node: LAYER times `layers`."""
    names = sorted({element.tag for element in words.tree.iter(etree.Element)})
    tags = {name: number for number, name in enumerate(names)}
    texts = [_Text(words.runs[node.run].element, _counts(words, node)) for node in nodes]
    around = _elements(words, texts, tags) if layers > 1 else {}
    rows = []
    for text, before, after in _beside(texts):
        element = text.element
        row = _layer(tags, text, before, after)
        for _ in range(layers - 1):
            row += around.get(element) or [0.0] * LAYER
            element = None if element is None else element.getparent()
        rows.append(row)
    return rows


def _counts(words: Words, node: Node) -> _Counts:
    texts = [len(word) for word in words.words[node.first : node.end] if not word.startswith(IMAGE)]
    element = words.runs[node.run].element
    is_link = element.tag == "a" or next(element.iterancestors("a"), None) is not None
    return [len(texts), sum(texts), sum(texts) if is_link else 0, 1]


def _elements(words: Words, texts: Sequence[_Text], tags: Mapping[str, int]) -> dict[Any, Features]:
    """The layer of each element of the body with text."""
    counts: dict[Any, _Counts] = {}
    for element, of in texts:
        _add(counts, element, of)
    layers: dict[Any, Features] = {}
    for _, element in etree.iterwalk(words.tree.find("body"), events=("end",)):
        if element not in counts:
            continue
        counts[element][3] += 1
        _add(counts, element.getparent(), counts[element])
        siblings = [_Text(child, counts[child]) for child in element if child in counts]
        for text, before, after in _beside(siblings):
            layers[text.element] = _layer(tags, text, before, after)
    return layers


def _add(counts: dict[Any, _Counts], element: Any, more: _Counts) -> None:
    have = counts.get(element, (0, 0, 0, 0))
    counts[element] = [one + other for one, other in zip(have, more, strict=True)]


def _beside(texts: Sequence[_Text]) -> Iterator[tuple[_Text, _Text | None, _Text | None]]:
    """Each text with the one before it and the one after it."""
    return zip(texts, [None, *texts], [*texts[1:], None], strict=False)


def _layer(tags: Mapping[str, int], text: _Text, before: _Text | None, after: _Text | None) -> Features:
    three = (text, before, after)
    names = [-1.0 if side is None else float(tags[side.element.tag]) for side in three]
    named = xxhash.xxh3_64_intdigest(text.element.get("class", "").encode()) % _CLASSES
    measures: list[float] = []
    for side in three:  # link density, words a line, words, characters, elements; 0 without a text
        words, chars, link_chars, elements = (0, 0, 0, 0) if side is None else side.counts
        lines = -(-chars // _LINE_CHARS)
        measures += (link_chars / (chars or 1), words / (lines or 1), float(words), float(chars), float(elements))
    _, chars, _, elements = text.counts
    return [*names, float(named), *measures, chars / elements]
