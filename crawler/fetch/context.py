"""The progress of a job through the parts of a fetch, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crawler.fetch.jobs import FetchOutcome, FetchRequest
from crawler.web.sitemaps import SitemapFile

_NO_SITEMAP = SitemapFile()


class FetchEnded(Exception):
    """Control flow: the job ends here."""

    def __init__(
        self,
        outcome: FetchOutcome,
        reason: str = "",
        *,
        transient: bool = False,
        unreachable: bool = False,
        not_before_ms: int = 0,
    ) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.transient, self.unreachable = outcome, reason, transient, unreachable
        self.not_before_ms = not_before_ms


class StaleConnection(Exception):
    """Control flow: the server had closed a kept connection before it answered this request."""


class NoSocketLeft(Exception):
    """Control flow: this machine has no socket left for the request."""


@dataclass(slots=True)
class FetchContext:
    """The state of a job, filled in step by step, so that a failure reports all that is known."""

    url: str
    started_ms: int
    delay_s: float  # of the host at hand
    spent_s: float = 0.0
    waited_s: float = 0.0  # for turns
    requests: list[FetchRequest] = field(default_factory=list)
    sent_ms: int = 0  # when the last request was sent
    address: str = ""  # of the server
    kept: bool = False  # over a kept connection
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    robots_tags: Sequence[str] = ()  # X-Robots-Tag fields in full
    body: bytes = b""
    truncated: bool = False
    encoding: str = ""
    packed: bytes = b""
    opt_out: list[str] = field(default_factory=list)
    sitemap: SitemapFile = _NO_SITEMAP
    end: FetchEnded | None = None
