"""The extractor `auto`: Trafilatura's text of an article, and that of `blocks` of other pages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from filters.articles.model import shipped_model
from filters.measure.article_first import LEAST_PROBABILITY
from filters.measure.epoch import feature_epoch
from filters.measure.golden import golden_pages
from filters.measure.page_measures import PageMeasures, measure
from filters.quality.measures import measure_quality
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer

AUTO = MeasureSettings(extractor="auto")
SENTENCE = "The river rose slowly during night {}, and the people of the village moved their boats to higher ground."
ARTICLE = "".join(f"<p>{' '.join(SENTENCE.format(f'{n} of week {m}') for m in range(3))}</p>" for n in range(25))
PAGES = {
    "article": f"<article><h1>The night of the river</h1>{ARTICLE}</article>",
    "thread": "<ol>"
    + "".join(f"<li class=post><b>user{n}</b><p>{SENTENCE.format(n)} Reply?</p></li>" for n in range(30))
    + "</ol>",
    "embedded": f'<script type="application/ld+json">{{"@type": "Article", "articleBody": "{SENTENCE * 3}"}}</script>',
}


def measured(name: str, **settings: Any) -> PageMeasures:
    html = f"<html><head><title>River</title></head><body>{PAGES[name]}</body></html>"
    return measure("", html, "", msgspec.structs.replace(AUTO, **settings))


@pytest.mark.parametrize(
    ("name", "as_by", "path", "tried"),
    [
        ("article", "trafilatura", "recall", ("recall",)),
        ("thread", "blocks", "blocks", ("recall", "blocks")),
        ("embedded", "trafilatura", "fallback", ("recall", "precision", "blocks")),
    ],
)
def test_the_article_model_chooses(name: str, as_by: str, path: str, tried: tuple[str, ...]) -> None:
    """Features are those by one of the two; they say which and why. Next to no words by `blocks` is no other text."""
    found, other = measured(name), measured(name, extractor=as_by)
    own = {name: found.measures.pop(name, None) for name in ("first_article", "expected_f1")}
    known = other.measures.pop("expected_f1", own["expected_f1"])
    assert (found.path, found.tried) == (path, tried)
    assert msgspec.structs.replace(found, tried=other.tried) == other
    assert known == own["expected_f1"] and (known is None) == (name == "article")
    assert isinstance(own["first_article"], float) and (own["first_article"] > LEAST_PROBABILITY) == (name == "article")


@pytest.mark.parametrize("tokenizer", ["whitespace", "words"])
@pytest.mark.parametrize("number", range(len(golden_pages())))
def test_the_choice_is_that_of_the_shipped_model(number: int, tokenizer: Any) -> None:
    """The probability is what the model says of the features by Trafilatura; the quality is of the text that is kept.

    A page without a text by Trafilatura is no article.
    """
    url, body, charset = golden_pages()[number]
    found = measure(url, body, charset, msgspec.structs.replace(AUTO, tokenizer=tokenizer))
    theirs = Measurer(MeasureSettings(tokenizer=tokenizer)).measure(url, body, "s", encoding=charset)
    logits = shipped_model().logits(theirs)
    if found.error:
        assert (theirs.extract_error, logits) == (found.error, None)
    else:
        assert found.measures["first_article"] == (shipped_model().probability(logits) if logits else 0.0)
        assert found.quality == measure_quality(found.text, tokenizer)


def test_the_epoch_has_the_article_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another article model chooses other texts, under `auto` alone."""
    trafilatura = msgspec.structs.replace(AUTO, extractor="trafilatura")
    before = feature_epoch(AUTO), feature_epoch(trafilatura)
    other = msgspec.structs.replace(shipped_model(), bias=(9.0,) * len(shipped_model().bias))
    monkeypatch.setattr("filters.measure.epoch.shipped_model", lambda: other)
    assert feature_epoch(AUTO) != before[0] and feature_epoch(trafilatura) == before[1]
