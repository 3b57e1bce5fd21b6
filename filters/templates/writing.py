"""What is written of a classified page: its annotated HTML, and the text of its content.

A page is hostile. Its HTML is written anew: known elements, few attributes, a policy that forbids scripts and loads
before anything of the page. Elements that browsers read in their own way (`svg`, `textarea`, `xmp`, …) become `span`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from lxml import etree

from filters.templates.classes import Node, NodeClass, propagated
from filters.templates.words import Words, split_text

_INLINE = frozenset(
    """a abbr b bdi bdo cite code del dfn em i ins kbd mark q s samp small span strong sub sup time u var
    """.split()  # noqa: SIM905  # a table of words
)
_BLOCKS = frozenset(
    """address article aside blockquote br caption col colgroup dd details div dl dt figcaption figure footer h1 h2 h3
    h4 h5 h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul
    """.split()  # noqa: SIM905
)
_VOID = frozenset(("br", "col", "hr"))
_ATTRIBUTES = ("class", "colspan", "dir", "lang", "rowspan", "title")
_HEAD = (
    '<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
    " content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>{}</title><style>"
    "mark[data-class=content]{{background:#cfc}}mark[data-class=boilerplate]{{background:#eee}}"
    "mark[data-class=invalid]{{background:#fcc}}</style></head><body>"
)


class _Piece(NamedTuple):
    """A tag, or a text of one node; `node` is None for blanks before the first word of a text."""

    kind: str  # start, end, text, image
    element: Any
    text: str = ""
    node: int | None = None


def annotated_html(words: Words, nodes: Sequence[Node], classes: Sequence[NodeClass], title: str) -> str:
    """The page with a `mark` around each node, with its class and bits; elements of one class have it, too."""
    of_element = propagated(words, nodes, classes)
    out = [_HEAD.format(escape(title))]
    for kind, element, text, node in _pieces(words, nodes):
        if node is not None:
            shown = f'<img alt="{escape(element.get("alt", ""))}">' if kind == "image" else escape(text)
            out.append(f'<mark data-class="{classes[node]}" data-bits="{nodes[node].bits:05b}">{shown}</mark>')
        elif kind == "text":
            out.append(text)
        elif element.tag != "body":
            name = element.tag if element.tag in _INLINE or element.tag in _BLOCKS else "span"
            if kind == "start":
                out.append(f"<{name}{_attributes(element, of_element.get(element))}>")
            elif name not in _VOID:
                out.append(f"</{name}>")
    out.append("</body></html>\n")
    return "".join(out)


def content_text(words: Words, nodes: Sequence[Node], classes: Sequence[NodeClass]) -> str:
    """The text of the content, a line for each block that has some."""
    lines = [""]
    for kind, element, text, node in _pieces(words, nodes):
        if kind == "text" and (node is None or classes[node] is NodeClass.CONTENT):
            lines[-1] += text
        elif kind in ("start", "end") and element.tag in _BLOCKS and lines[-1]:
            lines.append("")
    found = [" ".join(line.split()) for line in lines]
    return "".join(f"{line}\n" for line in found if line)


def _attributes(element: Any, of: NodeClass | None) -> str:
    kept = [(name, element.get(name)) for name in _ATTRIBUTES]
    href = element.get("href", "")
    if element.tag == "a" and href.startswith(("http://", "https://")):
        kept.append(("href", href))
    kept.append(("data-class", of))
    return "".join(f' {name}="{escape(value)}"' for name, value in kept if value)


def _pieces(words: Words, nodes: Sequence[Node]) -> Iterator[_Piece]:
    """The tags of the body and the texts of its nodes, in order."""
    body = words.tree.find("body")
    if body is None:
        return
    at = 0  # word
    node = 0
    for event, element in etree.iterwalk(body, events=("start", "end")):
        is_image = element.tag == "img"
        if not is_image:
            yield _Piece(event, element)
        if element is body and event == "end":
            return
        text = element.tail if event == "end" else element.text
        if is_image and event == "start":
            blanks, pieces = "", [""]
        elif text and not text.isspace():
            blanks, pieces = split_text(text)
        else:
            continue
        if blanks:
            yield _Piece("text", element, blanks)
        while pieces:
            size = min(nodes[node].end - at, len(pieces))
            yield _Piece("image" if is_image and event == "start" else "text", element, "".join(pieces[:size]), node)
            pieces = pieces[size:]
            at += size
            node += at == nodes[node].end
