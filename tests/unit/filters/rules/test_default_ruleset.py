"""The ruleset `default`: what is in force, what is only shown, and which URLs are no article's."""

from __future__ import annotations

from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from tests.support.numbered_pages import page_features

DEFAULT, NOTES = load_ruleset("default"), load_ruleset("notes")


def failed(url_path: str, tokens: int = 400, link_code_share: float | None = None) -> list[str]:
    """What a page of English words fails."""
    page = page_features(
        tokens=tokens, language="en", duplicate_share=0.0, url_path=url_path, link_code_share=link_code_share
    )
    return judge(page, DEFAULT).failed


def test_what_the_users_ask_is_in_force_and_their_other_rules_are_shown() -> None:
    """Words, repeats, language and the notes' kinds of URL drop pages as in the notes; the rest has no threshold."""
    notes = {rule.name: rule for rule in NOTES.rules}
    assert [rule.name for rule in DEFAULT.rules] == list(notes)
    in_force = {rule.name: rule for rule in DEFAULT.rules if rule.threshold is not None}
    assert set(in_force) == {"extracted", "min_tokens", "duplicate_share", "language", "url_kind"}
    for name in set(in_force) - {"url_kind"}:
        assert in_force[name] == notes[name]
    assert set(notes["url_kind"].threshold or ()) < set(in_force["url_kind"].threshold or ())  # type: ignore[arg-type]
    assert in_force["url_kind"].patterns[: len(notes["url_kind"].patterns)] == notes["url_kind"].patterns


NO_ARTICLES = """
/ /tag/rivers /forum/boats/how-do-i-moor /threads/leaking-hull.123/ /viewtopic.php?t=99 /t/welcome/1
/questions/4711/why-do-rivers-meander /r/boats/comments/1a2b3c/my_boat/ /products/oar /gp/product/B000 /Store/oars
/app/1091500/Sailing /docs/install.html /en-us/docs/Web/API /collections/summer /c/oars /shop/boats/ /services
/services/repair/ /pricing /about/team /contact?from=home
"""
ARTICLES = """
/how-rivers-rise /2024/05/the-product-of-a-long-winter /p/a-letter-from-the-river /wiki/River /guide/mooring
/features/the-last-ferryman /news/about-a-boat /blog/what-services-cost /docs-are-fun /boarding-the-ferry
/blog/2023/collections-of-poems /story?id=5&title=forum
"""


def test_urls_of_articles_and_of_other_pages() -> None:
    """Index and tag pages, forums, shops, documentation, collections and what a firm says of itself are dropped.

    A word in a title is no kind, nor is a path that magazines, encyclopedias and letters share with shops.
    """
    assert [path for path in NO_ARTICLES.split() if failed(path) != ["url_kind"]] == []
    assert [path for path in ARTICLES.split() if failed(path)] == []


def test_an_article_that_only_the_blocks_speak_against_is_kept() -> None:
    """Links and blocks are shown and decide nothing: the labels favour neither."""
    assert failed("/a", link_code_share=0.9) == []
    assert failed("/a", tokens=199, link_code_share=0.9) == ["min_tokens"]
