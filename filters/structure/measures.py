"""The structure measures of a parsed page.

Bytes of text are UTF-8 without white space. Elements are sorted by tag once: each search through a tree costs as much.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lxml import etree

from filters.structure.metadata import metadata_measures
from filters.structure.names import TAG_RATIOS
from filters.structure.page_url import url_measures

Measures = Mapping[str, float | None]
ByTag = Mapping[str, Sequence[Any]]

_BLOCKS = ("article", "div", "li", "section", "tr")
_UNSEEN = ("noscript", "script", "style", "template", "title")
_NEEDED = frozenset({*_BLOCKS, *_UNSEEN, "a", "h1", "input", "meta", "p"})
_LEAST_RECORDS = 3
_SCRIPT_ONLY_BYTES = 200
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
_HIDING_STYLE = re.compile(rf"""style\s*=\s*["'][^"'>]{{0,200}}(?:{_HIDING.pattern})""")
_BYLINE = re.compile(r"""author[\w-]*["'\s](?!\s*:)""")  # a class or rel, not a key of JSON
_WORD = re.compile(r"\w+")
BLANKS = b" \n\t\r"
_text = partial(etree.tostring, method="text", encoding="unicode", with_tail=False)
_data = partial(etree.tostring, method="text", encoding="utf-8", with_tail=False)


def structure_measures(root: Any, elements: Sequence[Any], html: str, url: str) -> Measures:
    """Name -> value of the measures of a page, except `main_share`; a measure that is left out is unknown.

    `elements` are those of the tree of `html` in document order, from its `html` element `root`. It is not changed.
    """
    tags = [element.tag for element in elements]
    counts = Counter(tags)
    by_tag: defaultdict[str, list[Any]] = defaultdict(list)
    for tag, element in zip(tags, elements, strict=True):
        if tag in _NEEDED:
            by_tag[tag].append(element)
    body = max(html.find("<body"), 0)
    size = max(_bytes(_data(root)) - sum(_bytes(_data(element)) for tag in _UNSEEN for element in by_tag[tag]), 0)
    links, paragraphs, records = by_tag["a"], by_tag["p"], _records(by_tag)
    found: dict[str, float | None] = (
        metadata_measures(by_tag["meta"], by_tag["script"]) | url_measures(url) | _heading_measures(by_tag)
    )
    found.update(
        page_bytes=float(size),
        script_only=float(size < _SCRIPT_ONLY_BYTES and bool(by_tag["script"])),
        needs_script=float(any(b"javascript" in _data(element).lower() for element in by_tag["noscript"])),
        forms=float(counts["form"]),
        password_fields=float(sum(element.get("type", "").lower() == "password" for element in by_tag["input"])),
        links=float(len(links)),
        record_count=float(len(records)),
        time_elements=float(counts["time"]),
        byline=float(html.find("byline", body) >= 0 or _BYLINE.search(html, body) is not None),
    )
    if not size:
        return found
    in_paragraphs = _bytes_of(paragraphs, size)
    in_records = _bytes_of(records, size)
    found.update(
        anchor_share=_bytes_of(links, size) / size,
        paragraph_share=in_paragraphs / size,
        hidden_share=_bytes_of(_hidden(by_tag, html, body), size) / size,
        record_share=in_records / size,
        **{f"{name}_ratio": sum([counts[tag] for tag in of]) * 1000 / size for name, of in TAG_RATIOS.items()},
    )
    if paragraphs:
        found["paragraph_bytes"] = in_paragraphs / len(paragraphs)
    if records:
        found["record_bytes"] = in_records / len(records)
    return found


def _bytes(data: bytes) -> int:
    return len(data.translate(None, BLANKS))


def _bytes_of(elements: Iterable[Any], most: int) -> int:
    """Bytes of text in elements. Nested ones count again: `most` bounds the sum, and the work."""
    size = 0
    for element in elements:
        if len(element):
            size += _bytes(_data(element))
        elif text := element.text:
            size += len(text) - text.count(" ") if text.isascii() else _bytes(text.encode())
        if size >= most:
            return most
    return size


def _records(by_tag: ByTag) -> list[Any]:
    """The siblings of the most frequent tag and class, if they are enough."""
    blocks: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for tag in _BLOCKS:
        for element in by_tag[tag]:
            if of := element.get("class"):
                blocks[tag, of].append(element)
    siblings: defaultdict[Any, list[Any]] = defaultdict(list)
    for element in max(blocks.values(), key=len, default=()):
        siblings[element.getparent()].append(element)
    records = max(siblings.values(), key=len, default=[])
    return records if len(records) >= _LEAST_RECORDS else []


def _hidden(by_tag: ByTag, html: str, body: int) -> list[Any]:
    """Blocks with the attribute `hidden` or a style that hides them; the page is searched first, which is faster."""
    hidden = []
    if any(html.find(f" hidden{end}", body) >= 0 for end in "> ="):
        hidden += [element for tag in _BLOCKS for element in by_tag[tag] if element.get("hidden") is not None]
    if _HIDING_STYLE.search(html, body):
        hidden += [element for tag in _BLOCKS for element in by_tag[tag] if _HIDING.search(element.get("style", ""))]
    return hidden


def _heading_measures(by_tag: ByTag) -> dict[str, float | None]:
    title = _text(by_tag["title"][0]) if by_tag["title"] else ""
    words = set(_WORD.findall(title.lower()))
    heading = next((found for element in by_tag["h1"] if (found := _WORD.findall(_text(element).lower()))), None)
    return {
        "title_words": float(len(title.split())),
        "h1_words": float(len(heading)) if heading else None,
        "h1_in_title": sum(word in words for word in heading) / len(heading) if heading else None,
    }
