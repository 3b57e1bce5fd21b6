"""Takes out of a page what is no text of its author: the dialogs of consent managers, and the comments of visitors.

A container is known by id, class, role, label or schema.org type. A page may be about cookies, or be a thread. So a
dialog goes that asks for consent, or is small and has the name of a known manager; dialogs that are most of a page go
if there is prose beside them. Comments that are most of the rest go if there is an article beside them: of 91 such
labelled pages the text by `blocks` is better without the comments on 73, and worse on 8.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from importlib import resources
from typing import Any

import re2

from filters.no_page.consent import asks_for_consent, is_about_consent
from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE, characters_of, page_lines, visible_bytes, visible_text

MOST_SHARE = 0.5
"""Share of a page's text that may be taken out, if it is all that is known of it."""

LEAST_PROSE_SIZE = 400  # bytes of the page beside dialogs that hold most of its text
LEAST_ARTICLE_SIZE = 1_000  # bytes of prose beside comments that are longer than the rest
_PROSE_CHARS = 80  # of a line
_NAME_CHARS = 500  # of an attribute
_NAMING = ("id", "class", "role", "aria-modal", "itemtype", "itemprop")
_WHOLE = frozenset({"html", "head", "body", "main", "h1", "button", *INLINE, *UNSEEN})  # in code, too
_TOPICS = ("category-", "tag-", "topic-")  # classes that say what a post is about
_DIALOGS = ("dialog", "amp-consent")
_OF_PAGE = ("main", "article", "h1")  # a page's own elements


class Part(Enum):
    """The kinds of containers."""

    MANAGER = "the dialog of a known consent manager"
    DIALOG = "a dialog that may ask for consent"
    BANNER = "a banner that may ask for consent"
    COMMENTS = "comments of visitors"


_TABLES = tomllib.loads(resources.files("filters.extraction").joinpath("containers.toml").read_text("utf-8"))
_MANAGERS, _SHOWN, _COMMENTS = ("|".join(_TABLES[kind]) for kind in ("managers", "shown", "comments"))
_LAWS = "consent|gdpr|rgpd|dsgvo|ccpa|lgpd|eprivacy"
_ASKS = f"cookies?|{_LAWS}"
_BANNERS = (  # the word "cookies" alone is a food
    rf"#?(?:(?:\w+[-_])*(?:{_LAWS})|(?:[\w-]*[-_])?(?:{_ASKS})[-_]*(?:{_SHOWN})(?:[-_][\w-]*)?|"
    rf"(?:[\w-]*[-_])?(?:{_SHOWN})[-_]*(?:{_ASKS}))"
)
_THREADS = (  # as such, or in the names of BEM and CSS modules
    rf"#?(?:{_COMMENTS}|[\w-]+__comments(?:[-_]?(?:list|section|area|wrapper|container))?)"
    r"(?:_(?:root|list|wrapper|container|section|content|comments))?(?:(?:__|--)[\w-]+)?"
)

_PARTS = tuple(
    (part, re2.compile(rf"[\s\0]({names})[\s\0]"))
    for part, names in (
        (Part.MANAGER, _MANAGERS),
        (Part.DIALOG, "dialog|alertdialog|true"),
        (Part.BANNER, _BANNERS),
        (Part.COMMENTS, _THREADS),
    )
)


def prune(elements: Sequence[Any], page_size: int) -> bool:
    """Take the containers out of a tree of these elements; tells if there were any. `page_size`: `visible_bytes`."""
    named = [(elements[place], part) for place, part in sorted(_named(elements).items())]
    if not named:
        return False
    own = [element for element in elements if element.tag in _OF_PAGE]
    dialogs = _dialogs(elements[0], named, own, page_size)
    rest = page_size - sum(visible_bytes(visible_text(element)) for element in dialogs)
    threads = [element for element, part in named if part is Part.COMMENTS]
    comments, are_most = _comments(threads, own, MOST_SHARE * rest)
    if are_most:
        prose_size = _prose_size(elements[0]) - sum(map(_prose_size, dialogs + comments))
        comments = comments if prose_size >= LEAST_ARTICLE_SIZE else []
    unwanted = dialogs + comments
    for element in unwanted:
        element.drop_tree()
    return bool(unwanted)


