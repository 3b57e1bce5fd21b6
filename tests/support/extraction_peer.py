"""Plain Trafilatura with farmwatch's options, and the quality of a main text by labels, for the test and the bench."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trafilatura
import zstandard

_TOKEN = re.compile(r"\w+")


@dataclass(frozen=True)
class GoldPage:
    """A page with its human main text, or with segments inside and outside of its main text."""

    html: str
    body: bytes  # zstd
    text: str | None
    belongs: tuple[str, ...]
    foreign: tuple[str, ...]


def gold_pages(source: Path, every: int = 1) -> Iterator[GoldPage]:
    """Every `every`-th page of a source with labels of the main text, in file order."""
    rows = [json.loads(line) for line in (source / "gold.jsonl").read_text().split("\n") if line]
    for row in [row for row in rows if row.get("articleBody") or row.get("with")][::every]:
        body = _file(source, row["id"]).read_bytes()
        html = html_of(source, row["id"]).decode("utf-8", "replace")
        yield GoldPage(
            html, body, row.get("articleBody") or None, tuple(row.get("with", ())), tuple(row.get("without", ()))
        )


def html_of(source: Path, ident: str) -> bytes:
    """The HTML of a page of a source, in UTF-8."""
    return zstandard.ZstdDecompressor().decompress(_file(source, ident).read_bytes(), max_output_size=1 << 26)


def _file(source: Path, ident: str) -> Path:
    return source / "html" / f"{ident}.html.zst"


def f1(texts: Sequence[str], pages: Sequence[GoldPage]) -> float:
    """The quality of the texts of a source's pages, 0..1.

    With human main texts: the mean over the pages of F1 of the multisets of lower-cased words. With segments: F1 of
    finding exactly the segments inside, over all pages.
    """
    if all(page.text is not None for page in pages):
        return sum(_token_f1(text, page.text or "") for text, page in zip(texts, pages, strict=True)) / len(pages)
    hits = misses = false_hits = 0
    for text, page in zip(texts, pages, strict=True):
        joined = " ".join(text.split())
        found = sum(" ".join(segment.split()) in joined for segment in page.belongs)
        hits += found
        misses += len(page.belongs) - found
        false_hits += sum(" ".join(segment.split()) in joined for segment in page.foreign)
    return 2 * hits / (2 * hits + misses + false_hits)


def _token_f1(found: str, gold: str) -> float:
    ours, theirs = Counter(_TOKEN.findall(found.lower())), Counter(_TOKEN.findall(gold.lower()))
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total()) if ours or theirs else 1.0


def bare(html: str, *, precision: bool = False) -> Any:
    """Call Trafilatura with the options of the extractor `trafilatura`; returns its document, or None."""
    return trafilatura.bare_extraction(
        html,
        favor_recall=not precision,
        favor_precision=precision,
        include_comments=False,
        include_links=True,
        include_formatting=True,
        output_format="xml",
    )


def bare_text(html: str, *, retried: bool) -> str:
    """All text of Trafilatura's result: for recall, or if `retried` for precision if that finds any.

    It is joined as Trafilatura does to count it; Trafilatura's own rendering would contain link targets.
    """
    documents = [bare(html, precision=True)] if retried else []
    documents = [document for document in documents if document is not None] or [bare(html)]
    return " ".join(documents[0].body.itertext()) if documents[0] is not None else ""
