"""What a bench reads from a page itself: its text nodes, its tags, and the text that no reader sees."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

_BLANKS = re.compile(r"\s+")
_UNSEEN = ("noscript", "script", "style", "template")
_INLINE = frozenset(
    """a abbr b bdi bdo big cite code del dfn em font i ins kbd label mark q s samp small span strike strong sub sup
    time tt u var wbr noscript script style template
    """.split()  # noqa: SIM905  # a table of words
)


class PageFacts(msgspec.Struct, array_like=True, frozen=True):
    """Text nodes of the body in order, without those of unseen elements; number of each tag; unseen text.

    A text node begins with a line break after the edge of a block, so that together they are the text of the page.
    """

    leaves: list[str] = []
    tags: dict[str, int] = {}
    unseen: str = ""


def page_facts(html: str) -> PageFacts:
    """The facts of a page. Raises lxml's errors."""
    from lxml import etree
    from lxml import html as lxml_html

    if not html.strip():
        return PageFacts()
    try:
        parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
        tree = lxml_html.document_fromstring(html.encode("utf-8", "replace"), parser)
    except etree.ParserError:  # only comments
        return PageFacts()
    body = tree.find("body")
    root = tree if body is None else body
    tags = Counter(element.tag for element in root.iter())
    hidden = list(tree.iter(*_UNSEEN))
    unseen = [element.text_content() for element in hidden]
    for element in hidden:
        element.clear(keep_tail=True)
    leaves, at_edge = list[str](), True
    for event, element in etree.iterwalk(root, events=("start", "end")):
        at_edge |= element.tag not in _INLINE
        text = (element.text if event == "start" else element.tail) or ""
        if text.strip():
            leaves.append("\n" * at_edge + _BLANKS.sub(" ", text))
            at_edge = False
        elif text and leaves:
            leaves[-1] += " "
    return PageFacts(leaves, dict(tags), " ".join(unseen))