def _dialogs(root: Any, named: Sequence[tuple[Any, Part]], own: Sequence[Any], page_size: int) -> list[Any]:
    """The dialogs and banners that go."""
    with_article = _around(element for element in own if element.tag != "h1")
    with_heading = _around(element for element in own if element.tag == "h1")
    inside = set[Any]()
    silent = {part: set[Any]() for part in Part}  # the elements in those that ask for nothing: each is read once
    managers, others, size_of_others = [], [], 0
    for element, part in named:
        if part is Part.COMMENTS or element.tag in _WHOLE or element in inside or element in silent[part]:
            continue
        if element in with_article or (part is Part.BANNER and element in with_heading):
            continue
        seen = visible_text(element)
        size = visible_bytes(seen)
        is_large = size > MOST_SHARE * page_size
        if is_large and element.tag == "article":
            continue
        by_name = part is Part.MANAGER and not is_large and element not in with_heading
        if not by_name and not asks_for_consent([line.lower() for line in page_lines(characters_of(seen))]):
            for other in Part if part is Part.MANAGER else (Part.DIALOG, Part.BANNER):
                silent[other].update(element.iter())
            continue
        inside.update(element.iter())
        if part is Part.MANAGER:
            managers.append(element)
        else:
            others.append(element)
            size_of_others += size
    if size_of_others > MOST_SHARE * page_size:
        prose_size = _prose_size(root) - sum(map(_prose_size, managers + others))
        return managers + others if prose_size >= LEAST_PROSE_SIZE else managers
    return managers + others


def _comments(named: Sequence[Any], own: Sequence[Any], most: float) -> tuple[list[Any], bool]:
    """The outermost containers of comments, and whether they have more bytes than `most`."""
    names, known, with_own = set(named), set[Any](), set[Any]()
    for element in own:
        outer = None if element in names else element.getparent()
        while outer is not None and outer not in known:
            known.add(outer)
            if outer in names:  # a comment with an article in it makes no article of the thread
                with_own.add(outer)
                break
            outer = outer.getparent()
    looked = set[Any]()
    taken = []
    for element in named:
        if element in looked or element in with_own or element.tag in _WHOLE:
            continue
        looked.update(element.iter())
        if size := visible_bytes(visible_text(element)):
            taken.append(element)
            most -= size
    return taken, most < 0


def _around(elements: Iterable[Any]) -> set[Any]:
    """All elements that hold one of these."""
    around = set[Any]()
    for element in elements:
        outer = element.getparent()
        while outer is not None and outer not in around:
            around.add(outer)
            outer = outer.getparent()
    return around


def _prose_size(element: Any) -> int:
    """Bytes of the element's lines that are as long as a sentence and not about consent."""
    lines = page_lines(characters_of(visible_text(element)))
    return sum(len(line.encode()) for line in lines if len(line) >= _PROSE_CHARS and not is_about_consent(line.lower()))


def _named(elements: Sequence[Any]) -> dict[int, Part]:
    """The places of the elements that a name tells as a container."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    dialogs = []
    for place, element in enumerate(elements):
        if element.tag in _DIALOGS:
            dialogs.append(place)
        for name, value in element.items():
            if name in _NAMING:
                places[f"#{value}" if name == "id" else value].append(place)
            elif name == "aria-label":
                places["-".join(value.split())].append(place)
    named: defaultdict[str, list[int]] = defaultdict(list)
    for value, those in places.items():
        named[f"\0{value[:_NAME_CHARS].lower()}\0"] += those
    names = "".join(named)  # one search for all is much faster than one for each
    part_of: dict[int, Part] = {}
    for part, pattern in _PARTS:
        for match in pattern.finditer(names):
            if match[1].startswith(_TOPICS):
                continue
            start, end = names.rfind("\0", 0, match.start(1)), names.find("\0", match.end(1))
            for place in named[names[start : end + 1]]:
                part_of.setdefault(place, part)
    return dict.fromkeys(dialogs, Part.DIALOG) | part_of
