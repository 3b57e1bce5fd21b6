"""Plain Trafilatura with farmwatch's options, and pages with a labelled main text, for tests and the bench."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trafilatura
import zstandard

from farmwatch.labels.labelled_pages import LabelledPages
from lab.extractor.gold import GoldTexts, keep_main_texts


@dataclass(frozen=True)
class GoldPage:
    """A page with a labelled main text."""

    html: str
    truth: GoldTexts


def gold_pages(source: Path, every: int = 1) -> Iterator[GoldPage]:
    """Every `every`-th page of a source with labels of the main text, in file order."""
    pages = LabelledPages(source.parent, [source.name])
    keep_main_texts(pages)
    pages.labels = pages.labels[::every]
    for label, html in pages.htmls():
        yield GoldPage(html, GoldTexts(label.gold, label.belongs, label.foreign))


def f1(texts: Sequence[str], truths: Sequence[GoldTexts]) -> float:
    """F1 of the texts of a source's pages: the mean over pages, or that of all segments."""
    hits, of = np.array([truth.hits(text) for text, truth in zip(texts, truths, strict=True)]).sum(axis=0)
    return float(hits / of)


def html_of(source: Path, ident: str) -> bytes:
    """The HTML of a page of a source, in UTF-8."""
    data = (source / "html" / f"{ident}.html.zst").read_bytes()
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 26)


def bare(html: str, focus: str = "recall") -> Any:
    """Call Trafilatura with the options of the extractor `trafilatura`; returns its document, or None."""
    return trafilatura.bare_extraction(
        html,
        favor_recall=focus == "recall",
        favor_precision=focus == "precision",
        include_comments=False,
        include_links=True,
        include_formatting=True,
        output_format="xml",
    )


def bare_text(html: str, focus: str = "recall") -> str:
    """All text of Trafilatura's result, joined as it does to count it; its own rendering would contain link targets."""
    document = bare(html, focus)
    return " ".join(document.body.itertext()) if document is not None else ""
