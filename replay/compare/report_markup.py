"""Markup that is safe by construction: whatever is not made by `tag` or `join` is text, and is escaped.

Texts of crawled pages are shown as a reader would see them, but for characters that steer: control characters and those
that turn the direction of writing (Unicode TR9, 2.1 to 2.4) become U+FFFD.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from urllib.parse import urlsplit

_KEPT = "\n\u200c\u200d"  # joiners are part of how some scripts are written
_VOID = frozenset({"meta", "link"})


class Html(str):
    """Markup; every other string is text."""

    __slots__ = ()


def tag(name: str, /, *content: object, **attributes: object) -> Html:
    """An element; `class_` is the attribute class, `_` in a name is a hyphen, and a None attribute is left out."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(plain(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{words}/>")  # so that the page is well-formed XML, too
    return Html(f"<{name}{words}>{join(content)}</{name}>")


def join(content: Iterable[object]) -> Html:
    """Markup and texts in a row."""
    return Html("".join(part if isinstance(part, Html) else escape(plain(str(part))) for part in content))


def plain(text: str) -> str:
    """The text without characters that steer whatever shows it."""
    if text.isprintable():
        return text
    return "".join(map(_plain, text.replace("\r\n", "\n")))


def foreign(text: str) -> Html:
    """A short text of a page, in its own direction of writing and none of its neighbours'."""
    return tag("bdi", text)


def link(url: str) -> Html:
    """A URL; to be followed only where it is one of the web that holds nothing hidden."""
    if not (url.isprintable() and url.lower().startswith(("http://", "https://"))):
        return foreign(url)
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host:
        return foreign(url)
    return tag("a", foreign(url), href=url, rel="noreferrer nofollow noopener")


def _plain(character: str) -> str:
    if character.isprintable() or character in _KEPT:
        return character
    if character == "\t":
        return "    "
    kind = unicodedata.category(character)
    if kind == "Zs":
        return " "
    if kind in ("Zl", "Zp"):
        return "\n"
    return "" if character == "\u00ad" else "\ufffd"
