"""The rows of the frontier in keyed state, and their keys. Fields are appended with defaults only.

| key | row | due index |
|---|---|---|
| `\\0totals` | Totals of the partition | |
| `\\0written` | ClockRow: when the rows were written | |
| site `\\0` | SiteRow: one per site | when the site is processed next |
| site `\\0m` | SitemapRow: while sitemaps are read | |
| site `\\0q` priority number | the page: the queue, in the order of the keys | |
| site `\\0r` | text of robots.txt | |
| site `\\0t` | text of tdmrep.json | |
| site `\\0u` page | UrlRow: one per known URL | |
| site `\\0v` time page | empty: scheduled revisits, in the order of time | |

The site comes first, so that the rows of a claim are neighbours on disk. A page is the 16 bytes of its page id.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeVar

import msgspec

from crawler.errors import OldFrontier
from crawler.frontier.statuses import Status
from crawler.reasons import CONNECTION_FAILURES, EMPTY, TURNED_AWAY
from crawler.web.urls import page_bytes

FORMAT = 3  # of rows and keys; 2: kind before site in keys; 1: page ids in hexadecimal
TOTALS_KEY = b"\0totals"  # sorts first, so it is the first row of a scan
CLOCK_KEY = b"\0written"  # all sites come after it
_EMPTY_PAGES = 12  # the first hits of a good site may all be gone


class Priority(enum.IntEnum):
    """The order in which the URLs of a site are fetched."""

    HIT = 0
    SITEMAP = 1
    LINK = 2
    AGAIN = 3  # only in the queue: a visited URL keeps its first priority


class Ask(enum.IntEnum):
    """Whether a file that is requested once a term is to be requested."""

    NOT_YET = 0
    NOW = 1
    DONE = 2
    FORBIDDEN = 3  # by robots.txt


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
    EXCLUDED = "excluded"
    CHALLENGE = "challenge"
    BLOCKED = "blocked"
    MAINTENANCE = "maintenance"
    PARKED = "parked"
    SOFT_404 = "soft_404"
    DEFAULT_PAGE = "default_page"


# A later hit reopens a site stopped for these, and retries its refused URLs
MAY_PASS = CONNECTION_FAILURES | TURNED_AWAY | EMPTY | {Stop.UNREACHABLE, Stop.ROBOTS_UNAVAILABLE}
FOUND_BY = {Priority.HIT: "hit", Priority.SITEMAP: "sitemap", Priority.LINK: "link"}


class FrontierRow(msgspec.Struct, array_like=True):
    """Base of the rows."""


class Totals(FrontierRow):
    """Sums over the rows of a partition."""

    sites: int = 0
    active: int = 0  # sites with work, also parked ones
    stopped: int = 0
    queued: int = 0  # URLs
    fetched: int = 0  # pages
    format: int = 1
    parked: int = 0  # sites
    resting: int = 0  # sites, neither active nor stopped
    urls: list[int] = []  # by status
    preferring: int = 0  # sites with a preference on the use by AI


class ClockRow(FrontierRow):
    """When rows of a partition were written last, see `crawler.frontier.stored_times`."""

    newest: int = 0  # ms; 0 = unknown
    checked: bytes = b""  # the rows up to this key are checked; b"" = none are, or need to be


Place = tuple[int, int, bytes]
"""A place in the queue: priority, number, and the page that waits there."""


class SiteRow(FrontierRow):
    """A site with its politeness state; times in milliseconds UTC. A restart forgets nothing."""

    site: str
    origin: str = ""  # scheme://host[:port] of its first hit, for robots.txt and sitemap.xml
    next_start: int = 0  # no request starts before
    delay_s: float = 0.0  # between starts; robots Crawl-delay included
    robots_until: int = 0  # the robots.txt is valid until then; 0 = none
    robots_tries: int = 0  # attempts since the last usable answer
    failures: int = 0  # connection failures in a row
    page_requests: int = 0  # of this term, without revisits
    fetched: int = 0  # URLs with a page
    queued: int = 0
    wanted: int = 0  # of the queued ones, those of hits and sitemaps
    known: int = 0  # URLs known beyond those of hits
    next_number: int = 0  # in the queue
    sitemaps_done: bool = False
    stopped: str = ""  # the reason; "" = not stopped
    stopped_at: int = 0
    parked_until: int = 0  # parked until then; 0 = not parked
    parked_why: str = ""  # the reason of the failure
    parked_at: int = 0  # earlier requests belong to the last failure
    park_level: int = 0  # parks in a row: each lasts twice as long as the previous one
    tdm_until: int = 0  # the tdmrep.json, or its absence, is valid until then; 0 = not requested
    again: int = 0  # queued revisits
    revisit_at: int = 0  # when the first URL of `v` is due; 0 = none
    sitemaps_at: int = 0  # when the sitemaps are read again; 0 = never
    urls: list[int] = []  # by status
    schemes: int = 0  # of its URLs: 1 http, 2 https, 3 both
    heads: list[Place] = []  # the first places of its queue, cached for claims
    term: int = 0  # of its measurement, see crawler.frontier.terms
    offset: int = 0  # with which `fetched` gives the pages of this term
    first_at: int = 0  # when its first page was fetched; 0 = unknown
    probed: bool = False  # since the term began or a stop was lifted, see crawler.frontier.frontier
    outline: bytes = b""  # of its page "not found"; b"" = it has none
    fruitless: int = 0  # requests since a page, or its lack by an error, was answered
    sitemap_misses: int = 0  # times in a row that its sitemaps were read and some could not be had
    empty: int = 0  # pages that were answered as by a site without pages
    preferences: list[str] = []  # on the use by AI: those of robots.txt for the home page, and of headers of pages
    listed: int = 0  # URLs in its sitemaps, by the last count
    ads_txt: Ask = Ask.NOT_YET  # until a page loads ads

    @property
    def spent(self) -> int:
        """Pages fetched in this term, which count for the budget."""
        return self.fetched + self.offset

    @property
    def seems_empty(self) -> bool:
        """Whether so many pages were empty, and none came, that its home page decides."""
        return self.empty >= _EMPTY_PAGES and not self.spent

    def reopen(self) -> None:
        self.stopped, self.stopped_at = "", 0
        self.sitemaps_done = False  # the stop dropped their URLs
        self.probed = False  # the answer may have been that of a stop
        self.failures = self.robots_tries = self.fruitless = self.sitemap_misses = self.empty = 0

    def count(self, status: Status, change: int) -> None:
        if not self.urls:
            self.urls = [0] * len(Status)
        self.urls[status] += change


class UrlRow(FrontierRow):
    """One URL of a site. Its validators are those of the last visit that had a page."""

    url: str
    status: Status = Status.DISCOVERED
    visit: int = 0  # visits that have a page record
    priority: Priority = Priority.HIT  # how it was found
    place: Priority | None = None  # its queue; None = not queued
    number: int = 0  # its place there
    depth: int = 0  # links followed to find it
    attempts: int = 0  # requests of the current visit
    hits: list[str] = []
    reason: str = ""  # why it was not fetched; "" = fetched, or unknown
    due: int = 0  # time of the next visit (ms); 0 = none, or queued
    has_page: bool = False  # some visit fetched it
    etag: str = ""
    last_modified: str = ""
    site_failed: bool = False  # its failure is that of its site: a later hit retries it
    term: int = 0  # of its last page

    @property
    def page(self) -> bytes:
        return page_bytes(self.url)

    @property
    def is_queued(self) -> bool:
        return self.place is not None


class SitemapRow(FrontierRow):
    """Progress through a site's sitemaps: pending files with their depth, and the sample of URLs so far."""

    pending: list[tuple[str, int]] = []
    read: int = 0
    sample: list[str] = []
    retried: str = ""  # the last file requested twice
    missed: bool = False  # some file could not be had, and may be later
    urls: int = 0  # in the files so far
    files: int = 0  # known so far
    good: int = 0  # of the read ones, those with an entry
    months: dict[str, int] = {}  # of the URLs' changes


