"""Where a job has got to, and how it ends: what the parts of a fetch hand to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crawler.fetch.jobs import FetchOutcome, FetchRequest
from crawler.web.sitemaps import SitemapFile

_NO_SITEMAP = SitemapFile()


class FetchEnded(Exception):
    """Not an error: how a job ends before it has what it was sent for."""

    def __init__(
        self,
        outcome: FetchOutcome,
        reason: str = "",
        *,
        transient: bool = False,
        unreachable: bool = False,
        not_before_ms: int = 0,
    ) -> None:
        """As the fields of an Answer."""
        super().__init__(reason)
        self.outcome, self.reason, self.transient, self.unreachable = outcome, reason, transient, unreachable
        self.not_before_ms = not_before_ms


class StaleConnection(Exception):
    """Not an error: a connection kept from an earlier request was closed before it gave an answer to this one."""


class Starved(Exception):
    """Not an error of the host: this machine had no socket left for the request."""


@dataclass(slots=True)
class FetchContext:
    """A job on its way; filled in as it goes, so that a failure tells as much as is known."""

    url: str
    started_ms: int
    delay_s: float  # of the host at hand
    spent_s: float = 0.0
    waited_s: float = 0.0  # for turns
    requests: list[FetchRequest] = field(default_factory=list)
    sent_ms: int = 0  # when the last request was sent
    address: str = ""  # that it went to
    kept: bool = False  # over a connection of an earlier one
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
