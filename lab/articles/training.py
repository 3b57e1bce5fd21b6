"""Labelled pages as what an article model learns from, and the model that was learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from farmwatch.labels.labelled_pages import LabelledPage
from filters.articles.inputs import INPUTS, LEARNED_INPUTS, has_inputs, inputs_of
from filters.articles.model import VERSION, ArticleModel
from lab.articles.additive import Floats, fit, out_of_fold
from lab.articles.held_out import ArticleErrors, HeldOutPage, article_errors, kept_share
from scoring.errors import TooFewLabels
from scoring.statistics.shares import Share
from stream.schema.vocabulary import PageClass
from stream.text.registrable_domain import registrable_domain
from stream.text.wording import counted

_LEARNED_PLACES = [INPUTS.index(name) for name in LEARNED_INPUTS]
_WORDS = LEARNED_INPUTS.index("tokens")
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SHOWN_AT = 0.5  # probability at which kept pages are shown by kind and source
ARTICLE_WORDS = 150
"""Fewest words of a page without a label that counts as an article because of its source."""


@dataclass(frozen=True, slots=True)
class TrainingPage:
    """A page with its kind; `inputs` is None for a page without a main text, from which nothing is learned."""

    id: str
    source: str
    domain: str  # registrable
    kind: str
    is_labelled: bool
    weight: float
    inputs: Sequence[float] | None


class TrainingPages:
    """The pages that teach their kind: those with a page_type, and those of article sources."""

    def __init__(self, pages: Iterable[LabelledPage], article_sources: Mapping[str, float]) -> None:
        """Take the pages; `article_sources` = source -> weight of its pages. Raises TooFewLabels."""
        self.pages: list[TrainingPage] = []
        for page in pages:
            label, features = page.label, page.features
            inputs = inputs_of([features])[0, _LEARNED_PLACES].tolist() if has_inputs(features) else None
            kind, weight = label.page_type, 1.0
            if not kind:
                kind, weight = PageClass.ARTICLE, article_sources.get(label.source, 0.0)
                if not weight or inputs is None or inputs[_WORDS] < ARTICLE_WORDS:
                    continue
            domain = registrable_domain(features.site)
            is_labelled = bool(label.page_type)
            self.pages.append(TrainingPage(label.id, label.source, domain, kind, is_labelled, weight, inputs))
        self.labelled = [page for page in self.pages if page.is_labelled]
        self.learned = [page for page in self.pages if page.inputs is not None]
        kinds = {page.kind for page in self.labelled if page.inputs is not None}
        if not kinds:
            raise TooFewLabels("no page with a main text has a page_type: label pages with `farmwatch review label`")
        if PageClass.ARTICLE not in kinds:
            raise TooFewLabels(f"no page_type is 'article', there are {', '.join(sorted(kinds))}: label articles too")
        if len(kinds) == 1:
            raise TooFewLabels("every page_type is 'article': label pages of other kinds too")

        self.matrix: Floats = np.array([page.inputs for page in self.learned], np.float64)  # columns: LEARNED_INPUTS
        self.kinds = [page.kind for page in self.learned]
        self.weights: Floats = np.array([page.weight for page in self.learned])
        self.domains = [page.domain for page in self.learned]  # registrable

    def card(self) -> str:
        """What a model learned from these pages was taught by: sources, kinds, weights."""
        parts = []
        for source in sorted({page.source for page in self.learned}):
            of_source = [page for page in self.learned if page.source == source]
            kinds = Counter(page.kind for page in of_source if page.is_labelled)
            if kinds:
                by_kind = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
                parts.append(f"{source}: {counted(sum(kinds.values()), 'labelled page')} ({by_kind})")
            others = [page for page in of_source if not page.is_labelled]
            if others:
                parts.append(
                    f"{source}: {counted(len(others), 'page')} taken for articles, weight {others[0].weight:g}"
                )
        return "; ".join(parts)

    def predicted(self, logits: Floats, model: ArticleModel) -> list[tuple[TrainingPage, HeldOutPage]]:
        """Each page with its prediction by out-of-fold `logits` of the pages learned from."""
        rows = iter(logits.tolist())
        predictions = []
        for page in self.pages:
            probability, guess = 0.0, ""
            if page.inputs is not None:
                row = tuple(next(rows))
                probability, guess = model.probability(row), model.kind(row)
            predictions.append((page, HeldOutPage(page.kind, page.domain, probability, guess)))
        return predictions


def encode_model(model: ArticleModel) -> bytes:
    """The file of a model: JSON with a line for each input, so that versions can be compared by `diff`."""
    head = msgspec.json.encode(msgspec.structs.replace(model, inputs={}))
    assert head.endswith(b"{}}")
    lines = (msgspec.json.encode(name) + b":" + msgspec.json.encode(steps) for name, steps in model.inputs.items())
    return head[:-2] + b"\n" + b",\n".join(lines) + b"\n}}\n"


class TrainedReport(NamedTuple):
    """The errors of a model on pages of domains that it did not see."""

    errors: ArticleErrors
    sources: dict[str, Share]  # pages of article sources that SHOWN_AT keeps


def train(training: TrainingPages, on_progress: Callable[[int], None]) -> tuple[ArticleModel, TrainedReport]:
    """The model of the pages, and its errors out of fold. `on_progress` gets 1 after each fit. Raises TooFewLabels."""
    matrix, kinds, weights = training.matrix, training.kinds, training.weights
    logits = out_of_fold(matrix, LEARNED_INPUTS, kinds, weights, training.domains, on_progress)
    fitted = fit(matrix, LEARNED_INPUTS, kinds, weights)
    on_progress(1)
    if not fitted.steps:
        raise TooFewLabels("no measure tells the kinds of these pages apart: label more pages")
    model = ArticleModel(VERSION, training.card(), fitted.kinds, fitted.bias, fitted.steps)
    predicted = training.predicted(logits, model)
    labelled = [prediction for page, prediction in predicted if page.is_labelled]
    sources = sorted({page.source for page in training.pages if not page.is_labelled})
    return model, TrainedReport(
        errors=article_errors(labelled, PageClass.ARTICLE, _THRESHOLDS, SHOWN_AT),
        sources={
            source: kept_share(
                [prediction for page, prediction in predicted if page.source == source and not page.is_labelled],
                SHOWN_AT,
            )
            for source in sources
        },
    )
