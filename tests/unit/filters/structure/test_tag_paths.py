"""The paths of tags of a page, and the sketch that stands for them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from filters.extraction.html_tree import parse
from filters.structure.tag_paths import PLACES, tag_paths, template_sketch

TAGS = ("div", "p", "span", "script", "template")
TREES = st.recursive(
    st.sampled_from(TAGS).map(lambda tag: f"<{tag}/>"),
    lambda inner: st.tuples(st.sampled_from(TAGS), st.lists(inner, max_size=4)).map(
        lambda found: f"<{found[0]}>{''.join(found[1])}</{found[0]}>"
    ),
    max_leaves=30,
)


@given(xml=TREES)
def test_a_path_is_the_tags_down_to_an_element(xml: str) -> None:
    """There are as many as different lists of tags from the root, without those that lead through an unseen element."""
    elements = list(etree.fromstring(xml).iter())
    paths = {tuple(one.tag for one in (element, *element.iterancestors())) for element in elements}
    seen = {path for path in paths if not {"script", "template"} & set(path)}
    assert len(tag_paths(elements, unseen=())) == len(paths)
    assert len(tag_paths(elements)) == len(seen)
    assert tag_paths(elements) == tag_paths(etree.fromstring(xml.replace("><", "> <")).iter())


def test_text_and_repetition_do_not_count() -> None:
    """A page with other words, and more of the same items, has the same paths; another frame has others."""
    page = "<main><nav><ul>{}</ul></nav><article><h1>{}</h1><p>{}<b>x</b></p></article></main><footer><p>y"
    one, other = page.format("<li><a>a</a>" * 3, "A", "a"), page.format("<li><a>b</a>" * 9, "B", "b " * 99)
    assert template_sketch(parse(one).iter()) == template_sketch(parse(other).iter()) != b""
    assert template_sketch(parse(one.replace("main", "section")).iter()) != template_sketch(parse(one).iter())
    assert template_sketch(parse("<p>short").iter()) == b""


@pytest.mark.parametrize("shared", [0, 30, 60, 90, 120])
def test_equal_places_estimate_the_similarity(shared: int) -> None:
    """Over 40 pairs of pages the mean share of equal places is the Jaccard similarity, but for chance."""
    found, names = [], random.Random(shared)
    for _ in range(40):
        common = [f"x{names.randrange(10**9)}" for _ in range(shared)]
        pages = [[*common, *(f"y{names.randrange(10**9)}" for _ in range(120 - shared))] for _ in range(2)]
        trees = [etree.fromstring("<r>{}</r>".format("".join(f"<{tag}/>" for tag in page))) for page in pages]
        one, other = (np.frombuffer(template_sketch(tree.iter()), np.uint8) for tree in trees)
        assert len(one) == PLACES
        found.append(float(np.mean(one == other)))
    assert abs(np.mean(found) - (shared + 1) / (241 - shared)) < 0.04


def test_the_deepest_and_widest_pages_have_a_sketch() -> None:
    """Nested as deep as a page may be, or of 50,000 different tags."""
    deep = parse("<div>" * 500 + "x")
    assert len(tag_paths(deep.iter())) == 502
    wide = parse("".join(f"<x{number}></x{number}>" for number in range(49_000)))
    assert len(template_sketch(wide.iter())) == PLACES
