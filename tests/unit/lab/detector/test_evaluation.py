"""Measuring on texts outside the training files: new origins, human pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from lab.detector.evaluation import TOGETHER, measure_pages, measure_unseen
from lab.detector.regression import Model
from lab.detector.texts import PageSet, TrainingText, read_pages, read_texts
from scoring.errors import BadTrainingData
from scoring.lite_ngram.ngrams import BUCKETS, vectors
from scoring.lite_ngram.weights import Calibration

pytestmark = pytest.mark.slow

WORDS = "these are the words of a page that somebody wrote about rain and trains"


def sample(word: str, *, llm: bool, origin: str) -> TrainingText:
    """A text of one word 200 times; `origin` is its generator or its human source."""
    generator, source = (origin, "made") if llm else ("human", origin)
    return TrainingText("", "web", generator, llm, source, "", [word] * 200)


def model_for(word: str) -> Model:
    """A model with a positive margin for texts of `word` and none for texts of other words."""
    _, columns, values = vectors([[word.encode()] * 200])
    weights = np.zeros(BUCKETS)
    weights[columns] = values
    return Model(weights, 0.0, 0.95, Calibration(100.0, 0.0, 0.0, 0.0))


MODEL = model_for("delve")


def test_what_is_new_is_told_apart() -> None:
    """Generators and human sources of the training files are not new; figures for new ones leave them out."""
    seen = [sample("a", llm=True, origin="old"), sample("b", llm=False, origin="press")]
    texts = [
        sample("delve", llm=True, origin="novel"),
        sample("b", llm=True, origin="old"),
        sample("delve", llm=False, origin="press"),
        sample("c", llm=False, origin="diary"),
    ]
    found = measure_unseen(MODEL, texts, seen)
    rows = {(row.source, row.generator): row for row in found.rows}
    assert {key: row.new for key, row in rows.items()} == {
        ("made", "novel"): True,
        ("made", "old"): False,
        ("press", "human"): False,
        ("diary", "human"): True,
    }
    assert (found.new_llm, found.new_human, found.new_generators) == (1, 1, 1.0)  # the old ones do not count
    assert rows["made", "novel"].flagged == 1.0 and rows["diary", "human"].flagged == 0.0


@pytest.mark.parametrize("split", ["essays-test", "essays-valid", "essays_train", "essays"])
def test_splits_of_a_set_are_one_source(split: str) -> None:
    """A human source is not new if another split of its set was trained on; a similar name is another set."""
    seen = [sample("a", llm=False, origin="essays-valid"), sample("d", llm=True, origin="g")]
    texts = [sample("b", llm=False, origin=split), sample("c", llm=False, origin="contest")]
    found = measure_unseen(MODEL, texts, seen)
    assert {row.source: row.new for row in found.rows} == {split: False, "contest": True}
    assert found.new_human == 1


def test_unseen_lines_need_no_identifier_and_no_domain(tmp_path: Path) -> None:
    """Files for measuring only may leave out `id` and `domain`; training files may not."""
    path = tmp_path / "pages.jsonl"
    line = {"label": "llm", "generator": "g", "src": "s", "text": "some words here " * 60}
    path.write_text(json.dumps(line) + "\n")
    (found,) = read_texts(path, 0, set(), unseen=True).samples
    assert (found.domain, found.llm) == ("unknown", True)
    with pytest.raises(BadTrainingData, match="line 1"):
        read_texts(path, 0, set())


def gold(folder: Path, *rows: Mapping[str, object]) -> Path:
    """A gold.jsonl in a separate folder."""
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
    assert (found.name, found.report.read, found.report.used) == ("mine", 6, 2)
    assert found.sets == [PageSet("mine", False, [WORDS.split(), ["an", "article"]])]


def test_pages_of_the_assistants_time_are_a_set_of_their_own(tmp_path: Path) -> None:
    """Pages before December 2022 are human; later pages, and undated ones among dated files, are a separate set."""
    dates = ("2022-11-30", "2022-12-01", None, "2019")
    path = gold(tmp_path, *({"articleBody": f"page {date}", "publish_date": date} for date in dates))
    early, late = read_pages(path).sets
    assert (early.recent, [text[1] for text in early.texts]) == (False, ["2022-11-30", "2019"])
    assert (late.recent, [text[1] for text in late.texts]) == (True, ["2022-12-01", "None"])


def test_shares_by_set_and_length() -> None:
    """Each length counts the pages of that length; recent sets are separate and not in the sum."""
    sets = [
        PageSet("a", False, [["delve"] * 60, ["b"] * 100]),
        PageSet("b", False, [["b"] * 60] * 2),
        PageSet("c", True, [["delve"] * 600]),
    ]
    rows = measure_pages(MODEL, sets)
    assert [(row.name, row.recent) for row in rows] == [("a", False), ("b", False), (TOGETHER, False), ("c", True)]
    cells = {row.name: {cell.words: (cell.texts, cell.flagged) for cell in row.cells} for row in rows}
    assert cells["a"][60] == (2, 0.5) and cells[TOGETHER][60] == (4, 0.25)
    assert cells["a"][100] == (1, 0.0) and cells["b"][100] == (0, None) and cells["c"][500] == (1, 1.0)
