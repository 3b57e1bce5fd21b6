"""Text in an element of its own between paragraphs: a paragraph to the reader.

Trafilatura leaves such elements out in the middle of an article: a div, a label, a custom element, …
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from filters.structure.page_lines import INLINE

LEAST_WORDS = 8  # outside of links; less is a caption, a byline, the word "advertisement"
_LONE = frozenset({"center", "dd", "div", "fieldset", "figure", "font", "label", "li", "section", "span", "time"})
_INSIDE = frozenset({*INLINE, "br", "p"}) - {"img"}  # with a picture it is a caption


def make_paragraphs(tree: Any) -> None:
    """Turn elements that hold nothing but a text, and stand between paragraphs, into paragraphs."""
    for paragraph in list(tree.iter("p")):
        lone = paragraph.getnext()
        between = []
        while lone is not None and _is_lone(lone):
            between.append(lone)
            lone = lone.getnext()
        if lone is not None and lone.tag == "p":
            for element in between:
                for inner in list(element.iter("p")):
                    inner.tag = "span"
                element.tag = "p"


def _is_lone(element: Any) -> bool:
    tag = element.tag
    if not (tag in _LONE or (isinstance(tag, str) and "-" in tag)):
        return False
    if any(each.tag not in _INSIDE for each in element.iterdescendants()):  # mostly soon: a large div has a div
        return False
    if len(list(islice(element.iter("p"), 2))) > 1:
        return False
    linked = sum(len("".join(each.itertext()).split()) for each in element.iter("a"))
    return len("".join(element.itertext()).split()) - linked >= LEAST_WORDS
