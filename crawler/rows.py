"""The frontier's rows as they stand in the keyed state, and their keys. Fields are appended with defaults only.

| key | row | due index |
|---|---|---|
| `\\0totals` | Totals of the partition | |
| `s` site | SiteRow: one per site | when its next request may start |
| `u` site page_id | UrlRow: one per known URL | |
| `q` site priority number | the URL: the queue of those to fetch, in the order of the keys | |
| `r` site | text of robots.txt | |
| `m` site | SitemapRow: while sitemaps are read | |
"""

from __future__ import annotations

import enum
from typing import TypeVar

import msgspec

TOTALS_KEY = b"\0totals"  # sorts before all others, so that it is the first row of a scan
QUEUE = b"q\0"  # what the keys of all queues begin with


class Priority(enum.IntEnum):
    """Which URLs of a site go first."""

    HIT = 0
    SITEMAP = 1
    LINK = 2


class Stop(enum.StrEnum):
    """Why a site is stopped."""

    DECIDED = "site_decided"
    BUDGET = "budget"
    REQUESTS = "too_many_requests"
    UNREACHABLE = "unreachable"
    ROBOTS_UNAVAILABLE = "robots_unavailable"
    CRAWL_DELAY = "crawl_delay"
    PRIVATE = "private_address"
    INTERNAL = "internal_error"


MAY_PASS = frozenset({Stop.UNREACHABLE, Stop.ROBOTS_UNAVAILABLE})  # a later hit tries such a site and its URLs again
FOUND_BY = {Priority.HIT: "hit", Priority.SITEMAP: "sitemap", Priority.LINK: "link"}


class Row(msgspec.Struct, array_like=True):
    """What the rows share."""


class Totals(Row):
    """Sums over the rows of a partition."""

    sites: int = 0
    active: int = 0  # sites with something left to do
    stopped: int = 0
    queued: int = 0  # URLs
    fetched: int = 0  # pages


class SiteRow(Row):
    """All that is known of a site; times in milliseconds UTC. Politeness lives here, so a restart forgets nothing."""

    site: str
    origin: str = ""  # scheme://host[:port] of its first hit; robots.txt and sitemap.xml are asked there
    next_start: int = 0  # no request starts before
    delay_s: float = 0.0  # between starts; robots Crawl-delay included
    robots_until: int = 0  # the robots.txt at hand is believed until then; 0 = none
    robots_tries: int = 0  # attempts since the last one that told something
    failures: int = 0  # connection failures in a row
    page_requests: int = 0
    fetched: int = 0
    queued: int = 0
    wanted: int = 0  # of the queued, those of hits and sitemaps
    known: int = 0  # URLs known beyond those of hits
    next_number: int = 0  # in the queue
    sitemaps_done: bool = False
    stopped: str = ""  # the reason; "" = not stopped
    stopped_at: int = 0

    def reopen(self) -> None:
        """Take a stop back."""
        self.stopped, self.stopped_at = "", 0
        self.failures = self.robots_tries = 0


class UrlRow(Row):
    """One URL of a site.

    Statuses: discovered → fetched | error | refused, with fetch_error between attempts; redirection is a URL that
    another one led to, known so that it is not discovered again, and free to be asked for by a hit.
    """

    url: str
    status: str = "discovered"
    visit: int = 1
    priority: int = 0
    number: int = 0  # place in the queue
    depth: int = 0  # links followed to find it
    attempts: int = 0
    hits: list[str] = []
    reason: str = ""  # why it was not fetched; "" = fetched, or not known

    @property
    def is_queued(self) -> bool:
        """Whether it is still to be fetched."""
        return self.status in ("discovered", "fetch_error")


class SitemapRow(Row):
    """How far the reading of a site's sitemaps is: files to read with their depth, and the sample of URLs so far."""

    pending: list[tuple[str, int]] = []
    read: int = 0
    sample: list[str] = []


_encoder = msgspec.msgpack.Encoder()
_decoders = {kind: msgspec.msgpack.Decoder(kind) for kind in (Totals, SiteRow, UrlRow, SitemapRow)}
R = TypeVar("R", bound=Row)


def pack(row: Row) -> bytes:
    """A row as it is stored."""
    return _encoder.encode(row)


def unpack(kind: type[R], value: bytes) -> R:
    """Read a stored row."""
    return _decoders[kind].decode(value)  # type: ignore[return-value,index]  # the decoder was built for kind


def site_key(site: str) -> bytes:
    """Key of a SiteRow."""
    return b"s\0" + site.encode()


def site_of_key(key: bytes) -> str:
    """The site of a SiteRow's key."""
    return key[2:].decode()


def url_key(site: str, page_id: str) -> bytes:
    """Key of a UrlRow."""
    return f"u\0{site}\0{page_id}".encode()


def queue_prefix(site: str) -> bytes:
    """What the keys of a site's queue begin with."""
    return QUEUE + f"{site}\0".encode()


def queue_key(site: str, priority: int, number: int) -> bytes:
    """Key of a place in the queue: ordered by priority, then by number."""
    return queue_prefix(site) + bytes([priority]) + number.to_bytes(8, "big")


def robots_key(site: str) -> bytes:
    """Key of the text of a robots.txt."""
    return b"r\0" + site.encode()


def sitemap_key(site: str) -> bytes:
    """Key of a SitemapRow."""
    return b"m\0" + site.encode()
