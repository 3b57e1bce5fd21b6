"""The verdicts of a ruleset on labelled pages, of those without a URL also under URLs of the usual forms.

A crawled page always has a URL. What a ruleset makes of a page without one may therefore differ from a crawl.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from farmwatch.labels.labelled_pages import LabelledPage
from filters.measure.page_measures import url_path
from filters.rules.evaluation import LabelledVerdict, RulesetEvaluation, evaluate
from filters.rules.judgement import judge
from filters.rules.ruleset import Ruleset
from filters.structure.names import MEASURES
from filters.structure.page_url import url_measures
from stream.schema.records import Features

NO_URL = "none"
URL_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "slug": "https://site.example/the-river-rose-in-the-night",
        "dated": "https://site.example/2008/01/07/the-river-rose-in-the-night/",
        "id": "https://site.example/node/12345",
        "query": "https://site.example/?p=12345",
    }
)
"""Form of a URL -> an example. No shipped rule takes one of them for the URL of a page that is no article."""


class RulesetVerdicts:
    """The verdicts of a ruleset on the pages that are added."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._pages: list[LabelledVerdict] = []
        self._by_form: dict[str, list[LabelledVerdict]] = {}

    def add(self, page: LabelledPage) -> None:
        verdict = self._judged(page, page.features)
        self._pages.append(verdict)
        if page.label.url:
            return
        self._by_form.setdefault(NO_URL, []).append(verdict)
        for form, url in URL_FORMS.items():
            self._by_form.setdefault(form, []).append(self._judged(page, with_url(page.features, url)))

    def evaluation(self) -> RulesetEvaluation:
        return evaluate(self._pages, self._by_form)

    def _judged(self, page: LabelledPage, features: Features) -> LabelledVerdict:
        return LabelledVerdict(page.label.page_type, page.label.source, judge(features, self._ruleset))


def with_url(features: Features, url: str) -> Features:
    """The features as if the page had this URL."""
    structure = dict(zip(MEASURES, features.structure, strict=True)) if features.structure else {}
    return msgspec.structs.replace(
        features,
        url=url,
        measures={**features.measures, "url_path": url_path(url)},
        structure=list({**structure, **url_measures(url)}.values()) if structure else [],
    )
