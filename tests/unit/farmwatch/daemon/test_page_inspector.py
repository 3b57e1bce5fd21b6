"""The inspector that CRAWL gets, and the words that it uses."""

from __future__ import annotations

from crawler.reasons import NO_PAGES, group_of_reason
from crawler.web.inspection import Inspector
from farmwatch.daemon import page_inspector
from filters.no_page.inspector import REASONS

INSPECTOR: Inspector = page_inspector
SORRY = "<html><head><title>Not found</title></head><body><h1>Not found</h1><p>{}</p></body></html>"


def test_each_of_its_reasons_has_a_meaning_and_a_group() -> None:
    """CRAWL explains all of them, and no others; `farmwatch rate` has words for each."""
    assert set(REASONS) == set(NO_PAGES)
    assert all(group_of_reason(reason) for reason in REASONS)


def test_it_sees_a_challenge_and_compares_answers() -> None:
    """A header says a challenge; two pages "not found" of a site are the same, whatever path they repeat."""
    said = INSPECTOR.inspect("http://a.test/", 403, {"cf-mitigated": "challenge"}, b"<html>", "utf-8")
    assert said.reason == "challenge"
    one, other = (
        INSPECTOR.inspect(f"http://a.test/{path}", 200, {}, SORRY.format(f"There is no page {path} here."), "")
        for path in ("0a1b2c3d", "story-12")
    )
    assert INSPECTOR.same(one.outline, other.outline)
