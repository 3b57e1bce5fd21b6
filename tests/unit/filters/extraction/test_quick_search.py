"""Quick searches find what Trafilatura's XPaths find."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree, html
from trafilatura import xpaths

from farmwatch.labels.labelled_pages import LabelledPages
from filters.extraction.html_tree import ParseFailed, parse
from filters.extraction.quick_search import _Answers, search_for
from filters.extraction.trafilatura_text import _SEARCHES

XPATHS = [xpath for value in vars(xpaths).values() if isinstance(value, list) for xpath in value]
_STRINGS = "".join(string for xpath in XPATHS for string in re.findall("'[^']*'", xpath.path))
WORDS = sorted(set(re.findall(r"[\w -]{3,}", _STRINGS)))
TAGS = ("div", "section", "p", "span", "article", "main", "ul", "details", "h1", "a", "item", "list", "header")
NAMES = ("id", "class", "style", "role", "itemprop", "aria-hidden", "data-component", "data-lp-replacement-content")
VALUES = st.lists(st.sampled_from([*WORDS, "x", "Comment", "NAV", "Teaser", "\u00e9", "true"]), max_size=3).flatmap(
    lambda words: st.sampled_from([" ", "-", "", "_"]).map(lambda between: between.join(words))
)
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)


def trees() -> st.SearchStrategy[Any]:
    """Trees of elements whose names and attributes are near to those searched for."""

    def built(rows: list[tuple[str, dict[str, str], int]]) -> Any:
        elements = [html.Element("body", {"class": "menu"})]
        for tag, attributes, above in rows:
            elements.append(etree.SubElement(elements[above % len(elements)], tag, attributes))
        return elements[0]

    return st.lists(st.tuples(st.sampled_from(TAGS), ATTRIBUTES, st.integers(0, 99)), max_size=12).map(built)


def assert_same(tree: Any, xpath: Any) -> None:
    most = 1 if xpath in xpaths.BODY_XPATH else None  # Trafilatura takes the first
    assert search_for(xpath)(tree)[:most] == xpath(tree)[:most], xpath.path


@given(trees())
@settings(max_examples=300, deadline=None)
def test_searches_find_what_the_xpaths_find(tree: Any) -> None:
    """On any tree each of Trafilatura's XPaths and its search give the same elements in the same order."""
    for xpath in XPATHS:
        assert_same(tree, xpath)


@pytest.mark.data
def test_searches_find_the_same_on_real_pages(shared: Path) -> None:
    """On each hundredth labelled page, too."""
    pages = LabelledPages(shared / "data" / "pages")
    pages.labels = pages.labels[::100]
    for _, page in pages.htmls():
        with suppress(ParseFailed):
            tree = parse(page)
            for xpath in XPATHS:
                assert_same(tree, xpath)


def test_trafilatura_searches_quickly() -> None:
    """All its searches by names are quick: another form in a later version would be seen here."""
    pairs: list[tuple[Any, Any]] = [
        pair for _, _, before, after in _SEARCHES for pair in zip(before, after, strict=True)
    ]
    slow = {xpath.path.strip().partition("[")[0] for xpath, search in pairs if search is xpath}
    assert len(_SEARCHES) >= 10
    assert slow == {"(.//article)", "(.//*", ".//header", ".//cite|.//quote"}


@pytest.mark.parametrize(
    "path",
    [
        ".//div",
        ".//*[@id and @class]",
        ".//*[not(@class)]",
        ".//*[re:test(@class, 'x|')]",
        ".//*[contains(@class, '')]",
        ".//*[contains(translate(@class, 'AB', 'a'), 'x')]",
        ".//*[.//h1]",
        "//*[@class='x']",
        ".//*[@id='x']/a",
    ],
)
def test_other_forms_stay_as_they_are(path: str) -> None:
    """An XPath that is not understood is used itself."""
    xpath = etree.XPath(path, namespaces={"re": xpaths.REGEXP_NS})
    assert search_for(xpath) is xpath


def test_no_page_fills_the_memory() -> None:
    """Answers are kept for a bounded number of values, and not for long ones; long ones are answered, too."""
    answers = _Answers([(("class",), lambda value: "menu" in value)])
    for number in range(10_000):
        assert answers["class", f"menu {number}"] and not answers["class", f"{number}"]
        assert answers["class", "x" * 10_000 + f"menu {number}"] and not answers["id", f"menu {number}"]
    assert 0 < len(answers) <= 4096
    assert all(name == "class" and len(value) <= 200 for name, value in answers)
