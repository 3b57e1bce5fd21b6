"""The fetcher: one job, one result, with redirects, address guard, politeness gate, time limits and size cap.

The fetcher follows redirects itself. A page may redirect within its site, or to the same name with or without `www.`,
under that name's robots.txt; other targets are refused as `redirect_offsite`. robots.txt may redirect anywhere (RFC
9309). Each hop is a request of its own for the gate.

Before a job's first request, the gate may defer it until its registrable domain and its addresses have a place; only
DNS has been queried by then.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import ParamSpec, TypeVar

import structlog
import zstandard
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.errors import UnresolvedHost, UnusableUrl
from crawler.fetch.connections import Connections
from crawler.fetch.context import FetchContext, FetchEnded, StaleConnection, Starved
from crawler.fetch.exchange import REDIRECTS, STARVED, Exchange, Tap
from crawler.fetch.gate import HostGate, Turn
from crawler.fetch.jobs import REDIRECTED, FetchOutcome, FetchRequest, FetchResult, Job, RequestKind
from crawler.fetch.response_headers import retry_after_s
from crawler.robots.opt_outs import forbids_mining, opt_outs
from crawler.robots.rules import ROBOTS_REDIRECTS, RobotsAnswer, RobotsRules, RobotsShelf, meaning_of
from crawler.settings import CrawlSettings
from crawler.web import content_type as content
from crawler.web.sitemaps import read_sitemap
from crawler.web.urls import host_of, normalise, origin_of, port_of, twin_of

log = structlog.get_logger(__name__)

_TWIN_RULES_KEPT = 1024  # robots.txt of `www.` twins held in memory
_WAITING = 1024  # jobs that wait for a turn between requests; further ones come again later
_STARVED_MS = 5000  # until a job comes again for which this machine had no socket
_ZSTD_LEVEL = 3
_LISTS_HEAVY = 32 * 1024  # bytes of a sitemap or a robots.txt beyond which it is read in a thread
_PAGES_HEAVY = 256 * 1024  # the same of a page
_ARRIVED = FetchEnded(FetchOutcome.FETCHED)


class Fetcher:
    """Runs jobs on one event loop. Use it with `async with`; jobs may run concurrently, the gate spaces hosts."""

    def __init__(
        self,
        settings: CrawlSettings,
        *,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], float] = time.time,
        tap: Tap | None = None,
    ) -> None:
        """Check the settings (raises NoContact, BadCrawlSettings). `resolver` replaces DNS, `clock` returns UTC
        seconds.

        `tap` is called on the event loop with every response, also redirects, errors and robots.txt.
        """
        settings.check()
        self._settings = settings
        self._clock = clock
        self._gate = HostGate(
            domain_delay_s=settings.domain_delay_s,
            address_delay_s=settings.address_delay_s,
            rest=settings.delay_per_second,
            rest_cap_s=settings.delay_slow_cap_s,
            slots=settings.max_in_flight,
        )
        self.waiting = 0  # jobs that wait for a turn between two requests: they are not under way. Any thread may look
        self._packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)  # costs more to make than to use; for one thread
        self._connections = Connections(settings, resolver)
        self._exchange = Exchange(settings, self._connections, tap)
        self._twins = RobotsShelf(settings.name, _TWIN_RULES_KEPT)  # by origin; the version is when they end (ms)
        self._twinless: dict[str, float] = {}  # twins whose robots.txt could not be had: until when (UTC)

    async def __aenter__(self) -> Fetcher:
        await self._connections.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()

    def share(self, fraction: float) -> None:
        """Set the share (above 0, at most 1) of all sites that this process crawls.

        Each process spaces domains and addresses alone. It divides the delays by its share, so that on average all
        processes together keep the delays.
        """
        self._gate.places.share(fraction)

    async def fetch(self, job: Job, *, wait: bool = True) -> FetchResult:
        """Run a job. Failures are results; only cancellation is raised.

        If its domain or addresses have no place soon, the job waits; without `wait` the result is DEFERRED.
        """
        trip = FetchContext(job.url, int(self._clock() * 1000), job.delay_s)
        try:
            if job.kind is not RequestKind.ROBOTS and host_of(job.url) != job.site:  # no rules are known for it
                raise FetchEnded(FetchOutcome.REFUSED, "other_host")
            await self._travel(job, trip, wait=wait)
            await self._arrive(job, trip)
        except FetchEnded as end:
            trip.end = end
        except Exception:  # a job that ends without an answer would hold its site for ever
            log.exception("fetch_broke", kind=job.kind.value, site=job.site)
            trip.end = FetchEnded(FetchOutcome.FAILED, "internal_error")
        return self._answer(job, trip)

    async def _travel(self, job: Job, trip: FetchContext, *, wait: bool) -> None:
        """Request the URL and follow redirects. Raises FetchEnded."""
        limit = ROBOTS_REDIRECTS if job.kind is RequestKind.ROBOTS else self._settings.redirects
        for _ in range(limit + 1):
            try:
                await self._request(job, trip, wait=wait)
            except StaleConnection:
                # The server had closed what we kept open: once more, with a turn of its own
                trip.requests[-1].outcome, trip.requests[-1].reason = FetchOutcome.FAILED.value, "connection"
                await self._request(job, trip, wait=True, last=True)
            wait = True
            location = trip.headers.get("location", "")
            if trip.status not in REDIRECTS or not location:
                return
            trip.requests[-1].outcome = REDIRECTED
            try:
                target = normalise(location, trip.url)
            except UnusableUrl:
                raise FetchEnded(FetchOutcome.FAILED, "bad_redirect") from None
            await self._check_hop(job, trip, target)
            trip.url = target
        raise FetchEnded(FetchOutcome.FAILED, "too_many_redirects")

    async def _check_hop(self, job: Job, trip: FetchContext, target: str) -> None:
        """Check whether the job may follow a redirect to `target`. Raises FetchEnded if not."""
        if job.kind is RequestKind.ROBOTS:
            return
        host = host_of(target)
        rules = job.rules
        trip.delay_s = job.delay_s
        if host not in (job.site, twin_of(job.site)):
            trip.url = target
            raise FetchEnded(FetchOutcome.REFUSED, "redirect_offsite")
        if port_of(target) != port_of(job.url):
            trip.url = target
            raise FetchEnded(FetchOutcome.REFUSED, "redirect_port")
        if host != job.site:
            rules = await self._twin_rules(job, trip, target)
            trip.delay_s = max(job.delay_s, rules.crawl_delay_s)
        if rules is None or not rules.allows(target):
            trip.url = target
            raise FetchEnded(FetchOutcome.REFUSED, "robots")
        if trip.delay_s > max(job.delay_s, self._settings.crawl_delay_cap_s):
            trip.url = target
            raise FetchEnded(FetchOutcome.REFUSED, "crawl_delay")

    async def _twin_rules(self, job: Job, trip: FetchContext, target: str) -> RobotsRules:
        """The rules of the `www.` twin's robots.txt. Raises FetchEnded if it is unavailable."""
        origin = origin_of(target)
        known = self._twins.held(origin)
        if known is not None and known[0] > self._clock() * 1000:
            return known[1]
        if self._twinless.get(origin, 0.0) > self._clock():
            raise FetchEnded(FetchOutcome.FAILED, "robots_unavailable", transient=True)
        answer = await self.fetch(Job(RequestKind.ROBOTS, host_of(target), f"{origin}/robots.txt", job.delay_s))
        trip.requests += answer.requests
        meaning = meaning_of(answer.status, complete=answer.outcome is FetchOutcome.FETCHED)
        if meaning is RobotsAnswer.UNREACHABLE:
            now = self._clock()
            if len(self._twinless) >= _TWIN_RULES_KEPT:
                self._twinless = {name: until for name, until in self._twinless.items() if until > now}
            self._twinless[origin] = now + min(self._settings.retry_s / 2, self._settings.robots_retry_s)
            raise FetchEnded(FetchOutcome.FAILED, "robots_unavailable", transient=True)
        text = answer.body if meaning is RobotsAnswer.RULES else b""
        rules = await done(len(text) > _LISTS_HEAVY, RobotsRules, text, self._settings.name)
        self._twins.put(origin, int((self._clock() + self._settings.robots_ttl_s) * 1000), rules)
        return rules

    async def _request(self, job: Job, trip: FetchContext, *, wait: bool, last: bool = False) -> None:
        """One HTTP request of a job. Raises FetchEnded, StaleConnection.

        Without `wait` the gate may defer the job. `last`: a stale connection is a failure.
        """
        host = host_of(trip.url)
        url = self._exchange.wire_url(trip.url)
        request = FetchRequest(job.kind)
        trip.status, trip.headers, trip.robots_tags, trip.address = 0, {}, (), ""
        pins = await self._find(trip, request, url.raw_host or "", url.port or 0)
        addresses = [pin["host"] for pin in pins]
        if not wait and (away_s := self._gate.sent_away_s(host, addresses)):
            raise FetchEnded(FetchOutcome.DEFERRED, not_before_ms=math.ceil((self._clock() + away_s) * 1000))
        turn = self._gate.turn(host, trip.delay_s, addresses)
        if wait and not turn.is_free():
            await self._wait(turn, trip)
        else:
            await turn.take()
        try:
            self._note_start(job, trip, host)
            trip.requests.append(request)
            started = time.monotonic()
            self._connections.pin(url.raw_host or "", pins)
            try:
                await self._exchange.make(job, trip, request, url, partial(self._sent, turn, job, trip, host))
            except StaleConnection:
                if last:
                    raise FetchEnded(FetchOutcome.FAILED, "connection", transient=True, unreachable=True) from None
                raise
            except Starved:
                raise self._starved(trip) from None
            except FetchEnded:
                if not trip.address:
                    self._connections.failed(addresses)
                raise
            finally:
                self._connections.unpin(url.raw_host or "")
                request.status = trip.status
                request.duration_s = time.monotonic() - started
                trip.spent_s += request.duration_s
                if trip.address and trip.address not in addresses:
                    self._gate.places.charge(trip.address, started)
        finally:
            turn.leave()

    def _note_start(self, job: Job, trip: FetchContext, host: str) -> None:
        trip.sent_ms = int(self._clock() * 1000)
        if host == job.site:
            trip.started_ms = trip.sent_ms

    async def _sent(self, turn: Turn, job: Job, trip: FetchContext, host: str) -> None:
        """A new connection is open: the request starts now."""
        await turn.sent()
        self._note_start(job, trip, host)

    async def _wait(self, turn: Turn, trip: FetchContext) -> None:
        """Wait for a turn between two requests. Raises FetchEnded if too many jobs wait, or this one waits too long."""
        left_s = self._settings.crawl_delay_cap_s + self._settings.delay_s - trip.waited_s
        if self.waiting >= _WAITING or left_s <= 0:
            raise FetchEnded(FetchOutcome.FAILED, "busy", transient=True)
        began = time.monotonic()
        self.waiting += 1
        try:
            async with asyncio.timeout(left_s):
                await turn.take()
        except TimeoutError:
            raise FetchEnded(FetchOutcome.FAILED, "busy", transient=True) from None
        finally:
            self.waiting -= 1
            trip.waited_s += time.monotonic() - began

    def _starved(self, trip: FetchContext) -> FetchEnded:
        """This machine has no socket left: a job without a request so far comes again later."""
        log.warning("no_socket_left", mend="raise the limit of open files (ulimit -n), or lower crawl.max_in_flight")
        if len(trip.requests) > 1:
            return FetchEnded(FetchOutcome.FAILED, "busy", transient=True)
        trip.requests.clear()
        return FetchEnded(FetchOutcome.DEFERRED, not_before_ms=int(self._clock() * 1000) + _STARVED_MS)

    async def _find(self, trip: FetchContext, request: FetchRequest, host: str, port: int) -> list[ResolveResult]:
        """The addresses of a host; without one, the request has failed. Raises FetchEnded."""
        try:
            return await self._connections.find(host, port)
        except OSError as error:
            trip.requests.append(request)
            if error.errno in STARVED:
                raise self._starved(trip) from None
            reason = error.reason if isinstance(error, UnresolvedHost) else "dns"
            raise FetchEnded(FetchOutcome.FAILED, reason, transient=True, unreachable=True) from None

    async def _arrive(self, job: Job, trip: FetchContext) -> None:
        """Check and process the final response. Raises FetchEnded if it is not what the job asked for."""
        status = trip.status
        if status == 304 and trip.url == job.url and (job.etag or job.last_modified):
            trip.opt_out = opt_outs(trip.headers, b"", self._settings.name, trip.robots_tags)
            raise FetchEnded(FetchOutcome.UNCHANGED)
        if status == 429 or status >= 500:
            raise FetchEnded(FetchOutcome.FAILED, f"http_{status}", transient=True)
        if not 200 <= status < 300:
            raise FetchEnded(FetchOutcome.FAILED, f"http_{status}")
        if job.kind is RequestKind.SITEMAP:
            # What it lists is the site's own, even if it stands elsewhere
            heavy = len(trip.body) > _LISTS_HEAVY or trip.body.startswith(b"\x1f\x8b")
            trip.sitemap = await done(heavy, read_sitemap, trip.body, job.url, self._settings.sitemap_bytes)
        elif job.kind is RequestKind.PAGE:
            kind = trip.headers.get("content-type", "")
            if trip.body and not content.is_html(kind, trip.body):
                raise FetchEnded(FetchOutcome.REFUSED, "content_type")
            encoding = await done(len(trip.body) > _PAGES_HEAVY, self._look_into, trip, kind)
            if self._settings.obey_opt_out and forbids_mining(trip.opt_out):
                raise FetchEnded(FetchOutcome.REFUSED, "opt_out")
            trip.encoding = encoding
            trip.packed = self._packer.compress(trip.body)

    def _look_into(self, trip: FetchContext, kind: str) -> str:
        """Store the opt-outs of a page, and return its charset."""
        encoding = content.charset_of(kind, trip.body, truncated=trip.truncated)
        trip.opt_out = opt_outs(trip.headers, trip.body, self._settings.name, trip.robots_tags, encoding)
        return encoding

    def _answer(self, job: Job, trip: FetchContext) -> FetchResult:
        end = trip.end or _ARRIVED
        last = next((request for request in reversed(trip.requests) if request.kind is job.kind), None)
        if last is not None:
            last.outcome = last.outcome or end.outcome.value
            last.reason = last.reason or end.reason
        headers = trip.headers
        retry_after = headers.get("retry-after")
        return FetchResult(
            job=job,
            outcome=end.outcome,
            started_ms=trip.started_ms,
            reason=end.reason,
            status=trip.status,
            final_url=trip.url,
            headers=headers,
            content_type=content.media_type(headers.get("content-type", "")),
            encoding=trip.encoding,
            body=trip.body if end.outcome is FetchOutcome.FETCHED else b"",
            packed=trip.packed,
            truncated=trip.truncated,
            duration_ms=int(trip.spent_s * 1000),
            requests=trip.requests,
            transient=end.transient,
            unreachable=end.unreachable,
            retry_after_s=None if retry_after is None else retry_after_s(retry_after, self._clock()),
            opt_out=trip.opt_out,
            sitemap=trip.sitemap,
            not_before_ms=end.not_before_ms,
            address=trip.address,
        )


Given = ParamSpec("Given")
Made = TypeVar("Made")


async def done(heavy: bool, work: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
    """Run `work`, in a thread if it is `heavy`, so that a hostile body does not block the timeouts of other hosts."""
    if not heavy:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
