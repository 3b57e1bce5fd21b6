"""One job, one answer: a request with its redirects, under the guard, the gate, the time limits and the size cap.

Redirects are followed by hand. A page may lead to its own site or to the same name with or without `www.` (then under
the robots.txt of that name, too); one that leads elsewhere is refused as `redirect_offsite`, because what stands there
is another site's. robots.txt may lead anywhere, as RFC 9309 asks. Every hop is a request of its own to the gate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

import aiohttp
import structlog
import yarl
import zstandard
from aiohttp.abc import AbstractResolver

from crawler import content
from crawler.errors import UnusableUrl
from crawler.gate import HostGate
from crawler.guard import FixedResolver, guarded_sockets, is_guard_error
from crawler.inflating import ACCEPTED, BadEncoding, Inflater
from crawler.jobs import REDIRECTED, Answer, Job, Kind, Outcome, Request
from crawler.opt_outs import FIELD_END, forbids_mining, opt_outs
from crawler.retry_after import retry_after_s
from crawler.robots import ROBOTS_CAP_BYTES, ROBOTS_REDIRECTS, RobotsAnswer, RobotsRules, RobotsShelf, meaning_of
from crawler.settings import CrawlSettings
from crawler.sitemaps import SitemapFile, read_sitemap
from crawler.urls import URL_CAP, host_of, normalise, origin_of, twin_of
from crawler.wire_text import clean

log = structlog.get_logger(__name__)

KEPT_HEADERS = frozenset(
    {
        "content-type",
        "content-language",
        "content-encoding",
        "last-modified",
        "etag",
        "date",
        "server",
        "x-powered-by",
        "x-robots-tag",
        "tdm-reservation",
        "tdm-policy",
        "retry-after",
        "location",
    }
)
HEADER_CAP = 1000  # characters kept of a header
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TWIN_RULES_KEPT = 1024  # robots.txt of `www.` twins held in memory
_NOTHING_ALLOWED = b"User-agent: *\nDisallow: /"
_ZSTD_LEVEL = 3


class _Ends(Exception):
    """Not an error: how a job ends before its body was read."""

    def __init__(self, outcome: Outcome, reason: str, *, transient: bool = False, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.transient, self.unreachable = outcome, reason, transient, unreachable


_ARRIVED = _Ends(Outcome.FETCHED, "")
_NO_SITEMAP = SitemapFile()


@dataclass(slots=True)
class _Trip:
    """Where a job has got to; filled in as it goes, so that a failure tells as much as is known."""

    url: str
    started_ms: int
    delay_s: float  # of the host at hand
    spent_s: float = 0.0
    requests: list[Request] = field(default_factory=list)
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    truncated: bool = False
    encoding: str = ""
    packed: bytes = b""
    opt_out: list[str] = field(default_factory=list)
    sitemap: SitemapFile = _NO_SITEMAP
    end: _Ends | None = None


class Fetcher:
    """Answers jobs on one event loop. `async with` it; jobs may run side by side, the gate keeps hosts apart."""

    def __init__(
        self,
        settings: CrawlSettings,
        *,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Check the settings (raises NoContact, BadCrawlSettings). `resolver` stands in for DNS, `clock` gives UTC."""
        settings.check()
        self._settings = settings
        self._clock = clock
        self._gate = HostGate()
        self._packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)  # costs more to make than to use; for one thread
        self._fixed = FixedResolver(settings.resolve_to) if settings.resolve_to else None
        self._resolver = self._fixed or resolver
        self._twins = RobotsShelf(settings.name, _TWIN_RULES_KEPT)  # by origin; the version is when they end (ms)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Fetcher:
        """Open the session."""
        settings = self._settings
        if self._fixed is not None:
            # These addresses and nothing else: IP literals in URLs are kept in, too
            allowed: frozenset[str] | None = self._fixed.addresses
        else:
            allowed = None if settings.allow_private else frozenset()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=settings.max_in_flight,
                ttl_dns_cache=300,
                socket_factory=guarded_sockets(allowed),
                resolver=self._resolver,
                keepalive_timeout=max(15.0, 2 * settings.delay_s),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(
                total=settings.total_timeout_s,
                sock_connect=settings.connect_timeout_s,
                sock_read=settings.idle_timeout_s,
            ),
            headers={
                "User-Agent": settings.user_agent,
                "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
                "Accept-Encoding": ACCEPTED,
            },
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def fetch(self, job: Job) -> Answer:
        """Do the job. Failures are answers; only cancellation is raised."""
        trip = _Trip(job.url, int(self._clock() * 1000), job.delay_s)
        try:
            await self._travel(job, trip)
            self._arrive(job, trip)
        except _Ends as end:
            trip.end = end
        except Exception:  # a job that ends without an answer would hold its site for ever
            log.exception("fetch_broke", kind=job.kind.value, site=job.site)
            trip.end = _Ends(Outcome.FAILED, "internal_error")
        return self._answer(job, trip)

    async def _travel(self, job: Job, trip: _Trip) -> None:
        """Request the URL and follow where it leads. Raises _Ends."""
        limit = ROBOTS_REDIRECTS if job.kind is Kind.ROBOTS else self._settings.redirects
        for _ in range(limit + 1):
            await self._request(job, trip)
            location = trip.headers.get("location", "")
            if trip.status not in _REDIRECTS or not location:
                return
            trip.requests[-1].outcome = REDIRECTED
            try:
                target = normalise(location, trip.url)
            except UnusableUrl:
                raise _Ends(Outcome.FAILED, "bad_redirect") from None
            await self._check_hop(job, trip, target)
            trip.url = target
        raise _Ends(Outcome.FAILED, "too_many_redirects")

    async def _check_hop(self, job: Job, trip: _Trip, target: str) -> None:
        """Whether a redirect of this job may be followed to `target`. Raises _Ends where not."""
        if job.kind is Kind.ROBOTS:
            return
        host = host_of(target)
        rules = job.rules
        trip.delay_s = job.delay_s
        if host != job.site:
            if host != twin_of(job.site):
                trip.url = target
                raise _Ends(Outcome.REFUSED, "redirect_offsite")
            rules = await self._twin_rules(job, trip, target)
            trip.delay_s = max(job.delay_s, rules.crawl_delay_s)
        if rules is None or not rules.allows(target):
            trip.url = target
            raise _Ends(Outcome.REFUSED, "robots")
        if trip.delay_s > max(job.delay_s, self._settings.crawl_delay_cap_s):
            trip.url = target
            raise _Ends(Outcome.REFUSED, "crawl_delay")

    async def _twin_rules(self, job: Job, trip: _Trip, target: str) -> RobotsRules:
        """Rules of the twin's own robots.txt; where it cannot be had, nothing is allowed."""
        origin = origin_of(target)
        known = self._twins.held(origin)
        if known is not None and known[0] > self._clock() * 1000:
            return known[1]
        answer = await self.fetch(Job(Kind.ROBOTS, host_of(target), f"{origin}/robots.txt", job.delay_s))
        trip.requests += answer.requests
        meaning = meaning_of(answer.status, complete=answer.outcome is Outcome.FETCHED)
        text, ttl_s = b"", self._settings.robots_ttl_s
        if meaning is RobotsAnswer.RULES:
            text = answer.body
        elif meaning is RobotsAnswer.UNREACHABLE:
            text, ttl_s = _NOTHING_ALLOWED, self._settings.robots_retry_s
        return self._twins.hold(origin, int((self._clock() + ttl_s) * 1000), text)

    async def _request(self, job: Job, trip: _Trip) -> None:
        """One HTTP request of the trip, its body read as far as it is wanted. Raises _Ends."""
        host = host_of(trip.url)
        async with self._gate.turn(host, trip.delay_s):
            if host == job.site:
                trip.started_ms = int(self._clock() * 1000)
            request = Request(job.kind)
            trip.requests.append(request)
            trip.status, trip.headers = 0, {}
            started = time.monotonic()
            try:
                await self._exchange(job, trip, request)
            finally:
                request.duration_s = time.monotonic() - started
                trip.spent_s += request.duration_s

    async def _exchange(self, job: Job, trip: _Trip, request: Request) -> None:
        """Send a request and read what is wanted of its answer. Raises _Ends."""
        assert self._session is not None, "use `async with`"
        try:
            async with self._session.get(self._wire_url(trip.url), allow_redirects=False) as response:
                trip.status = response.status
                trip.headers = _kept(response.headers)
                if 200 <= response.status < 300:
                    await self._read(job, trip, response)
                    request.body_bytes = len(trip.body)
                elif response.status not in _REDIRECTS:
                    response.close()  # the body of an error is of no use
        except TimeoutError:
            raise _Ends(Outcome.FAILED, "timeout", transient=True, unreachable=trip.status == 0) from None
        except aiohttp.ClientConnectorDNSError:
            raise _Ends(Outcome.FAILED, "dns", transient=True, unreachable=True) from None
        except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch):
            raise _Ends(Outcome.FAILED, "tls", unreachable=True) from None
        except aiohttp.InvalidURL:
            raise _Ends(Outcome.FAILED, "bad_url") from None
        except (aiohttp.ClientError, OSError) as error:
            if is_guard_error(error):
                raise _Ends(Outcome.REFUSED, "private_address") from None
            raise _Ends(Outcome.FAILED, "connection", transient=True, unreachable=trip.status == 0) from None
        except BadEncoding:
            raise _Ends(Outcome.FAILED, "bad_encoding") from None
        except ValueError:  # from aiohttp's own parsing of headers and URLs
            raise _Ends(Outcome.FAILED, "bad_response") from None

    async def _read(self, job: Job, trip: _Trip, response: aiohttp.ClientResponse) -> None:
        """Read and inflate the body up to the cap of its kind; what is not wanted is left unread."""
        header = trip.headers.get("content-type", "")
        if job.kind is Kind.PAGE and not content.may_be_html(header):
            response.close()
            raise _Ends(Outcome.REFUSED, "content_type")
        cap = {
            Kind.ROBOTS: ROBOTS_CAP_BYTES,
            Kind.SITEMAP: self._settings.sitemap_bytes,
            Kind.PAGE: self._settings.body_bytes,
        }[job.kind]
        inflater = Inflater(trip.headers.get("content-encoding", ""), cap)
        async for piece in response.content.iter_any():
            inflater.feed(piece)
            if inflater.full:
                response.close()
                break
        trip.body, trip.truncated = inflater.body(), inflater.cut_short

    def _arrive(self, job: Job, trip: _Trip) -> None:
        """Look into the response that a trip ended with. Raises _Ends where it is not what was asked for."""
        status = trip.status
        if status == 429 or status >= 500:
            raise _Ends(Outcome.FAILED, f"http_{status}", transient=True)
        if not 200 <= status < 300:
            raise _Ends(Outcome.FAILED, f"http_{status}")
        if job.kind is Kind.SITEMAP:
            trip.sitemap = read_sitemap(trip.body, trip.url, self._settings.sitemap_bytes)
        elif job.kind is Kind.PAGE:
            kind = trip.headers.get("content-type", "")
            if trip.body and not content.is_html(kind, trip.body):
                raise _Ends(Outcome.REFUSED, "content_type")
            trip.opt_out = opt_outs(trip.headers, trip.body, self._settings.name)
            if self._settings.obey_opt_out and forbids_mining(trip.opt_out):
                raise _Ends(Outcome.REFUSED, "opt_out")
            trip.encoding = content.charset_of(kind, trip.body, truncated=trip.truncated)
            trip.packed = self._packer.compress(trip.body)

    def _answer(self, job: Job, trip: _Trip) -> Answer:
        end = trip.end or _ARRIVED
        if trip.requests and not trip.requests[-1].outcome:
            trip.requests[-1].outcome = end.outcome.value
        headers = trip.headers
        retry_after = headers.get("retry-after")
        return Answer(
            job=job,
            outcome=end.outcome,
            started_ms=trip.started_ms,
            reason=end.reason,
            status=trip.status,
            final_url=trip.url,
            headers=headers,
            content_type=content.media_type(headers.get("content-type", "")),
            encoding=trip.encoding,
            body=trip.body if end.outcome is Outcome.FETCHED else b"",
            packed=trip.packed,
            truncated=trip.truncated,
            duration_ms=int(trip.spent_s * 1000),
            requests=trip.requests,
            transient=end.transient,
            unreachable=end.unreachable,
            retry_after_s=None if retry_after is None else retry_after_s(retry_after, self._clock()),
            opt_out=trip.opt_out,
            sitemap=trip.sitemap,
        )

    def _wire_url(self, url: str) -> yarl.URL:
        """The URL as it is sent; under `resolve_to` all is plain HTTP, because test servers have no certificate."""
        if self._fixed is not None and url.startswith("https://"):
            url = "http://" + url.removeprefix("https://")
        return yarl.URL(url, encoded=True)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are kept, cleaned, names in lower case, repeated ones joined."""
    kept: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in KEPT_HEADERS:
            # One more than a URL may have: a location that is too long is refused, not cut
            cap = URL_CAP + 1 if lower == "location" else HEADER_CAP
            between = f"{FIELD_END} " if lower == "x-robots-tag" else ", "
            joined = f"{kept[lower]}{between}{value}" if lower in kept else value
            kept[lower] = clean(joined, cap)
    return kept
