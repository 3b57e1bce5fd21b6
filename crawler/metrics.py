"""The metrics of the crawler and of searches."""

from __future__ import annotations

from stream.processing.metrics import SECONDS, counter, gauge, histogram

SEARCH_RESULTS = counter("search_results", "Search results that CRAWL read, by outcome.", ("source", "outcome"))
SEARCH_QUERIES = counter("search_queries", "Queries of a search dealt with, by outcome.", ("source", "outcome"))
SEARCH_HITS = counter("search_hits", "Results that a search got: appended or skipped.", ("source", "outcome"))
SEARCH_QUOTA_LEFT = gauge("search_quota_left", "Requests left of a source's quotas; absent without one.", ("source",))
SEARCH_PARKED_TIMESTAMP_SECONDS = gauge(
    "search_parked_timestamp_seconds", "Until when a source is left alone; 0: it is not.", ("source",)
)
SEARCH_UNRESPONSIVE_ENGINES = gauge(
    "search_unresponsive_engines", "Engines that did not answer the last query.", ("source",)
)
FETCH_REQUESTS = counter(
    "fetch_requests",
    "HTTP requests ended; absent: the site has no such file. Status: 403, 404, 429, 503, else its class; none: no"
    " answer came. Reason: a word of docs/reference/reasons.md; status: the status says it.",
    ("kind", "outcome", "status", "reason"),
)
FETCH_DURATION_SECONDS = histogram("fetch_duration_seconds", "Time of one HTTP request.", ("kind",), SECONDS)
FETCH_RESPONSE_BYTES = counter("fetch_response_bytes", "Decoded bytes received.", ("kind",))
FETCH_INFLIGHT = gauge("fetch_inflight", "HTTP requests under way.")
CRAWL_PAUSED = gauge("crawl_paused", "1 while CRAWL makes no requests, by reason: operator or disk.", ("reason",))
FETCH_DEFERRED = counter("fetch_deferred", "Requests put off because their domain or address had its turn.", ("kind",))
FRONTIER_URLS = gauge("frontier_urls", "URLs in the frontier of this process by status, and those queued.", ("state",))
FRONTIER_SITES = gauge("frontier_sites", "Sites in the frontier: active, parked, resting or stopped.", ("state",))
FRONTIER_WAIT_SECONDS = histogram("frontier_wait_seconds", "Time a site waited after it was due.", (), SECONDS)
ROBOTS_LOOKUPS = counter("robots_lookups", "Decisions by robots.txt.", ("result",))
WARC_RECORDS = counter("warc_records", "Records written to WARC files.", ("type",))
WARC_BYTES = counter("warc_bytes", "Compressed bytes written to WARC files.")
