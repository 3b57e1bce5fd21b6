"""The dates that a page's JSON-LD (https://schema.org) states of its article."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_MOST_NODES = 5_000  # of a page; an article stands among the first
_NAMED = re.compile(r'"(datePublished|dateModified)"\s*:\s*"([^"\n]{4,60})"')  # in JSON-LD that is invalid
_ARTICLE = re.compile(r"(?:Article|Posting|BlogPost|Report|Recipe|HowTo|CreativeWork|Question|Course)$")
_PAGE = re.compile(r"(?:WebPage|ItemPage|FAQPage|AboutPage|MedicalWebPage)$")
_OTHERS = frozenset(  # of other texts than the page's own
    ("comment", "review", "reviews", "itemListElement", "hasPart", "isPartOf", "video", "image", "citation", "mentions")
)


class Node(NamedTuple):
    """What a node of JSON-LD states; "" = nothing."""

    published: str
    modified: str


def article_node(scripts: Sequence[str], url: str) -> Node | None:
    """The dates of the node of the article, else of the page. Of several articles that of this URL, else the first."""
    articles: list[tuple[dict[str, Any], Node]] = []
    pages: list[Node] = []
    broken: list[str] = []
    for text in scripts:
        if "date" not in text:
            continue
        try:
            data = json.loads(text.strip().rstrip(";"), strict=False)
        except (ValueError, RecursionError):
            broken.append(text)
            continue
        for node in _nodes(data):
            dates = Node(_text(node, "datePublished") or _text(node, "dateCreated"), _text(node, "dateModified"))
            if not (dates.published or dates.modified):
                continue
            types = node.get("@type")
            types = [name for name in (types if isinstance(types, list) else [types]) if isinstance(name, str)]
            if any(_ARTICLE.search(name) for name in types):
                articles.append((node, dates))
            elif any(_PAGE.search(name) for name in types):
                pages.append(dates)
    if articles:
        return next((dates for node, dates in articles if _is_of(node, url)), articles[0][1])
    if pages:
        return pages[0]
    named: dict[str, str] = {}
    for text in broken:
        for name, value in _NAMED.findall(text):
            named.setdefault(name, value)
    return Node(named.get("datePublished", ""), named.get("dateModified", "")) if named else None


def _nodes(data: Any) -> Iterator[dict[str, Any]]:
    """Nodes, the outer ones first."""
    level: list[Any] = [data]
    seen = 0
    while level:
        inner: list[Any] = []
        for value in level:
            seen += 1
            if seen > _MOST_NODES:
                return
            if isinstance(value, dict):
                yield value
                inner += [part for name, part in value.items() if name not in _OTHERS and isinstance(part, dict | list)]
            elif isinstance(value, list):
                inner += value
        level = inner


def _text(node: dict[str, Any], name: str) -> str:
    value = node.get(name)
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("@value")
    return value if isinstance(value, str) else ""


def _is_of(node: dict[str, Any], url: str) -> bool:
    main = node.get("mainEntityOfPage")
    named = (main.get("@id") if isinstance(main, dict) else main, node.get("url"), node.get("@id"))
    return bool(url) and any(
        isinstance(of, str) and of.partition("#")[0].rstrip("/") == url.rstrip("/") for of in named
    )
