"""The structure measures of a parsed page, and those of its metadata: Open Graph (https://ogp.me) and JSON-LD
(https://schema.org).

Bytes of text are UTF-8 without white space. Elements are sorted by tag once: each search through a tree costs as much.
Text is read a bounded number of times, however elements are nested.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lxml import etree

from filters.structure.names import BLANKS, TAG_RATIOS, Measures
from filters.structure.page_lines import visible_bytes
from filters.structure.page_url import url_measures

_BLOCKS = ("article", "div", "li", "section", "tr")
_LEAST_RECORDS = 3
_SCRIPT_ONLY_BYTES = 200
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
_NAMING = ("class", "rel", "itemprop")
_NAMED_CHARS = 300  # from the name of an attribute to the word in its value
_WORD = re.compile(r"\w+")
_text = partial(etree.tostring, method="text", encoding="unicode", with_tail=False)
_data = partial(etree.tostring, method="text", encoding="utf-8", with_tail=False)
_DATES = frozenset(  # those of the article model's pages; `filters.dates` reads more, and their days
    {
        *("article:published", "article:published_time", "citation_publication_date", "date", "datepublished"),
        *("dc.date", "dc.date.issued", "dcterms.created", "dcterms.date", "og:article:published_time"),
        *("parsely-pub-date", "pubdate", "publication_date", "publishdate", "sailthru.date"),
    }
)
_AUTHORS = ("article:author", "author", "byl", "citation_author", "dc.creator", "parsely-author")
_JSONLD_DATES = ('"datePublished"', '"dateCreated"', '"uploadDate"')
_JSONLD_TYPES = re.compile(r'"@type"\s*:\s*("[^"]{1,80}"|\[[^]]{1,400}\])')  # searched: much JSON-LD is invalid
_QUOTED = re.compile(r'"([^"]+)"')
_KINDS = {
    "jsonld_article": "AnalysisNewsArticle Article BackgroundNewsArticle BlogPosting LiveBlogPosting NewsArticle"
    " OpinionNewsArticle Report ReportageNewsArticle ReviewNewsArticle ScholarlyArticle TechArticle",
    "jsonld_forum": "Answer DiscussionForumPosting QAPage",
    "jsonld_product": "AggregateOffer IndividualProduct Offer Product ProductGroup",
    "jsonld_listing": "Accommodation Apartment Event Hotel JobPosting LocalBusiness Place RealEstateListing Residence"
    " Restaurant",
    "jsonld_collection": "Collection CollectionPage ItemList OfferCatalog SearchResultsPage",
    "jsonld_service": "MobileApplication Service SoftwareApplication WebApplication",
}
_TYPES = {name: frozenset(types.split()) for name, types in _KINDS.items()}


def by_tag(elements: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
    """Tag -> its elements, in order; none of a tag that the page lacks."""
    of: defaultdict[str, list[Any]] = defaultdict(list)
    for element in elements:
        of[element.tag].append(element)
    return of


def structure_measures(
    elements: Sequence[Any], of: Mapping[str, Sequence[Any]], visible: bytes, html: str, url: str
) -> Measures:
    """Name -> value of a page's measures, but `main_share`; `elements` in order and `of` a tag. The tree stays."""
    size = visible_bytes(visible)
    bytes_of = partial(_bytes_of, most=size, most_read=len(html))
    records, hidden = _records_and_hidden(elements, of)
    noscripts = _outermost(of["noscript"], ("noscript",))
    measures: dict[str, float | None] = (
        _metadata_measures(of["meta"], of["script"]) | url_measures(url) | _heading_measures(of["title"], of["h1"])
    )
    measures.update(
        page_bytes=float(size),
        script_only=float(size < _SCRIPT_ONLY_BYTES and bool(of["script"])),
        needs_script=float(any("javascript" in _text(element).lower() for element in noscripts)),
        forms=float(len(of["form"])),
        password_fields=float(sum(element.get("type", "").lower() == "password" for element in of["input"])),
        links=float(len(of["a"])),
        record_count=float(len(records)),
        time_elements=float(len(of["time"])),
        byline=float(_names(html, "author") or _names(html, "byline")),
    )
    if not size:
        return measures
    hidden_blocks = [element for element in elements if element in hidden] if hidden else []
    in_paragraphs = bytes_of(of["p"])
    in_records = bytes_of(records)
    code = [element for element in elements if element.tag in TAG_RATIOS["code"]]
    measures.update(
        anchor_share=bytes_of(of["a"]) / size,
        paragraph_share=in_paragraphs / size,
        hidden_share=bytes_of(_outermost(hidden_blocks, _BLOCKS)) / size,
        record_share=in_records / size,
        page_code_share=bytes_of(_outermost(code, TAG_RATIOS["code"])) / size,
        **{f"{name}_ratio": sum([len(of[tag]) for tag in tags]) * 1000 / size for name, tags in TAG_RATIOS.items()},
    )
    if of["p"]:
        measures["paragraph_bytes"] = in_paragraphs / len(of["p"])
    if records:
        measures["record_bytes"] = in_records / len(records)
    return measures


