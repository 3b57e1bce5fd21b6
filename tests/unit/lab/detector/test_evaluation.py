"""Measuring on texts outside the training files: new origins, human pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from lab.detector.evaluation import careful_threshold, measure_unseen
from lab.detector.overlaps import KnownTexts
from lab.detector.regression import Model
from lab.detector.texts import TrainingText, read_pages, read_texts
from scoring.errors import BadTrainingData
from scoring.lite_ngram.ngrams import BUCKETS, vectors
from scoring.lite_ngram.weights import Calibration

pytestmark = pytest.mark.slow


def sample(word: str, *, llm: bool, origin: str) -> TrainingText:
    """A text of one word 200 times; `origin` is its generator or its human source."""
    generator, source = (origin, "made") if llm else ("human", origin)
    return TrainingText("", "web", generator, llm, source, "", [word] * 200)


def model_for(word: str) -> Model:
    """A model with a positive margin for texts of `word` and none for texts of other words."""
    _, columns, values = vectors([[word.encode()] * 200])
    weights = np.bincount(columns, values, BUCKETS).astype(np.float64)
    return Model(weights, 0.0, Calibration(100.0, 0.0, 0.0, 0.0))


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
    (found,) = read_texts(path, 0, KnownTexts(), unseen=True).samples
    assert (found.domain, found.llm) == ("unknown", True)
    with pytest.raises(BadTrainingData, match="line 1"):
        read_texts(path, 0, KnownTexts())


def gold(folder: Path, *rows: Mapping[str, object]) -> Path:
    """A gold.jsonl in a separate folder."""
    path = folder / "mine" / "gold.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps({"id": "0", **row}) + "\n" for row in rows))
    return path


def words(start: int, size: int = 120) -> str:
    """Words that no other start of a multiple of 1,000 has."""
    return " ".join(f"word{number}" for number in range(start, start + size))


def test_pages_that_count(tmp_path: Path) -> None:
    """English main texts of articles of 100 words count; other types, languages, short and known texts do not."""
    known = KnownTexts()
    assert known.add(words(1000).split())
    path = gold(
        tmp_path,
        {"articleBody": words(0)},
        {"articleBody": None},
        {"articleBody": "один два три четыре " * 40},
        {"articleBody": words(2000), "page_type": "forum"},
        {"articleBody": words(1050)},  # 63 of its 113 runs of eight words are known
        {"articleBody": words(3000, 99)},
        {"articleBody": words(1090), "page_type": "article"},  # 23 of 113
    )
    found = read_pages(path, known)
    assert (found.name, found.recent) == ("mine", None)
    assert found.report.dropped == {"known": 1, "no_english_article": 3, "short": 1} and found.report.used == 2
    assert [(text.source, text.domain, text.llm, text.words[0]) for text in found.human] == [
        ("mine", "web", False, "word0"),
        ("mine", "web", False, "word1090"),
    ]


def test_pages_of_the_assistants_time_are_not_learned_from(tmp_path: Path) -> None:
    """Pages before December 2022 are human; later pages, and undated ones among dated files, are only measured on."""
    dates = ("2022-11-30", "2022-12-01", None, "2019")
    rows = [{"articleBody": words(1000 * place), "publish_date": date} for place, date in enumerate(dates)]
    found = read_pages(gold(tmp_path, *rows), KnownTexts())
    assert [text.words[0] for text in found.human] == ["word0", "word3000"]
    assert found.recent is not None and [text[0] for text in found.recent.texts] == ["word1000", "word2000"]


def test_the_careful_threshold_is_that_of_the_worst_source() -> None:
    """At most a twentieth of each source of enough texts lies above it; a handful of texts does not set it."""
    good, bad = np.linspace(0, 0.5, 100), np.linspace(0, 0.9, 201)
    found = careful_threshold([good, bad, np.ones(10)])
    assert found == 0.95 and np.mean(bad > found) <= 0.05
    worse = 1 - (0.9 - bad) / 10
    found = careful_threshold([good, worse])
    assert 0.95 < found < 1 and found == round(found, 3)
    assert np.mean(worse > found) <= 0.05 < np.mean(worse > found - 0.001)
