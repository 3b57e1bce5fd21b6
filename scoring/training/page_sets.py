"""Human web pages that no training has seen: how often they are flagged, set by set and by length.

A training's own web texts flatter it, even those left out: they come from the same collections. So further sets of
labelled pages are measured, as `gold.jsonl` files have them: {articleBody[, page_type, publish_date]} a line. Where a
set tells page types, articles count; where it tells dates, the pages of before December 2022 are surely by people, and
the others, undated ones among them, are a set of their own: some may not be.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from scoring.errors import BadTrainingData
from scoring.lite_ngram.normalisation import normalise
from scoring.lite_ngram.weights import Calibration
from scoring.training.regression import Model, model_probability
from scoring.training.texts import MIN_ASCII, SAME_OPENING

LENGTHS = (60, 100, 150, 300, 500)
TOGETHER = "all surely human"
_ASSISTANTS = "2022-12"  # from this month on a page may be an assistant's
_ARTICLE = "article"


class _Line(msgspec.Struct, frozen=True):
    articleBody: str | None = None  # the name in the files
    page_type: str | None = None
    publish_date: str | None = None


class PageSet(NamedTuple):
    """Main texts of pages, as words of the normalised text."""

    name: str
    recent: bool  # published since assistants are in use, or at an unknown time: some pages may not be human
    texts: list[list[str]]


class PageFile(NamedTuple):
    """What a file of labelled pages holds: one set, or two where it tells dates."""

    name: str
    read: int  # lines
    sets: list[PageSet]

    @property
    def used(self) -> int:
        """Pages that are measured."""
        return sum(len(page_set.texts) for page_set in self.sets)


class PageCell(msgspec.Struct, frozen=True):
    """Openings of so many words, of the pages that have them."""

    words: int
    texts: int
    flagged: float | None  # None: no page is so long


class PageRow(msgspec.Struct, frozen=True):
    """A page set at every length."""

    name: str
    recent: bool
    cells: list[PageCell]


def read_pages(path: Path, known_openings: Collection[str] = ()) -> PageFile:
    """The sets of a file of labelled pages: English main texts that are in none of the training files.

    Called by the folder of a `gold.jsonl`, else by the file. Raises BadTrainingData with file and line.
    """
    name = path.parent.name if path.name == "gold.jsonl" else path.stem
    kept: list[tuple[str, list[str]]] = []
    lines = _lines(path)
    for line in lines:
        plain = normalise(line.articleBody or "")
        english = sum(map(str.isascii, plain)) > MIN_ASCII * len(plain)
        if line.page_type in (None, _ARTICLE) and english and plain[:SAME_OPENING] not in known_openings:
            kept.append((line.publish_date or "", plain.split()))
    if not any(date for date, _ in kept):
        return PageFile(name, len(lines), [PageSet(name, False, [words for _, words in kept])])
    early = [words for date, words in kept if "" < date < _ASSISTANTS]
    late = [words for date, words in kept if not "" < date < _ASSISTANTS]
    found = [PageSet(f"{name} to 2022-11", False, early), PageSet(f"{name} later or undated", True, late)]
    return PageFile(name, len(lines), [one for one in found if one.texts])


def _lines(path: Path) -> list[_Line]:
    found = []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadTrainingData(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                found.append(msgspec.json.decode(line, type=_Line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadTrainingData(f"{path}, line {number}: {error}") from error
    return found


def measure_pages(model: Model, calibration: Calibration, sets: Sequence[PageSet], threshold: float) -> list[PageRow]:
    """Share flagged of every set, and of all that are surely human together, which comes after them."""
    sure = [page_set for page_set in sets if not page_set.recent]
    whole = PageSet(TOGETHER, False, [words for page_set in sure for words in page_set.texts])
    return [
        PageRow(one.name, one.recent, [_cell(model, calibration, one.texts, words, threshold) for words in LENGTHS])
        for one in (*sure, *([whole] if sure else []), *(one for one in sets if one.recent))
    ]


def _cell(
    model: Model, calibration: Calibration, texts: Sequence[Sequence[str]], words: int, threshold: float
) -> PageCell:
    cut = [text[:words] for text in texts if len(text) >= words]
    if not cut:
        return PageCell(words, 0, None)
    return PageCell(words, len(cut), float(np.mean(model_probability(model, calibration, cut) > threshold)))