def _outermost(elements: Iterable[Any], tags: Sequence[str]) -> Iterator[Any]:
    """Those of the elements, in document order, that are in no other of them; all have one of the tags."""
    inside: set[Any] = set()
    for element in elements:
        if element not in inside:
            if len(element):
                inside.update(element.iter(*tags))
            yield element


def _bytes(data: bytes) -> int:
    return len(data.translate(None, BLANKS))


def _bytes_of(elements: Iterable[Any], *, most: int, most_read: int) -> int:
    """Bytes of text in elements, at most `most`. Nested ones count again, until as much is read as the page has."""
    size = read = 0
    leaves = []
    for element in elements:
        if len(element):
            data = _data(element)
            size, read = size + _bytes(data), read + len(data)
            if read > most_read:
                break
        elif text := element.text:
            leaves.append(text)
    return min(size + _bytes("".join(leaves).encode()), most)


def _records_and_hidden(elements: Sequence[Any], of: Mapping[str, Sequence[Any]]) -> tuple[list[Any], set[Any]]:
    """The siblings of the most frequent tag and class, if enough (a tie: the first); hidden blocks."""
    alike: list[list[Any]] = []
    hidden: set[Any] = set()
    for tag in _BLOCKS:
        of_class: defaultdict[str, list[Any]] = defaultdict(list)
        for element in of[tag]:
            for name, value in element.items():
                if name == "class" and value:
                    of_class[value].append(element)
                elif name == "hidden" or (name == "style" and HIDING.search(value)):
                    hidden.add(element)
        alike.extend(of_class.values())
    most = max(map(len, alike), default=0)
    frequent = {group[0]: group for group in alike if len(group) == most}
    siblings: defaultdict[Any, list[Any]] = defaultdict(list)
    for element in next((frequent[element] for element in elements if element in frequent), ()):
        siblings[element.getparent()].append(element)
    records = max(siblings.values(), key=len, default=[])
    return records if len(records) >= _LEAST_RECORDS else [], hidden


def _names(html: str, word: str) -> bool:
    """Whether a class, rel or itemprop of an element has this word. The page is searched, which is faster."""
    at = html.find(word)
    while at >= 0:
        name, equals, value = html[max(at - _NAMED_CHARS, 0) : at].rpartition("=")
        value = value.lstrip()
        is_open = value[:1] in "\"'" and value.count(value[:1]) == 1  # within its quotes, or without any
        if equals and name[-12:].rstrip().lower().endswith(_NAMING) and is_open:
            return True
        at = html.find(word, at + len(word))
    return False


def _metadata_measures(metas: Sequence[Any], scripts: Sequence[Any]) -> dict[str, float | None]:
    """Dates, authors and types of `meta` and `script` elements; types are unknown where the page gives none."""
    meta: dict[str, str] = {}  # name in lower case -> content of the first element with it
    for element in metas:
        if name := element.get("property") or element.get("name") or element.get("itemprop"):
            meta.setdefault(name.strip().lower(), element.get("content", "").strip())
    data = "\n".join(script.text or "" for script in scripts if "ld+json" in script.get("type", "").lower())
    measures: dict[str, float | None] = {
        "meta_date": float(any(meta[name] for name in _DATES.intersection(meta))),
        "meta_author": float(any(meta.get(name) for name in _AUTHORS)),
        "noindex": float("noindex" in meta.get("robots", "").lower()),
        "jsonld_date": float(any(name in data for name in _JSONLD_DATES)),
        "jsonld_author": float('"author"' in data),
    }
    types = {of.rpartition("/")[2] for listed in _JSONLD_TYPES.findall(data) for of in _QUOTED.findall(listed)}
    if types:
        measures.update({name: float(not types.isdisjoint(kinds)) for name, kinds in _TYPES.items()})
    if of := meta.get("og:type", "").lower():
        is_article = of.startswith("article")
        measures.update(
            og_article=float(is_article),
            og_website=float(of == "website"),
            og_product=float("product" in of),
            og_article_dated=float(is_article and "article:published_time" in meta),
        )
    return measures


def _heading_measures(titles: Sequence[Any], headings: Sequence[Any]) -> dict[str, float | None]:
    title = _text(titles[0]) if titles else ""
    words = set(_WORD.findall(title.lower()))
    heading: list[str] = next(
        (those for element in _outermost(headings, ("h1",)) if (those := _WORD.findall(_text(element).lower()))), []
    )
    return {
        "title_words": float(len(title.split())),
        "h1_words": float(len(heading)) if heading else None,
        "h1_in_title": sum(word in words for word in heading) / len(heading) if heading else None,
    }
