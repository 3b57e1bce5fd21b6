"""Plain Trafilatura with farmwatch's options, and pages with a labelled main text, for tests and the bench."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trafilatura
import zstandard

from farmwatch.labels.labelled_pages import LabelledPages
from farmwatch.labels.main_text.gold import Truth, keep_main_texts


@dataclass(frozen=True)
class GoldPage:
    """A page with a labelled main text."""

    html: str
    truth: Truth


def gold_pages(source: Path, every: int = 1) -> Iterator[GoldPage]:
    """Every `every`-th page of a source with labels of the main text, in file order."""
    pages = LabelledPages(source.parent, [source.name])
    keep_main_texts(pages)
    pages.labels = pages.labels[::every]
    for label, html in pages.htmls():
        yield GoldPage(html, Truth(label.gold, label.belongs, label.foreign))


def html_of(source: Path, ident: str) -> bytes:
    """The HTML of a page of a source, in UTF-8."""
    data = (source / "html" / f"{ident}.html.zst").read_bytes()
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 26)


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
