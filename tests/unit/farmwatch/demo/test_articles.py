"""The articles of the demo by a language model."""

from __future__ import annotations

import re
from itertools import chain

from farmwatch.demo.site_pages import Article, llm_articles

ARTICLES = list(chain.from_iterable(llm_articles().values()))


def _name(article: Article) -> str:
    return f"{article.site}/{article.slug}"


def test_hosts_are_reserved_and_slugs_are_url_safe() -> None:
    """No host can exist, slugs need no escaping in a URL, and no article occurs twice."""
    assert all(article.site.endswith(".example") for article in ARTICLES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", article.slug) for article in ARTICLES)
    assert (
        len({_name(article) for article in ARTICLES}) == len({article.title for article in ARTICLES}) == len(ARTICLES)
    )


def test_no_two_articles_share_a_run_of_twelve_words() -> None:
    """No article repeats twelve consecutive words of another."""
    owner: dict[tuple[str, ...], str] = {}
    for article in ARTICLES:
        words = re.findall(r"[\w']+", article.text.lower())
        for start in range(len(words) - 11):
            run = tuple(words[start : start + 12])
            assert owner.setdefault(run, _name(article)) == _name(article), " ".join(run)
