"""Writes a classified page: its annotated HTML, and the text of its content.

A page is hostile. Its HTML is written anew: known elements, few attributes, a policy that forbids scripts and loads
before anything of the page. Elements that browsers read in their own way (`svg`, `textarea`, `xmp`, …) become `span`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from lab.templates.classes import Node, NodeClass, propagated
from lab.templates.words import Words, split_text, steps

_INLINE = frozenset(
    """a abbr b bdi bdo cite code del dfn em i ins kbd mark q s samp small span strong sub sup time u var
    """.split()  # noqa: SIM905  # a table of words
)
_BLOCKS = frozenset(
    """address article aside blockquote br caption col colgroup dd details div dl dt figcaption figure footer h1 h2 h3
    h4 h5 h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul
    """.split()  # noqa: SIM905
)
_BREAK = "\0"  # no page has it
_VOID = frozenset(("br", "col", "hr"))
_ATTRIBUTES = ("class", "colspan", "dir", "lang", "rowspan", "title")
_COLOURS = {NodeClass.CONTENT: "#cfc", NodeClass.BOILERPLATE: "#eee", NodeClass.INVALID: "#fcc"}
_HEAD = (
    '<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
    " content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>{title}</title><style>"
    + "".join(f"mark[data-class={kind}]{{{{background:{colour}}}}}" for kind, colour in _COLOURS.items())
    + "</style></head><body><p>{title}: "
    + ", ".join(f"<mark data-class={kind}>{kind}</mark>" for kind in _COLOURS)
    + "</p>"
)


class Written(NamedTuple):
    """Annotated HTML, and the text of the content, a line for each block that has some."""

    html: str
    text: str


def written(words: Words, nodes: Sequence[Node], classes: Sequence[NodeClass], title: str) -> Written:
    """The page with a `mark` around each node, with its class and bits; elements of one class have it, too."""
    of_element = propagated(words, nodes, classes)
    body = words.tree.find("body")
    html, content = [_HEAD.format(title=escape(title))], list[str]()
    at = number = 0  # word, node

    def add(pieces: list[str], shown: str | None = None) -> None:
        """Write the next words, as `shown` if given."""
        nonlocal at, number
        done = 0
        while done < len(pieces):
            node, kind = nodes[number], classes[number]
            size = min(node.end - at, len(pieces) - done)
            text = "".join(pieces[done : done + size])
            marked = escape(text) if shown is None else shown
            html.append(f'<mark data-class="{kind}" data-bits="{node.bits:05b}">{marked}</mark>')
            if kind is NodeClass.CONTENT:
                content.append(text)
            done, at = done + size, at + size
            number += at == node.end

    for begins, element, text in steps(words.tree):
        tag = element.tag
        name = tag if tag in _INLINE or tag in _BLOCKS else "span"
        if tag in _BLOCKS:
            content.append(_BREAK)
        if tag == "img":
            if begins:
                add([""], f'<img alt="{escape(element.get("alt", ""))}">')
        elif element is not body:
            if begins:
                html.append(f"<{name}{_attributes(element, of_element.get(element))}>")
            elif name not in _VOID:
                html.append(f"</{name}>")
        if text:
            blanks, pieces = split_text(text)
            html.append(blanks)
            content.append(blanks)
            add(pieces)
    html.append("</body></html>\n")
    lines = [" ".join(line.split()) for line in "".join(content).split(_BREAK)]
    return Written("".join(html), "".join(f"{line}\n" for line in lines if line))


def _attributes(element: Any, kind: NodeClass | None) -> str:
    kept = [(name, element.get(name)) for name in _ATTRIBUTES]
    href = element.get("href", "")
    if element.tag == "a" and href.startswith(("http://", "https://")):
        kept.append(("href", href))
    kept.append(("data-class", kind))
    return "".join(f' {name}="{escape(value)}"' for name, value in kept if value)