Sums = tuple[tuple[int, ...], tuple[int, ...], int]
"""The part of a site in the totals: in all fields before `urls`, in their order, in `urls`, and in `preferring`."""
NO_SUMS: Sums = ((0,) * Totals.__struct_fields__.index("urls"), (0,) * len(Status), 0)

_encoder = msgspec.msgpack.Encoder()
_lists = msgspec.msgpack.Decoder(list)
_decoders = {kind: msgspec.msgpack.Decoder(kind) for kind in (Totals, ClockRow, SiteRow, UrlRow, SitemapRow)}
R = TypeVar("R", bound=FrontierRow)


def pack(row: FrontierRow) -> bytes:
    """A row as it is stored."""
    return _encoder.encode(row)


def unpack(kind: type[R], value: bytes) -> R:
    """A stored row."""
    return _decoders[kind].decode(value)  # type: ignore[return-value,index]  # the decoder was built for kind


def summed(totals: bytes | None, new: Sums, old: Sums) -> bytes:
    """Packed totals with `new` in place of `old`; decodes no Struct, because every result changes them."""
    values = _lists.decode(totals or pack(Totals(format=FORMAT, urls=[0] * len(Status))))
    if len(values) < len(Totals.__struct_fields__):  # of a version before
        values.append(0)
    *fields, urls, preferring = values
    fields = [total + plus - minus for total, plus, minus in zip(fields, new[0], old[0], strict=True)]
    urls = [total + plus - minus for total, plus, minus in zip(urls, new[1], old[1], strict=True)]
    return _encoder.encode([*fields, urls, preferring + new[2] - old[2]])


def refuse_other_format(totals: bytes | None, where: str) -> None:
    """Raise OldFrontier if the stored Totals of `where` have another format."""
    if totals is not None and unpack(Totals, totals).format != FORMAT:
        raise OldFrontier(
            f"{where} holds a frontier of another version of farmwatch: crawl or inspect it with that version, or start"
            " with a new log"
        )


def _key_of(kind: bytes) -> Callable[[str], bytes]:
    """A function that makes the key of a site for a kind of rows, or the prefix of their keys."""

    def key(site: str) -> bytes:
        return b"%s\0%s" % (site.encode(), kind)

    return key


site_key = _key_of(b"")  # SiteRow: the first of a site's keys
sitemap_key = _key_of(b"m")
queue_prefix = _key_of(b"q")
robots_key = _key_of(b"r")
tdm_key = _key_of(b"t")
revisit_prefix = _key_of(b"v")


def site_of_key(key: bytes) -> str:
    """The site of any key but that of the totals."""
    return key[: key.index(0)].decode()


def is_site_key(key: bytes) -> bool:
    """Whether it is the key of a SiteRow."""
    return 0 < key.index(0) == len(key) - 1


def is_queue_key(key: bytes) -> bool:
    """Whether it is a key of a queue."""
    return key[key.index(0) + 1 :].startswith(b"q")


def beyond_site(key: bytes) -> bytes:
    """A key behind all keys of the site of `key`, and before those of the next."""
    return key[: key.index(0) + 1] + b"\xff"
