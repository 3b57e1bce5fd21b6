"""The articles that a language model wrote for the demo."""

from __future__ import annotations

import re
from importlib import resources
from itertools import chain

import pytest

from farmwatch.demo.site_pages import Article, llm_articles

ARTICLES = list(chain.from_iterable(llm_articles().values()))


def _name(article: Article) -> str:
    return f"{article.site}/{article.slug}"


def test_sites_and_articles_enough_for_a_verdict() -> None:
    """At least seven sites have eleven articles or more: the sequential test needs eight."""
    full = [site for site, articles in llm_articles().items() if len(articles) >= 11]
    assert len(full) >= 7
    assert len(ARTICLES) >= 77


@pytest.mark.parametrize("article", ARTICLES, ids=_name)
def test_an_article_is_prose_of_250_to_400_words(article: Article) -> None:
    """Each text has 250-400 words in paragraphs of prose, and at most three headings."""
    blocks = article.text.split("\n\n")
    headings = [block for block in blocks if block.startswith("## ")]
    paragraphs = [block for block in blocks if not block.startswith("## ")]
    assert 250 <= sum(len(paragraph.split()) for paragraph in paragraphs) <= 400
    assert len(headings) <= 3
    for paragraph in paragraphs:
        assert 30 <= len(paragraph.split()) <= 120
        assert "\n" not in paragraph
        assert paragraph[-1] in ".!?"


@pytest.mark.parametrize("article", ARTICLES, ids=_name)
def test_hosts_are_reserved_and_slugs_are_url_safe(article: Article) -> None:
    """No article names a host that could exist, and its slug goes into a URL as it is."""
    assert article.site.endswith(".example")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", article.slug)
    assert article.title == article.title.strip() != ""


def test_slugs_and_titles_are_distinct() -> None:
    """No title and no (site, slug) occurs twice."""
    assert len({_name(article) for article in ARTICLES}) == len(ARTICLES)
    assert len({article.title for article in ARTICLES}) == len(ARTICLES)


def test_no_two_articles_share_a_run_of_twelve_words() -> None:
    """Each article was written for itself: none repeats twelve words in a row of another."""
    owner: dict[tuple[str, ...], str] = {}
    for article in ARTICLES:
        words = re.findall(r"[\w']+", article.text.lower())
        for start in range(len(words) - 11):
            run = tuple(words[start : start + 12])
            assert owner.setdefault(run, _name(article)) == _name(article), " ".join(run)


def test_the_folder_says_who_wrote_the_texts() -> None:
    """The label ships with the data: a language model wrote it, Apache-2.0."""
    label = resources.files("farmwatch.demo.articles").joinpath("README.md").read_text(encoding="utf-8")
    assert "written by a language model" in label
    assert "Apache-2.0" in label
