"""What an article model learns from: the kinds, weights and inputs of labelled pages."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from farmwatch.labels.labelled_pages import Label, LabelledPage
from filters.articles.inputs import LEARNED_INPUTS
from filters.articles.model import VERSION, ArticleModel, StepFunction, read_model
from filters.structure.names import MEASURES
from lab.articles.additive import UNKNOWN
from lab.articles.training import TrainingPages, encode_model
from scoring.errors import TooFewLabels
from stream.schema.records import Features
from tests.support.pages.url_forms import URL_FORMS, with_url


def page(kind: str = "", source: str = "web", tokens: int = 200, **more: Any) -> LabelledPage:
    """A labelled page whose measures are unknown, except its words and its forms."""
    structure = [2.0 if name == "forms" else None for name in MEASURES]
    features = Features(
        id="f", site="a.example", page_id="p", url="", epoch="e", measures={"tokens": tokens}, structure=structure
    )
    label = Label(source=source, id="f", place="line 1", page_type=kind)
    return LabelledPage(label, msgspec.structs.replace(features, **more))


TWO = [page("article"), page("forum")]


def test_labelled_pages_weigh_one_and_long_pages_of_article_sources_their_weight() -> None:
    """Short pages of such a source, and pages of other sources without a label, teach nothing."""
    pages = [*TWO, page(source="news"), page(source="news", tokens=149), page(source="blogs")]
    found = TrainingPages(pages, {"news": 0.3})
    assert (found.kinds, found.weights.tolist()) == (["article", "forum", "article"], [1, 1, 0.3])
    assert found.card() == "news: 1 page taken for articles, weight 0.3; web: 2 labelled pages (article 1, forum 1)"


def test_inputs_are_in_order_and_unknown_ones_are_marked() -> None:
    """The matrix has a column for each input that a model learns from."""
    matrix = TrainingPages(TWO, {}).matrix
    assert matrix.shape == (2, len(LEARNED_INPUTS))
    assert (matrix[0, LEARNED_INPUTS.index("tokens")], matrix[0, LEARNED_INPUTS.index("forms")]) == (200, 2)
    assert matrix[0, LEARNED_INPUTS.index("links")] == UNKNOWN


@pytest.mark.parametrize("url", URL_FORMS.values())
def test_nothing_is_learned_from_a_url(url: str) -> None:
    """Collections lack URLs, or have those of their time: neither tells a kind of page."""
    known = [LabelledPage(one.label, with_url(one.features, url)) for one in TWO]
    assert np.array_equal(TrainingPages(known, {}).matrix, TrainingPages(TWO, {}).matrix)


@pytest.mark.parametrize("more", [{"extract_error": "no_text"}, {"structure": []}])
def test_a_page_that_a_model_cannot_judge_is_predicted_as_dropped(more: dict[str, Any]) -> None:
    """Nothing is learned from it; its probability is 0, and other pages keep their own predictions."""
    found = TrainingPages([page("article", **more), *TWO], {})
    model = ArticleModel(VERSION, "", ("article", "forum"), (0.0, 0.0), {})
    assert found.kinds == ["article", "forum"]
    predicted = [held_out for _, held_out in found.predicted(np.array([[2.0, -1.0], [-2.0, 1.0]]), model)]
    assert [(one.kind, one.guess) for one in predicted] == [("article", ""), ("article", "article"), ("forum", "forum")]
    assert predicted[0].probability == 0 and predicted[1].probability > 0.5 > predicted[2].probability


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ([page()], "no page with a main text has a page_type"),
        ([page("article", extract_error="no_text")], "no page with a main text has a page_type"),
        ([page("article"), page("article")], "every page_type is 'article'"),
        ([page("Article"), page("shop")], "no page_type is 'article', there are Article, shop"),
    ],
)
def test_labels_that_teach_nothing_are_refused(pages: list[LabelledPage], said: str) -> None:
    """The message says what is missing; pages of article sources are no labels."""
    with pytest.raises(TooFewLabels) as raised:
        TrainingPages([*pages, page(source="news")], {"news": 1.0})
    assert said in str(raised.value)


def test_a_written_model_is_the_one_that_was_fitted() -> None:
    """The file has a line for each input, and is read back whole."""
    steps = {"tokens": StepFunction((-0.5,), ((0.25, 0.0), (-1.5, 0.5))), "forms": StepFunction((), ((1.0, 2.0),))}
    model = ArticleModel(VERSION, 'of "mine"', ("article", "forum"), (0.5, -0.5), steps)
    written = encode_model(model)
    assert read_model(written, "") == model and written.count(b"\n") == 4
    empty = msgspec.structs.replace(model, inputs={})
    assert read_model(encode_model(empty), "") == empty
