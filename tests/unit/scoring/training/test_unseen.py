"""Measuring on texts outside the training files: new origins, sites by three pages, Python's own prose."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scoring.errors import BadTrainingData
from scoring.lite_ngram.ngrams import BUCKETS, vectors
from scoring.lite_ngram.weights import Calibration
from scoring.training.python_prose import PAGE_WORDS, docstrings, reference_pages
from scoring.training.regression import Model
from scoring.training.texts import TrainingText, read_texts
from scoring.training.unseen import measure_reference, measure_unseen

pytestmark = pytest.mark.slow

AS_IT_IS = Calibration(100.0, 0.0, 0.0, 0.0)


def sample(word: str, *, llm: bool, origin: str, site: str = "") -> TrainingText:
    """A text of one word 200 times; `origin` is its generator or its human source."""
    generator, source = (origin, "made") if llm else ("human", origin)
    return TrainingText("", "web", generator, llm, source, "", [word] * 200, site)


def model_for(word: str) -> Model:
    """A model with a positive margin for texts of `word` and none for texts of other words."""
    _, columns, values = vectors([[word.encode()] * 200])
    weights = np.zeros(BUCKETS)
    weights[columns] = values
    return Model(weights, 0.0)


def test_what_is_new_is_told_apart() -> None:
    """Generators and human sources of the training files are not new; the figures for new ones leave them out."""
    seen = [sample("a", llm=True, origin="old"), sample("b", llm=False, origin="press")]
    texts = [
        sample("delve", llm=True, origin="novel"),
        sample("b", llm=True, origin="old"),
        sample("b", llm=False, origin="press"),
        sample("c", llm=False, origin="diary"),
    ]
    found = measure_unseen(model_for("delve"), AS_IT_IS, texts, seen, 0.95)
    rows = {(row.source, row.generator): row for row in found.rows}
    assert {key: row.new for key, row in rows.items()} == {
        ("made", "novel"): True,
        ("made", "old"): False,
        ("press", "human"): False,
        ("diary", "human"): True,
    }
    assert (found.new_llm, found.new_human, found.new_generators) == (1, 1, 1.0)  # the old ones do not count
    assert rows["made", "novel"].flagged == 1.0 and rows["diary", "human"].flagged == 0.0


def test_both_sides_of_a_figure_are_new() -> None:
    """A human text of a trained source, which looks like an LLM's, does not touch what is said of new texts."""
    seen = [sample("a", llm=True, origin="old"), sample("b", llm=False, origin="press")]
    texts = [
        *(sample("b", llm=True, origin="novel", site="x") for _ in range(3)),
        *(sample("delve", llm=False, origin="press", site="y") for _ in range(3)),
        *(sample("c", llm=False, origin="diary", site="z") for _ in range(3)),
    ]
    model = model_for("delve")
    found = measure_unseen(model, AS_IT_IS, texts, seen, 0.95)
    assert (found.new_generators, found.three_pages, found.sites) == (0.5, 0.5, 2)  # all margins are 0: ties
    assert found.new_prompts is None and found.new_prompts_llm == 0  # its prompts are those of "made", which was seen
    elsewhere = [text._replace(source="web-2") if text.llm else text for text in texts]
    assert measure_unseen(model, AS_IT_IS, elsewhere, seen, 0.95).new_prompts_llm == 3


@pytest.mark.parametrize("split", ["essays-test", "essays-valid", "essays_train", "essays"])
def test_splits_of_a_set_are_one_source(split: str) -> None:
    """A human source is not new where another split of the same set was trained on; a name like one is another's."""
    seen = [sample("a", llm=False, origin="essays-valid"), sample("d", llm=True, origin="g")]
    found = measure_unseen(
        model_for("d"),
        AS_IT_IS,
        [sample("b", llm=False, origin=split), sample("c", llm=False, origin="contest")],
        seen,
        0.95,
    )
    assert {row.source: row.new for row in found.rows} == {split: False, "contest": True}
    assert found.new_human == 1


def test_sites_are_ranked_by_three_pages() -> None:
    """Means of three neighbouring pages are compared; left-over pages and texts of no site are not."""
    texts = [
        *(sample(word, llm=True, origin="g", site="x") for word in ("delve", "b", "b", "b")),
        *(sample("c", llm=False, origin="h", site="y") for _ in range(3)),
        sample("delve", llm=False, origin="h"),
    ]
    found = measure_unseen(model_for("delve"), AS_IT_IS, texts, [], 0.95)
    assert (found.sites, found.three_pages) == (2, 1.0)
    assert measure_unseen(model_for("delve"), AS_IT_IS, texts[:2], [], 0.95).three_pages is None


def test_unseen_lines_need_no_identifier_and_no_domain(tmp_path: Path) -> None:
    """Files that are only measured on may leave out `id` and `domain`; training files may not."""
    path = tmp_path / "pages.jsonl"
    line = {"site": "a.example", "label": "llm", "generator": "g", "src": "s", "text": "some words here " * 60}
    path.write_text(json.dumps(line) + "\n")
    (found,) = read_texts(path, 0, unseen=True).samples
    assert (found.site, found.domain, found.llm) == ("a.example", "unknown", True)
    with pytest.raises(BadTrainingData, match="line 1"):
        read_texts(path, 0)


def test_python_brings_human_prose() -> None:
    """The language reference comes in pages of 300 words, docstrings whole; both are long enough to be judged."""
    pages, strings = reference_pages(), docstrings()
    assert len(pages) >= 40 and {len(page.split()) for page in pages} == {PAGE_WORDS}
    assert len(strings) >= 50 and all(len(text.split()) >= 150 for text in strings)


def test_python_prose_is_measured_without_what_is_abstained_from() -> None:
    """Rows count the texts that are judged: a model that calls all human flags none, and ranks below any LLM text."""
    none = Model(np.zeros(BUCKETS), -1.0)
    rows = measure_reference(none, AS_IT_IS, np.array([0.0]), 0.95)
    assert [row.prose for row in rows] == ["language reference", "docstrings"]
    assert all(row.flagged == 0.0 and row.auroc == 1.0 and row.texts >= 40 for row in rows)
    assert rows[1].texts <= len(docstrings())
