"""Settings of the crawler, in the order in which they apply to a site."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

import msgspec

from crawler.errors import BadCrawlSettings, NoContact
from stream.text.ranges import PositiveCount, PositiveSeconds, Seconds, SizeBytes

_NAME = re.compile(r"[A-Za-z][A-Za-z_-]{0,62}")  # a product token by RFC 9309 section 2.2.1
_CONTACT = re.compile(r"(https?://[^\s()]+\.[^\s()]+|[^\s()@]+@[^\s()@]+\.[^\s()@]+)")
_ORIGIN = re.compile(r"https://[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]{1,5})?(?![^/?#])")
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_HOST = r"(?:[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*|\[[0-9a-fA-F:.]+\])"
PROXY = re.compile(rf"http://([^\s/?#@:]+(?::[^\s/?#@]*)?@)?({_HOST}:{_PORT})/?")
"""A value of crawl.proxy; its groups are the user, which may be missing, and HOST:PORT."""
_A_KEY = re.compile(  # at the end of a path: a key in place of the file's name is joined to the folder
    "(?:^|/)(?:(?:0x)?(?:[0-9A-Fa-f]{2}:?){32,64}"
    "|(?=(?:[^A-Z]*[A-Z]){4})(?:[0-9A-Za-z+/_-]{43}|[0-9A-Za-z+/_-]{64}|[0-9A-Za-z+/_-]{86})={0,2})$"
)
"""32 or 64 bytes in hex or Base64, or the 48 of PKCS #8; names of files have fewer capitals."""
_BODY_CAP_BYTES = 3 * 1024 * 1024  # below the log's cap of a record, even if zstd saves nothing
SLOW_S = 120.0  # a site with a longer Crawl-delay is in the slow lane
_REQUESTS_PER_ROBOTS = 4  # that a robots.txt is valid for at least: else a slow site is asked for nothing else


class SignatureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The signature of requests by Web Bot Auth, by which sites can verify that the crawler asks."""

    key: str = ""
    """File with the key that signs requests, as `farmwatch crawl key --new` makes it; empty: they are not signed."""
    agent: str = ""
    """Site on which the key directory is, as https://HOST; empty: that of crawl.contact."""

    def __post_init__(self) -> None:
        if "PRIVATE KEY" in self.key or _A_KEY.search(self.key.strip()):  # and no message repeats it
            raise ValueError("key holds a key: write the path of a file that holds it")


class CrawlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the crawler identifies itself, how fast it is, and where it stops."""

    # Who we are
    name: str = "farmwatch"
    """Product token of the user agent, and the name that robots.txt groups are matched with."""
    contact: str = ""
    """URL or mail address; the crawler does not start without one."""
    signature: SignatureSettings = SignatureSettings()

    # Politeness
    delay_s: PositiveSeconds = 5.0
    """Seconds between the starts of two requests to a host."""
    domain_delay_s: Seconds = 2.0
    """The same for all hosts of a registrable domain together; 0: no such limit."""
    address_delay_s: Seconds = 1.0
    """The same for all hosts at an IP address together; 0: no such limit."""
    delay_per_second: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 2.0
    """A slow host waits at least this many times the duration of its last response."""
    crawl_delay_cap_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 86_400.0
    """Crawl-delay of robots.txt is obeyed up to here; beyond it the site is skipped. A day at most."""
    retry_s: PositiveSeconds = 30.0
    """Seconds before the first retry of a failed request; doubles with each."""
    ask_tdmrep: bool = True
    """Request /.well-known/tdmrep.json of each site, in which owners reserve data mining."""
    ask_ads_txt: bool = False
    """True: request /ads.txt, once a term, of sites with a page that loads Google's ads; it names their operators."""
    obey_opt_out: bool = False
    """True: pages that opt out of mining are recorded as refused, without a body."""
    obey_preferences: bool = False
    """True: the same for pages whose Content-Usage or Content-Signal prefers no use by AI."""

    # How much of a site
    page_budget: PositiveCount = 40
    """Fetched pages per site and term (tally.term_days)."""
    tries: PositiveCount = 3
    """Attempts at a page, and connection failures in a row until a site is given up."""
    use_sitemaps: bool = True
    """Read the sitemaps of sites."""
    use_links: bool = True
    """Follow the links of pages."""
    stop_when_decided: bool = True
    """False: a decision on the site does not stop it (reproducible runs)."""
    follow_turns: bool = False
    """True: a site with articles from before ChatGPT and since, by trusted dates, is decided only with
    tally.enough_articles of them, which shows whether it turned (`farmwatch sites --turned`)."""

    refetch_fetched_s: Seconds = 2_592_000.0
    """Seconds after which a fetched page is requested again, with If-None-Match and If-Modified-Since; the sitemaps
    are read again too; 0: never."""

    # One request
    max_in_flight: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 64
    """Requests in flight in this process."""
    body_bytes: Annotated[int, msgspec.Meta(ge=1, le=_BODY_CAP_BYTES)] = 2 * 1024 * 1024
    """Inflated bytes kept of a page; more is cut off and flagged."""
    proxy: str = ""
    """HTTP proxy of all requests to sites: http://HOST:PORT or http://USER:PASSWORD@HOST:PORT; empty: none."""
    nameservers: list[str] = []
    """Address or address:port of each; empty: those of the system."""

    # Stored besides the log
    warc_folder: str = ""
    """WARC files with everything fetched go to this folder; empty: none are written."""

    pause_below_bytes: SizeBytes = 1024**3
    """Bytes free on the disk of the log's folder and of the archive below which no requests are made; 0: no limit."""

    # Tests and the demo
    allow_private: bool = False
    """True lifts the guard against private addresses."""
    resolve_to: dict[str, str] = {}
    """Host (or "*") -> "address:port", instead of DNS; needs allow_private."""

    # Limits: constants, because no operator needs others
    robots_ttl_s: ClassVar[float] = 86_400.0  # that a robots.txt is valid, see robots_life_s
    url_cap: ClassVar[int] = 500  # URLs known per site beyond those of its hits; this ends crawler traps
    link_depth: ClassVar[int] = 3  # links followed from a hit or sitemap URL
    network_wait_s: ClassVar[float] = 21_600.0  # that no site is given up while none answers: our network
    warc_bytes: ClassVar[int] = 1_000_000_000  # compressed, after which a new file begins
    delay_slow_cap_s: ClassVar[float] = 60.0  # most that a slow response adds to the delay
    park_cap_s: ClassVar[float] = 3600.0  # longest wait that a Retry-After or a doubled retry may ask for
    robots_retry_s: ClassVar[float] = 3600.0  # until a robots.txt that answered with an error is requested again
    robots_tries: ClassVar[int] = 3  # attempts at a robots.txt before the site is given up
    requests_per_page: ClassVar[int] = 3  # a site is left after page_budget times this many requests for pages
    sitemap_files: ClassVar[int] = 10  # read per site, indexes included
    sitemap_bytes: ClassVar[int] = 8 * 1024 * 1024  # inflated, read of one sitemap file
    connect_timeout_s: ClassVar[float] = 10.0
    idle_timeout_s: ClassVar[float] = 15.0  # longest silence while a response is read
    total_timeout_s: ClassVar[float] = 60.0  # one request from start to end
    redirects: ClassVar[int] = 10  # hops followed for a page
    hops_wait_s: ClassVar[float] = 120.0  # longest wait of a job between its requests, besides three delays
    dns_least_s: ClassVar[float] = 60.0  # a DNS answer is kept at least so long, whatever its time to live,
    dns_most_s: ClassVar[float] = 3600.0  # and at most
    warc_s: ClassVar[float] = 3600.0  # after which a new file begins

    def check(self, *, contact_required: bool = True) -> None:
        """Reject settings that would make the crawler impolite. Raises NoContact or BadCrawlSettings.

        Without `contact_required` the contact may be empty: nothing is crawled yet.
        """
        is_usable = _CONTACT.fullmatch(self.contact) and self.contact.isascii() and self.contact.isprintable()
        if not is_usable and (contact_required or self.contact.strip()):
            raise NoContact(
                f"crawl.contact is {self.contact!r}: write an http(s) URL or a mail address under which site owners"
                " reach you; the crawler does not start without one"
            )
        if not _NAME.fullmatch(self.name):
            raise BadCrawlSettings(f"crawl.name is {self.name!r}: use letters, '_' and '-' only")
        if self.signature.key and self.contact:
            _ = self.signature_agent
        if self.proxy and not PROXY.fullmatch(self.proxy):  # not repeated: it may hold a password
            raise BadCrawlSettings("crawl.proxy is no http://HOST:PORT or http://USER:PASSWORD@HOST:PORT")
        if self.resolve_to and not self.allow_private:
            raise BadCrawlSettings("crawl.resolve_to is for tests: it needs crawl.allow_private = true")
        try:
            msgspec.convert(msgspec.structs.asdict(self), type(self))  # the ranges of the fields
        except msgspec.ValidationError as error:
            raise BadCrawlSettings(f"crawl: {error}") from None

    def is_too_slow(self, delay_s: float) -> bool:
        """Whether a site with this delay, its Crawl-delay if that is longer than ours, is left."""
        return delay_s > max(self.delay_s, self.crawl_delay_cap_s)

    def robots_life_s(self, delay_s: float) -> float:
        """Seconds for which the robots.txt and the tdmrep.json of a site with this delay are valid."""
        return max(self.robots_ttl_s, _REQUESTS_PER_ROBOTS * delay_s)

    @property
    def signature_agent(self) -> str:
        """The https origin that the key directory is at. Raises BadCrawlSettings if no setting names it."""
        named = self.signature.agent or self.contact
        found = _ORIGIN.match(named.lower())
        if found is None or (self.signature.agent and found.end() != len(named.rstrip("/"))):
            setting = "crawl.signature.agent" if self.signature.agent else "crawl.contact"
            raise BadCrawlSettings(f"{setting} is {named!r}, no site of a key directory", case="no agent")
        return found[0].removesuffix(":443")

    @property
    def user_agent(self) -> str:
        return f"{self.name}/{_version()} (+{self.contact})"


def _version() -> str:
    import importlib.metadata  # slow to load, and not needed by the command line

    try:
        return importlib.metadata.version("farmwatch")
    except importlib.metadata.PackageNotFoundError:
        return "0"
