"""Search results → pages: hits from files, the frontier, politeness, robots.txt, sitemaps, and fetching.

What needs the HTTP client is loaded when it is first asked for, so that the command line starts fast.
"""

from typing import TYPE_CHECKING, Any

from crawler.errors import BadCrawlSettings, CrawlError, NoContact, OldFrontier, UnusableUrl
from crawler.hits_file import BadLine, hit_id, make_hit, read_hits
from crawler.settings import CrawlSettings
from crawler.urls import fetch_id, normalise, page_id, site_of

if TYPE_CHECKING:
    from crawler.crawl_stage import CrawlStage, FrontierCounts, frontier_left

__all__ = [
    "BadCrawlSettings",
    "BadLine",
    "CrawlError",
    "CrawlSettings",
    "CrawlStage",
    "FrontierCounts",
    "NoContact",
    "OldFrontier",
    "UnusableUrl",
    "fetch_id",
    "frontier_left",
    "hit_id",
    "make_hit",
    "normalise",
    "page_id",
    "read_hits",
    "site_of",
]


def __getattr__(name: str) -> Any:
    if name in ("CrawlStage", "FrontierCounts", "frontier_left"):
        from crawler import crawl_stage

        return getattr(crawl_stage, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
