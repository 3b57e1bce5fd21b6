"""Settings of the crawler, in the order in which a site meets them."""

from __future__ import annotations

import re

import msgspec

from crawler.errors import BadCrawlSettings, NoContact

_NAME = re.compile(r"[A-Za-z][A-Za-z_-]{0,62}")  # a product token as RFC 9309 section 2.2.1 has it
_CONTACT = re.compile(r"(https?://[^\s()]+\.[^\s()]+|[^\s()@]+@[^\s()@]+\.[^\s()@]+)")
_BODY_CAP_BYTES = 3 * 1024 * 1024  # below the log's cap of a record, even where zstd gains nothing

_FOREVER_S = 1e10  # three centuries: beyond it, times do not fit into the rows
_AT_LEAST_1 = ("max_in_flight", "page_budget", "tries", "robots_tries", "body_bytes", "requests_per_page")
_ABOVE_0 = ("delay_s", "retry_s", "connect_timeout_s", "idle_timeout_s", "total_timeout_s")
_NOT_BELOW_0 = (
    "domain_delay_s",
    "address_delay_s",
    "delay_per_second",
    "delay_slow_cap_s",
    "crawl_delay_cap_s",
    "park_cap_s",
    "robots_retry_s",
    "reopen_s",
    "refetch_fetched_s",
    "refetch_redirection_s",
    "refetch_error_s",
    "refetch_refused_s",
    "network_wait_s",
    "redirects",
    "url_cap",
    "link_depth",
    "sitemap_files",
    "sitemap_depth",
    "sitemap_bytes",
)


class CrawlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the crawler presents itself, how fast it goes, and where it stops."""

    # Who we are
    name: str = "farmwatch"  # product token of the user agent, and the name that robots.txt groups are matched with
    contact: str = ""  # URL or mail address; the crawler does not start without one

    # Politeness
    delay_s: float = 5.0  # seconds between the starts of two requests to a host
    domain_delay_s: float = 2.0  # the same for all hosts of a registrable domain together; 0: no such limit
    address_delay_s: float = 1.0  # the same for all hosts at an IP address together; 0: no such limit
    delay_per_second: float = 2.0  # a slow host waits at least this many times the duration of its last response
    delay_slow_cap_s: float = 60.0  # most seconds that a slow response adds up to
    crawl_delay_cap_s: float = 120.0  # robots Crawl-delay is obeyed up to here; beyond it the site is skipped
    retry_s: float = 30.0  # seconds before the first retry of a failed request; doubles with each
    park_cap_s: float = 3600.0  # longest wait that a Retry-After or a doubled retry may ask for, seconds
    robots_ttl_s: float = 86_400.0  # seconds that a robots.txt is believed
    robots_retry_s: float = 3600.0  # seconds until a robots.txt that answered with an error is asked again
    robots_tries: int = 3  # attempts at a robots.txt before the site is given up
    ask_tdmrep: bool = True  # ask each site for /.well-known/tdmrep.json, in which owners reserve data mining
    obey_opt_out: bool = False  # True: pages that opt out of mining are recorded as refused, without a body

    # How much of a site
    page_budget: int = 40  # fetched pages per site
    requests_per_page: int = 3  # a site is left after page_budget times this many requests for pages
    tries: int = 3  # attempts at a page, and connection failures in a row until a site is given up
    url_cap: int = 500  # URLs known per site beyond those of its hits: a trap for crawlers ends here
    link_depth: int = 3  # links followed from a hit or sitemap URL
    use_sitemaps: bool = True
    use_links: bool = True
    sitemap_files: int = 10  # sitemap files read per site, indexes included
    sitemap_depth: int = 2  # levels of sitemap indexes
    sitemap_bytes: int = 8 * 1024 * 1024  # inflated bytes read of one sitemap file
    stop_when_decided: bool = True  # False: a decision on the site does not stop it (reproducible runs)
    network_wait_s: float = 21_600.0  # seconds that no site is given up while none answers: our network; 0: never
    reopen_s: float = 86_400.0  # seconds after which a new hit tries an unreachable site again

    # Asking again, as long as the site is not stopped: seconds after which a URL of that status is asked for again; 0:
    # never. One that failed (fetch_error) is asked again by retry_s and tries.
    refetch_fetched_s: float = 2_592_000.0  # with If-None-Match and If-Modified-Since; the sitemaps are read again, too
    refetch_redirection_s: float = 0.0  # a URL that another one leads to
    refetch_error_s: float = 0.0  # one that failed for good
    refetch_refused_s: float = 0.0  # one that robots.txt or an opt-out forbade

    # One request
    max_in_flight: int = 64  # requests under way in this process
    body_bytes: int = 2 * 1024 * 1024  # inflated bytes kept of a page; more is cut off and flagged
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 15.0  # longest silence while a response is read
    total_timeout_s: float = 60.0  # one request from start to end
    redirects: int = 10  # hops followed for a page
    nameservers: list[str] = []  # address or address:port of each; empty: those of the system
    dns_least_s: float = 60.0  # seconds that a DNS answer is kept at least, whatever its time to live,
    dns_most_s: float = 3600.0  # and at most

    # What is kept beside the log
    warc_folder: str = ""  # everything fetched goes to WARC files in this folder, too; empty: none are written
    warc_bytes: int = 1_000_000_000  # compressed bytes after which a new file begins
    warc_s: float = 3600.0  # seconds after which a new file begins

    # Tests and the demo
    allow_private: bool = False  # True lifts the guard against private addresses
    resolve_to: dict[str, str] = {}  # host (or "*") -> "address:port", in place of DNS; needs allow_private

    def check(self) -> None:
        """Refuse settings that would make the crawler rude. Raises NoContact or BadCrawlSettings."""
        if not self.contact.strip():
            raise NoContact(
                "the crawler does not start without a contact: set crawl.contact to a URL or a mail address under"
                " which site owners reach you"
            )
        if not _CONTACT.fullmatch(self.contact) or not (self.contact.isascii() and self.contact.isprintable()):
            raise NoContact(
                f"crawl.contact is {self.contact!r}: write an http(s) URL or a mail address under which site owners"
                " reach you"
            )
        if not _NAME.fullmatch(self.name):
            raise BadCrawlSettings(f"crawl.name is {self.name!r}: use letters, '_' and '-' only")
        if self.resolve_to and not self.allow_private:
            raise BadCrawlSettings("crawl.resolve_to is for tests: it needs crawl.allow_private = true")
        for name in _AT_LEAST_1:
            if getattr(self, name) < 1:
                raise BadCrawlSettings(f"crawl.{name} is {getattr(self, name)}: it must be at least 1")
        for name in _ABOVE_0:
            if not 0 < getattr(self, name) < _FOREVER_S:
                raise BadCrawlSettings(f"crawl.{name} is {getattr(self, name)}: it must be above 0, and finite")
        for name in _NOT_BELOW_0:
            if not 0 <= getattr(self, name) < _FOREVER_S:
                raise BadCrawlSettings(f"crawl.{name} is {getattr(self, name)}: it must be 0 or more, and finite")
        if not max(self.park_cap_s, 3 * self.crawl_delay_cap_s) < self.robots_ttl_s < _FOREVER_S:
            raise BadCrawlSettings(
                f"crawl.robots_ttl_s is {self.robots_ttl_s}: it must be above crawl.park_cap_s, and three times"
                " crawl.crawl_delay_cap_s, or a slow site is asked for its robots.txt and for nothing else"
            )
        if not 0 < self.dns_least_s <= self.dns_most_s < _FOREVER_S:
            raise BadCrawlSettings(
                f"crawl.dns_least_s is {self.dns_least_s}: it must be above 0, and at most crawl.dns_most_s"
            )
        if self.warc_bytes < 1 or not self.warc_s > 0:
            raise BadCrawlSettings("crawl.warc_bytes and crawl.warc_s: both must be above 0, or each page is a file")
        if self.body_bytes > _BODY_CAP_BYTES:
            raise BadCrawlSettings(
                f"crawl.body_bytes is {self.body_bytes}: a page record holds {_BODY_CAP_BYTES} at most"
            )

    @property
    def user_agent(self) -> str:
        """`name/version (+contact)`."""
        return f"{self.name}/{_version()} (+{self.contact})"


def _version() -> str:
    import importlib.metadata  # slow to load, and not wanted by the command line

    try:
        return importlib.metadata.version("farmwatch")
    except importlib.metadata.PackageNotFoundError:
        return "0"
