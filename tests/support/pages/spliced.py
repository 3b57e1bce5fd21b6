"""Pages made of several texts under one template; `data-text` is the number of the text that an element holds."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from filters.segments.names import SegmentKind

URL = "https://site.example/here"


class Template(NamedTuple):
    """HTML around all records and around each, and the kind of each; `first`: around a first text that is no record."""

    around: str
    record: str
    kind: SegmentKind
    first: str = ""


_BODY = '<div data-text="{n}">{text}</div>'
_PERSON = '<a class="username" href="/members/{n}">Ann</a>'
_ARTICLE = '<h1>About all of it</h1><div data-text="{n}">{text}</div>'
TEMPLATES = {
    "thread": Template(
        "<div class=posts>{}</div>", f'<div class="post p{{n}}">{_PERSON}{_BODY}</div>', SegmentKind.COMMENT
    ),
    "thread in a table": Template(
        "<table>{}</table>",
        '<tr class="row{n}"><td class=author>Ann</td><td data-text="{n}">{text}</td></tr>',
        SegmentKind.COMMENT,
    ),
    "listing": Template(
        "<main>{}</main>",
        f'<article class=card><h2><a href="/{{n}}">All about it</a></h2>{_BODY}</article>',
        SegmentKind.TEASER,
    ),
    "cards that are links": Template(
        "<ul>{}</ul>",
        f'<li><a href="/{{n}}"><h3>About it</h3></a>{_BODY}<a href="/{{n}}">Read more</a></li>',
        SegmentKind.TEASER,
    ),
    "comments": Template(
        "<ol class=commentlist>{}</ol>", f"<li class=comment>{_PERSON}{_BODY}</li>", SegmentKind.COMMENT, _ARTICLE
    ),
}
"""Templates with a sign of what their records are."""

UNSIGNED = {
    "sections": Template("<div>{}</div>", f"<section><h2>About it</h2>{_BODY}</section>", SegmentKind.ARTICLE),
    "boxes": Template("<div>{}</div>", f"<div>{_BODY}</div>", SegmentKind.ARTICLE),
}


def spliced(texts: Sequence[Sequence[str]], template: Template) -> str:
    """A page of texts, each a list of paragraphs."""
    filled = [
        (template.first if template.first and not number else template.record).format(n=number, text=_paragraphs(text))
        for number, text in enumerate(texts)
    ]
    alone = 1 if template.first else 0
    links = "".join(f'<li><a href="/{word}">{word}</a></li>' for word in ("news", "about", "contact"))
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>All of it</title></head><body>"
        f"<header class=top><ul class=menu>{links}</ul></header><div id=content>{''.join(filled[:alone])}"
        f"{template.around.format(''.join(filled[alone:]))}</div>"
        "<footer class=bottom><p>Imprint and contact of the site.</p></footer></body></html>"
    )


def _paragraphs(text: Sequence[str]) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in text)
