"""Labelled pages under URLs of the usual forms."""

from __future__ import annotations

import msgspec
import pytest

from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.schema.records import Features
from tests.support.front_door import article_html
from tests.support.pages.url_forms import URL_FORMS, with_url


def measured(url: str) -> Features:
    found = Measurer(MeasureSettings()).measure(url, article_html(400), "site.example")
    return msgspec.structs.replace(found, id="f", page_id="p")


@pytest.mark.parametrize("url", URL_FORMS.values())
def test_a_page_with_another_url_is_the_page_measured_under_it(url: str) -> None:
    """All that MEASURE tells of a URL is replaced, whether the page had one or not."""
    assert with_url(measured(""), url) == with_url(measured("https://a.example/about"), url) == measured(url)


def test_a_page_that_was_not_parsed_stays_without_a_structure() -> None:
    """It has no inputs for a model."""
    bare = Features(id="f", site="a.example", page_id="p", url="", epoch="e")
    assert with_url(bare, URL_FORMS["id"]).structure == []


@pytest.mark.parametrize("name", shipped_rulesets())
def test_the_form_of_a_url_changes_no_verdict_of_a_shipped_ruleset(name: str) -> None:
    """An article is judged alike under an id, a slug, a date and a query, and without a URL."""
    ruleset, page = load_ruleset(name), measured("")
    assert {judge(with_url(page, url), ruleset).verdict for url in URL_FORMS.values()} == {judge(page, ruleset).verdict}
