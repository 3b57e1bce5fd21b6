"""What a bench reads from a page itself: its text nodes, its tags, and the text that no reader sees."""

from __future__ import annotations

from collections import Counter

import msgspec

_UNSEEN = ("noscript", "script", "style", "template")


class PageFacts(msgspec.Struct, array_like=True, frozen=True):
    """Text nodes of the body in order, without those of unseen elements; number of each tag; unseen text."""

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
        parser = lxml_html.HTMLParser(encoding="utf-8")
        tree = lxml_html.document_fromstring(html.encode("utf-8", "replace"), parser)
    except etree.ParserError:  # only comments
        return PageFacts()
    body = tree.find("body")
    root = tree if body is None else body
    tags = Counter(element.tag for element in root.iter(etree.Element))
    hidden = list(tree.iter(*_UNSEEN))
    unseen = [element.text_content() for element in hidden]
    for element in hidden:
        element.clear(keep_tail=True)
    leaves = [" ".join(text.split()) for text in root.xpath(".//text()")]
    return PageFacts([leaf for leaf in leaves if leaf], dict(tags), " ".join(unseen))
