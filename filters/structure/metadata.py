"""The measures of a page's metadata: meta elements, Open Graph (https://ogp.me) and JSON-LD (https://schema.org)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_DATES = frozenset(
    {
        *("article:published", "article:published_time", "citation_publication_date", "date", "datepublished"),
        *("dc.date", "dc.date.issued", "dcterms.created", "dcterms.date", "og:article:published_time"),
        *("parsely-pub-date", "pubdate", "publication_date", "publishdate", "sailthru.date"),
    }
)
_AUTHORS = ("article:author", "author", "byl", "citation_author", "dc.creator", "parsely-author")
_JSONLD_DATES = ('"datePublished"', '"dateCreated"', '"uploadDate"')
_JSONLD_TYPES = re.compile(r'"@type"\s*:\s*("[^"]{1,80}"|\[[^]]{1,400}\])')  # searched: much JSON-LD is invalid
_QUOTED = re.compile(r'"([^"]+)"')
_KINDS = {
    "jsonld_article": "AnalysisNewsArticle Article BackgroundNewsArticle BlogPosting LiveBlogPosting NewsArticle"
    " OpinionNewsArticle Report ReportageNewsArticle ReviewNewsArticle ScholarlyArticle TechArticle",
    "jsonld_forum": "Answer DiscussionForumPosting QAPage",
    "jsonld_product": "AggregateOffer IndividualProduct Offer Product ProductGroup",
    "jsonld_listing": "Accommodation Apartment Event Hotel JobPosting LocalBusiness Place RealEstateListing Residence"
    " Restaurant",
    "jsonld_collection": "Collection CollectionPage ItemList OfferCatalog SearchResultsPage",
    "jsonld_service": "MobileApplication Service SoftwareApplication WebApplication",
}
_TYPES = {name: frozenset(types.split()) for name, types in _KINDS.items()}


def metadata_measures(metas: Sequence[Any], scripts: Sequence[Any]) -> dict[str, float | None]:
    """Dates, authors and types of `meta` and `script` elements; types are unknown where the page gives none."""
    meta: dict[str, str] = {}  # name in lower case -> content of the first element with it
    for element in metas:
        if name := element.get("property") or element.get("name") or element.get("itemprop"):
            meta.setdefault(name.strip().lower(), element.get("content", "").strip())
    data = "\n".join(script.text or "" for script in scripts if "ld+json" in script.get("type", "").lower())
    measures: dict[str, float | None] = {
        "meta_date": float(any(meta[name] for name in _DATES.intersection(meta))),
        "meta_author": float(any(meta.get(name) for name in _AUTHORS)),
        "noindex": float("noindex" in meta.get("robots", "").lower()),
        "jsonld_date": float(any(name in data for name in _JSONLD_DATES)),
        "jsonld_author": float('"author"' in data),
    }
    types = {of.rpartition("/")[2] for listed in _JSONLD_TYPES.findall(data) for of in _QUOTED.findall(listed)}
    if types:
        measures.update({name: float(not types.isdisjoint(kinds)) for name, kinds in _TYPES.items()})
    if of := meta.get("og:type", "").lower():
        is_article = of.startswith("article")
        measures.update(
            og_article=float(is_article),
            og_website=float(of == "website"),
            og_product=float("product" in of),
            og_article_dated=float(is_article and "article:published_time" in meta),
        )
    return measures
