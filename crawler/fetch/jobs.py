"""Jobs, their results, and the captured exchanges: the types between frontier, fetcher and archive."""

from __future__ import annotations

import enum

import msgspec

from crawler.robots.rules import RobotsRules
from crawler.web.sitemaps import SitemapFile
from stream.schema.vocabulary import FetchOutcome


class RequestKind(enum.Enum):
    """The purpose of a request; the value is the `kind` label of metrics."""

    ROBOTS = "robots"
    TDMREP = "tdmrep"  # /.well-known/tdmrep.json
    ADS_TXT = "ads_txt"  # /ads.txt
    SITEMAP = "sitemap"
    PAGE = "page"
    PROBE = "probe"  # a URL that cannot exist, see crawler.frontier.frontier


TEXTS = frozenset({RequestKind.ROBOTS, RequestKind.TDMREP, RequestKind.ADS_TXT})
"""Requests for a text with a standard of its own: never checked as a page."""

REDIRECTED = "redirected"  # outcome of a redirected request
ABSENT = "absent"  # in metrics: outcome for a robots.txt, tdmrep.json, ads.txt or sitemap that does not exist


class FetchRequest(msgspec.Struct):
    """One HTTP request of a job. `outcome` is "" until it is known; `reason` says why it failed."""

    kind: RequestKind
    outcome: str = ""  # a value of FetchOutcome, or REDIRECTED
    duration_s: float = 0.0
    body_bytes: int = 0  # inflated
    status: int = 0  # HTTP; 0 = no answer
    reason: str = ""


class Job(msgspec.Struct, frozen=True):
    """One request to one site. `rules` are those of the site's robots.txt, None for robots.txt itself.

    With `etag` or `last_modified`, of the last visit, the request is conditional (RFC 9110 section 13).
    `has_outline`: the outline of the answer is compared with that of the site's page "not found".
    """

    kind: RequestKind
    site: str
    url: str
    delay_s: float
    rules: RobotsRules | None = None
    etag: str = ""
    last_modified: str = ""
    has_outline: bool = False


class FetchResult(msgspec.Struct, kw_only=True):
    """The result of a job. Times are milliseconds UTC.

    `started_ms` is the start of the last request to the site itself, from which the next one is spaced.
    """

    job: Job
    outcome: FetchOutcome
    started_ms: int
    reason: str = ""
    status: int = 0  # HTTP; 0 = no answer
    final_url: str = ""
    headers: dict[str, str] = {}
    content_type: str = ""
    encoding: str = ""
    body: bytes = b""  # inflated
    packed: bytes = b""  # zstd of body, for pages
    truncated: bool = False
    duration_ms: int = 0  # of the job's own requests together, without the waits between them
    ended_ms: int = 0  # of the job, waits and lookups of names included
    requests: list[FetchRequest] = []  # in order, including those for robots.txt of a `www.` twin
    transient: bool = False  # a later attempt may succeed
    unreachable: bool = False  # no HTTP answer: counts as a connection failure
    retry_after_s: float | None = None
    opt_out: list[str] = []
    sitemap: SitemapFile = SitemapFile()
    not_before_ms: int = 0  # of a deferred job: when to come back
    address: str = ""  # IP address of the last server
    outline: bytes = b""  # of an inspected page, see crawler.web.inspection


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP exchange as sent and received, for archives. Header names, values and the body are raw; chunks are
    joined.

    `via` is the job's URL if redirects led from it to `url`. `truncated` says why the body is cut, in the terms of WARC
    1.1 section 5.13: length, time, disconnect, or "" if it is complete.
    """

    kind: RequestKind
    url: str
    via: str = ""
    started_ms: int
    address: str = ""
    request_headers: list[tuple[bytes, bytes]] = []
    version: str = "HTTP/1.1"
    status: int
    reason: str = ""
    headers: list[tuple[bytes, bytes]] = []
    body: bytes = b""
    truncated: str = ""
