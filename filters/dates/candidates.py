"""All dates of publication and of change that a parsed page states, the most reliable source first.

Weak sources are read only where no declared one has a day of publication. A date in a navigation, an aside, a footer or
a comment is not the article's: so neither a copyright year nor a list of other articles dates a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from lxml import etree

from filters.dates.json_ld import article_node
from filters.dates.page_dates import Candidates
from filters.dates.parsing import ReadDate, read_date, read_path
from stream.schema.dates import DateSource, PageDate, Precision

_PUBLISHED_META = frozenset(
    {
        *("article.published", "article:published", "article:published_date", "article:published_time", "bt:pubdate"),
        *("citation_online_date", "citation_publication_date", "cxenseparse:publishtime"),
        *("cxenseparse:recs:publishtime", "date_published", "datepublished", "dc.date.issued", "dcterms.issued"),
        *("og:article:published_time", "og:published_time", "originalpublicationdate", "parsely-pub-date", "pub_date"),
        *("pubdate", "publication_date", "publish-date", "publish_date", "publishdate", "published_time"),
        *("rnews:datepublished", "sailthru.date", "shareaholic:article_published_time", "vr:published-time"),
    }
)
"""Names of `meta` elements with the date of publication, in lower case."""
_OTHER_META = ("date", "dc.date", "dc.date.created", "dcterms.created", "dcterms.date", "dc.created", "datecreated")
"""Those that do not say of what their date is, the most reliable first."""
_MODIFIED_META = frozenset(
    {
        *("article:modified", "article:modified_time", "article:updated_time", "bt:moddate", "datemodified"),
        *("dc.date.modified", "dcterms.modified", "last-modified", "lastmod", "og:article:modified_time"),
        *("og:modified_time", "og:updated_time", "shareaholic:article_modified_time"),
    }
)
_DATED_META = _PUBLISHED_META.union(_MODIFIED_META, _OTHER_META)
_APART = frozenset(("aside", "footer", "nav"))
_APART_NAME = re.compile(
    r"comment|copyright|footer|more-|recommend|related|sidebar|teaser|ticker|widget", re.IGNORECASE
)
_PUBLISHED_NAME = re.compile(r"created|entry-date|post-?date|posted|pub-?date|publi", re.IGNORECASE)
_MODIFIED_NAME = re.compile(r"modif|updat", re.IGNORECASE)
_CHANGED_TEXT = re.compile(
    r"updat|modif|review|revis|edited|geändert|aktualis|zuletzt|mis(?:e)? à jour|actualiz|aggiorn|atualiz|обновл",
    re.IGNORECASE,
)
_DATE_NAME = re.compile(
    r"(?:^|[^a-z])(?:byline|data|date|dateline|datum|fecha|posted|publish|time)|meta|pubdate|published", re.IGNORECASE
)
_LEVELS = 12  # elements around a date that are looked at
_READ = 60  # elements of a kind that are read: those of a hostile page may each hold all of its text
_BYLINE_CHARS = 160
_text = partial(etree.tostring, method="text", encoding="unicode", with_tail=False)
_ITEMPROPS = etree.XPath("//*[@itemprop][contains(@itemprop, 'datePublished') or contains(@itemprop, 'dateModified')]")


class _Found:
    """Collects the first date of each source."""

    def __init__(self) -> None:
        self.published: dict[DateSource, ReadDate] = {}
        self.modified: dict[DateSource, ReadDate] = {}

    def add(self, source: DateSource, text: str, *, is_change: bool = False) -> None:
        to = self.modified if is_change else self.published
        if source not in to and (read := read_date(text)):
            to[source] = read


def candidates(elements: Sequence[Any], of: Mapping[str, Sequence[Any]], html: str, url: str) -> Candidates:
    """Read the dates of a tree of these `elements`, which `of` has by tag; the tree stays. `url` "" = none."""
    found = _Found()
    scripts = [of_one.text or "" for of_one in of["script"] if "ld+json" in of_one.get("type", "").lower()]
    if node := article_node(scripts, url):
        found.add(DateSource.JSON_LD, node.published)
        found.add(DateSource.JSON_LD, node.modified, is_change=True)
    others = _read_metas(found, of["meta"])
    if "itemprop" in html:
        for element in _ITEMPROPS(elements[0])[:_READ]:
            if not _is_apart(element):
                is_change = "datePublished" not in element.get("itemprop")
                found.add(DateSource.ITEMPROP, _stated(element), is_change=is_change)
    times = _read_times(found, of["time"])
    if read := read_path(url.partition("://")[2].partition("?")[0].partition("#")[0]):
        found.published[DateSource.URL] = read
    if all(read.precision != Precision.DAY for read in found.published.values()):
        for text in others:
            found.add(DateSource.OTHER_META, text)
        for text in times:
            found.add(DateSource.OTHER_TIME, text)
        for text in _bylines(elements):
            found.add(DateSource.BYLINE, text, is_change=_CHANGED_TEXT.search(text) is not None)
    return Candidates(_in_order(found.published), _in_order(found.modified))


def _in_order(found: Mapping[DateSource, ReadDate]) -> list[PageDate]:
    return [
        PageDate(day, precision.value, source.value)
        for source in DateSource
        if source in found
        for day, precision in (found[source],)
    ]


def _read_metas(found: _Found, metas: Sequence[Any]) -> list[str]:
    """Add declared dates; the texts of the others, the most reliable first."""
    others: list[tuple[int, str]] = []
    for element in metas:
        name = (element.get("property") or element.get("name") or element.get("itemprop") or "").strip().lower()
        if name not in _DATED_META or _is_apart(element):
            continue
        if name in _PUBLISHED_META:
            found.add(DateSource.META, element.get("content", ""))
        elif name in _MODIFIED_META:
            found.add(DateSource.META, element.get("content", ""), is_change=True)
        else:
            others.append((_OTHER_META.index(name), element.get("content", "")))
    return [text for _, text in sorted(others)]


def _read_times(found: _Found, times: Sequence[Any]) -> list[str]:
    """Add dates that are marked as publication or change; the texts of the others."""
    others: list[str] = []
    for element in times[:_READ]:
        if _is_apart(element):
            continue
        outer, before = element.getparent(), element.getprevious()
        name, around = element.get("class", ""), outer.get("class", "")
        lead = outer.text if before is None else before.tail if (before.tail or "").strip() else before.text
        is_published = "pubdate" in element.attrib or _PUBLISHED_NAME.search(name)
        if not is_published and (_MODIFIED_NAME.search(name) or _CHANGED_TEXT.search(lead or "")):
            found.add(DateSource.TIME, _stated(element), is_change=True)
        elif is_published or _PUBLISHED_NAME.search(around):
            found.add(DateSource.TIME, _stated(element))
        else:
            others.append(_stated(element))
    return others


def _is_apart(element: Any) -> bool:
    """Whether an element is in a part of the page that is not of its article."""
    for outer in islice(chain((element,), element.iterancestors()), _LEVELS):
        if outer.tag in ("body", "head"):
            return False
        if outer.tag in _APART or _APART_NAME.search(outer.get("class", "")):
            return True
    return False


def _stated(element: Any) -> str:
    return str(element.get("datetime") or element.get("content") or _text(element))


def _bylines(elements: Sequence[Any]) -> Iterator[str]:
    """Short texts whose class or id is that of a date."""
    known: dict[str, bool] = {}

    def is_dated(element: Any) -> bool:
        name = element.get("class") or element.get("id")
        if name and name not in known:
            known[name] = _DATE_NAME.search(name) is not None
        return bool(name and known[name] and not _is_apart(element))

    texts = (_text(element) for element in islice(filter(is_dated, elements), _READ))
    return (text for text in texts if len(text) <= _BYLINE_CHARS)
