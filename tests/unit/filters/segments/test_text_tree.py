"""The arrays of a page's elements against a walk through its tree, and records of any tree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from filters.extraction.html_tree import parse
from filters.segments.records import records_of
from filters.segments.segments import own_segments, record_lines, segments_of
from filters.segments.text_tree import TextTree, text_tree
from filters.structure.page_lines import characters_of, lines_of_parts, marked_text

WORDS = st.lists(st.sampled_from("abcdef"), max_size=30).map(lambda letters: " ".join(letter * 9 for letter in letters))
TAGS = ["div class=comment", "div class='item x'", "li", "p", "a href=/x", "span", "form", "button", "noscript", "br"]
TREES = st.recursive(
    WORDS,
    lambda inner: st.tuples(st.sampled_from(TAGS), st.lists(inner, max_size=5)).map(
        lambda of: f"<{of[0]}>{''.join(of[1])}</{of[0].split()[0]}>"
    ),
    max_leaves=40,
)
PAGES = st.lists(TREES, max_size=6).map(lambda trees: f"<html><body>{''.join(trees)}</body></html>")


def tree_of(html: str) -> tuple[Any, TextTree]:
    root = parse(html)
    tree = text_tree(list(root.iter()), characters_of(marked_text(root)))
    assert tree is not None
    return root, tree


@given(PAGES)
def test_the_arrays_are_those_of_a_walk(html: str) -> None:
    """For any page, each element ends before the next outside it, has its own text, and each block has its parent."""
    root, tree = tree_of(html)
    places = {element: place for place, element in enumerate(tree.elements)}
    assert [places[tree.elements[block].getparent()] for block in tree.blocks] == tree.parents.tolist()
    for element, place in places.items():
        assert tree.after[place] - place == len(list(element.iter()))
        text = "".join("".join(element.itertext()).split())
        assert tree.inked[tree.ends[place]] - tree.inked[tree.starts[place]] == len(text)
    assert tree.prose[-1] <= tree.inked[-1] == len("".join(root.itertext()).replace(" ", ""))


@given(PAGES, st.data())
def test_each_line_of_a_page_counts_at_most_as_often_as_it_is_there(html: str, data: st.DataObject) -> None:
    """Of any page, however records nest, no line is invented, none is in two records, and marked ones are left out."""
    root, tree = tree_of(html)
    whole = lines_of_parts(tree.characters, np.ones(len(tree.characters), np.uint32), 1)[0]
    records = records_of(tree.elements, characters_of(marked_text(root)), "https://site.example/")
    if not records:
        return
    assert not Counter(line for group in records for of_one in group.lines for line in of_one) - Counter(whole)
    text = "\n".join(data.draw(st.lists(st.sampled_from(whole), unique=True)))
    segments = segments_of(text, records)
    lines = record_lines(segments)
    assert len(set(lines)) == len(lines)
    marks = np.array(data.draw(st.lists(st.booleans(), max_size=len(lines))), np.bool_)
    own = record_lines(own_segments(text, segments, np.zeros(0, np.bool_), marks))
    assert set(own) <= {line for line, mark in zip(lines, [*marks, *[False] * len(lines)], strict=False) if not mark}
    assert marks.any() or own == lines
