"""Human web pages to measure on only: which pages of a file count, and what is flagged of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from scoring.errors import BadTrainingData
from scoring.lite_ngram.ngrams import BUCKETS, vectors
from scoring.lite_ngram.weights import Calibration
from scoring.training.page_sets import TOGETHER, PageSet, measure_pages, read_pages
from scoring.training.regression import Model

WORDS = "these are the words of a page that somebody wrote about rain and trains"


def gold(folder: Path, *rows: Mapping[str, object]) -> Path:
    """A gold.jsonl in a folder of its own."""
    path = folder / "mine" / "gold.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps({"id": "0", **row}) + "\n" for row in rows))
    return path


def test_pages_that_count(tmp_path: Path) -> None:
    """English main texts of articles count; other page types, languages, empty and trained texts are left out."""
    path = gold(
        tmp_path,
        {"articleBody": WORDS},
        {"articleBody": None},
        {"articleBody": "один два три четыре"},
        {"articleBody": "some forum thread", "page_type": "forum"},
        {"articleBody": "known from training"},
        {"articleBody": "an article", "page_type": "article"},
    )
    found = read_pages(path, {"known from training"})
    assert (found.name, found.read, found.used) == ("mine", 6, 2)
    assert found.sets == [PageSet("mine", False, [WORDS.split(), ["an", "article"]])]


def test_pages_of_the_assistants_time_are_a_set_of_their_own(tmp_path: Path) -> None:
    """Dated files: before December 2022 surely human; later pages, and undated ones beside them, are not."""
    dates = ("2022-11-30", "2022-12-01", None, "2019")
    path = gold(tmp_path, *({"articleBody": f"page {date}", "publish_date": date} for date in dates))
    early, late = read_pages(path).sets
    assert (early.recent, [text[1] for text in early.texts]) == (False, ["2022-11-30", "2019"])
    assert (late.recent, [text[1] for text in late.texts]) == (True, ["2022-12-01", "None"])


def test_shares_by_set_and_length() -> None:
    """Each length counts the pages that have it; recent sets stand apart and are not in the sum."""
    _, columns, values = vectors([[b"delve"] * 60])
    weights = np.zeros(BUCKETS)
    weights[columns] = values
    sets = [
        PageSet("a", False, [["delve"] * 60, ["b"] * 100]),
        PageSet("b", False, [["b"] * 60] * 2),
        PageSet("c", True, [["delve"] * 600]),
    ]
    rows = measure_pages(Model(weights, 0.0), Calibration(100.0, 0.0, 0.0, 0.0), sets, 0.95)
    assert [(row.name, row.recent) for row in rows] == [("a", False), ("b", False), (TOGETHER, False), ("c", True)]
    cells = {row.name: {cell.words: (cell.texts, cell.flagged) for cell in row.cells} for row in rows}
    assert cells["a"][60] == (2, 0.5) and cells[TOGETHER][60] == (4, 0.25)
    assert cells["a"][100] == (1, 0.0) and cells["b"][100] == (0, None) and cells["c"][500] == (1, 1.0)


def test_a_bad_line_is_told_with_its_place(tmp_path: Path) -> None:
    """File and line of what is no labelled page; a file that is not there, too."""
    path = gold(tmp_path, {"articleBody": WORDS}, {"articleBody": 7})
    with pytest.raises(BadTrainingData, match=r"gold\.jsonl, line 2"):
        read_pages(path)
    with pytest.raises(BadTrainingData, match="cannot be read"):
        read_pages(tmp_path / "none.jsonl")
