"""The kind of a page's records, by the signs in their elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from filters.segments.names import LEAST_RECORD_CHARS, SegmentKind
from filters.segments.record_groups import MOST_NAME_CHARS, name_of

_LIST_SHARE = 0.6  # of a page's characters in records, on average shorter than LEAST_RECORD_CHARS
_LEAST_ALIKE = 3  # records of a list, or of teasers: two are often two columns
_TITLE_WORDS = 4  # of a link: names and dates have fewer
_MOST_LINKS = 50  # of a record
_MOST_LOOKED = 12  # records whose links and names are looked at: they are alike
_MOST_ELEMENTS = 100  # of a record
_NAMING = frozenset({"class", "id", "itemprop", "itemtype", "rel"})
_VISITORS = re.compile(
    r"comment|disqus|dsq-|repl(?:y|ies)|respon(?:d|ses?(?![a-z]))|guestbook|discussion|answer|(?:^|[^a-z])reviews?(?:[^a-z]|$)",
    re.I,
)
_PERSON = re.compile(r"author|user|avatar|member|profile|message|post(?:er|ed)|byline|karma|vote", re.I)
_MORE = re.compile(r"(?:read|learn|view|see) (?:more|full)|more info|continue reading|details", re.I)
_OF_PAGE = ("h1", "main", "nav")  # parts of a column of the page, and of no record
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def kind_of(records: Sequence[Any], sizes: Sequence[int], page_chars: int, url: str) -> SegmentKind | None:
    """The kind of sibling records, POST for a thread; None without a sign. `sizes` are their characters."""
    first = records[0]
    if have_names_of_visitors(records):
        return SegmentKind.COMMENT
    are_many = len(records) >= _LEAST_ALIKE
    if are_many and _LIST_SHARE * page_chars <= sum(sizes) < LEAST_RECORD_CHARS * len(sizes):
        return SegmentKind.LIST
    looked = records[:_MOST_LOOKED]
    is_numbered = any(map(str.isdigit, first.get("id") or ""))
    is_layout = first.tag in ("div", "section") and not first.get("class") and not is_numbered
    if is_layout or any(next(record.iter(*_OF_PAGE), None) is not None for record in looked):
        return None
    is_thread, here = 2 * sum(map(has_person, looked)) >= len(looked), _address(url, "")
    if are_many:
        pages = {page for record in looked if (page := _leads_to(record, url, here, is_sure=is_thread))}
        if 2 * len(pages) >= len(looked):
            return SegmentKind.TEASER
    return SegmentKind.POST if is_thread else None


def have_names_of_visitors(records: Sequence[Any]) -> bool:
    """Whether the first or the last of sibling records, or what is around them, has a name of visitors' text."""
    parent = records[0].getparent()
    around = islice((e for e in parent.iterancestors() if e.tag not in ("html", "body")), 2)
    return any(map(is_of_visitors, chain((records[0], records[-1], parent), around)))


def is_of_visitors(element: Any) -> bool:
    """Whether an element has a name of visitors' text."""
    return _is_named(element, _VISITORS)


def has_person(record: Any) -> bool:
    """Whether a record, or the one of another name before it, its head, has a sign of its author or its time."""
    head = record.getprevious()
    is_head = head is not None and name_of(head) != name_of(record)
    elements = chain(head.iter(), record.iter()) if is_head else record.iter()
    return any(element.tag == "time" or _is_named(element, _PERSON) for element in islice(elements, _MOST_ELEMENTS))


def _leads_to(record: Any, url: str, here: SplitResult, *, is_sure: bool) -> str:
    """The other page to which a record's title leads; "" = none. A title that `is_sure` is a heading, or the record."""
    for link in islice(_links(record), _MOST_LINKS):
        href = (link.get("href") or "").strip()
        if not href or "#" in href:  # the address of a comment, or a script
            continue
        text = "".join(link.itertext())
        is_title = _is_title(link) or (not is_sure and len(text.split()) >= _TITLE_WORDS)
        if link is not record and link is not record.getparent() and not is_title and not _MORE.search(text):
            continue
        there = _address(url, href)
        if there.scheme in ("http", "https") and there[1:4] != here[1:4]:
            return str(there.geturl())
    return ""


def _address(url: str, href: str) -> SplitResult:
    """The address of a link; an empty one for what is no URL."""
    try:
        return urlsplit(urljoin(url, href))
    except ValueError:
        return urlsplit("")


def _links(record: Any) -> Iterable[Any]:
    parent = record.getparent()
    return [parent] if parent is not None and parent.tag == "a" else record.iter("a")


def _is_title(link: Any) -> bool:
    return link.getparent().tag in _HEADINGS or any(child.tag in _HEADINGS for child in link)


def _is_named(element: Any, pattern: re.Pattern[str]) -> bool:
    for name, value in element.items():  # noqa: SIM110  # `any` takes twice the time
        if name in _NAMING and _is_found(pattern, value[:MOST_NAME_CHARS]):
            return True
    return False


@lru_cache(maxsize=4096)  # records have the same names
def _is_found(pattern: re.Pattern[str], value: str) -> bool:
    return pattern.search(value) is not None
