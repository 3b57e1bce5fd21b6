"""Sources of hits: search engines by their APIs, Common Crawl, and any search that speaks JSON.

Each is a pure translation (`Source`); `Searcher` asks one politely and keeps what it used; `crawler.hits_file` reads
hits from files. Nothing heavy is loaded here: what needs the HTTP client is in `asking`, `searching` and `opening`.
"""

from crawler.sources.settings import SearchSettings, SourceSettings
from crawler.sources.source import (
    Answer,
    BadAnswer,
    Found,
    MissingKey,
    Query,
    QueryRefused,
    QuotaSpent,
    Request,
    Results,
    Source,
    SourceBusy,
    SourceError,
    SourceRefused,
)

__all__ = [
    "Answer",
    "BadAnswer",
    "Found",
    "MissingKey",
    "Query",
    "QueryRefused",
    "QuotaSpent",
    "Request",
    "Results",
    "SearchSettings",
    "Source",
    "SourceBusy",
    "SourceError",
    "SourceRefused",
    "SourceSettings",
]
