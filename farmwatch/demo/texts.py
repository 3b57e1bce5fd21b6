"""The demo's articles that a language model wrote: package data, see the README beside them."""

from __future__ import annotations

from importlib import resources

import msgspec


class Article(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One article of a site: `slug` ends its path, `text` has paragraphs and `## ` headings between blank lines."""

    site: str
    slug: str
    title: str
    text: str


def llm_articles() -> dict[str, list[Article]]:
    """All articles by site, sites in alphabetical order, articles as they stand in the file."""
    sites: dict[str, list[Article]] = {}
    folder = resources.files("farmwatch.demo.articles")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".jsonl"):
            for line in entry.read_text(encoding="utf-8").splitlines():
                article = msgspec.json.decode(line, type=Article)
                sites.setdefault(article.site, []).append(article)
    return sites
