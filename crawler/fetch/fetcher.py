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
from aiohttp.abc import AbstractResolver

from crawler.errors import PrivateAddress, UnresolvedHost, UnusableUrl
from crawler.fetch.connections import Connections
from crawler.fetch.context import STARVED, FetchContext, FetchEnded, NoSocketLeft, StaleConnection
from crawler.fetch.exchange import REDIRECTS, Exchange, Tap
from crawler.fetch.gate import GateClosed, HostGate, Turn
from crawler.fetch.jobs import REDIRECTED, TEXTS, FetchRequest, FetchResult, Job, RequestKind
from crawler.fetch.page_checks import check_page, is_obeyed_no, is_passing
from crawler.fetch.proxy import ProxyFailed
from crawler.fetch.response_headers import retry_after_s
from crawler.robots.opt_outs import opt_outs
from crawler.robots.rules import ROBOTS_REDIRECTS, RobotsAnswer, RobotsRules, RobotsShelf, meaning_of
from crawler.settings import SLOW_S, CrawlSettings
from crawler.web import content_type as content
from crawler.web.inspection import Inspector
from crawler.web.sitemaps import read_sitemap
from crawler.web.urls import host_of, normalise, origin_of, port_of, twin_of
from stream.schema.vocabulary import FetchOutcome

_log = structlog.get_logger()

_TWIN_RULES_KEPT = 1024  # robots.txt of `www.` twins held in memory
_WAITING = 1024  # jobs that wait between two requests, and as many of the slow lane; further ones fail as busy
_HOPS = 3  # whose delays a job may wait for, as from http to https to www to a page, besides hops_wait_s
_STARVED_MS = 5000  # before a job without a socket comes again
_ZSTD_LEVEL = 3
_LISTS_HEAVY = 32 * 1024  # bytes from which a sitemap or robots.txt is parsed in a thread
_PAGES_HEAVY = 256 * 1024  # the same of a page


class Fetcher:
    """Runs jobs on one event loop. Use it with `async with`; jobs may run concurrently, the gate spaces hosts."""

    def __init__(
        self,
        settings: CrawlSettings,
        *,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], float] = time.time,
        tap: Tap | None = None,
        excludes: Callable[[str], bool] = lambda _: False,
        inspector: Inspector | None = None,
    ) -> None:
        """Check the settings (raises NoContact, BadCrawlSettings). `resolver` replaces DNS, `clock` returns UTC
        seconds.

        `tap` is called on the event loop with every response, also redirects, errors and robots.txt. No request
        goes to a host that `excludes` names. `inspector` says which answers are no page; None: all are pages.
        """
        settings.check()
        self._settings = settings
        self._clock = clock
        self._gate = HostGate(settings)
        self._excludes = excludes
        self._inspector = inspector
        self.waiting = 0  # jobs that wait between two requests; any thread may read it
        self._proxy_failed_at = 0.0  # since when it fails (UTC); 0 = it does not
        self._waiting_long = 0  # of these, jobs of the slow lane: they block no others
        self._packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)  # costs more to make than to use; for one thread
        self._connections = Connections(settings, resolver)
        self._exchange = Exchange(settings, self._connections, tap, inspects=inspector is not None)
        self._twins = RobotsShelf(settings.name, _TWIN_RULES_KEPT)  # by origin; the version is when they end (ms)
        self._twinless: dict[str, float] = {}  # twins with an unavailable robots.txt -> until when (UTC)

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
        self._gate.spacing.share(fraction)

    def hold(self, *, held: bool) -> None:
        """While held no request starts: jobs whose request has not started end as DEFERRED."""
        self._gate.closed = held

    async def fetch(self, job: Job, *, wait: bool = True) -> FetchResult:
        """Run a job. Failures are results; only cancellation is raised.

        If its domain or addresses have no place soon, the job waits; without `wait` the result is DEFERRED.
        """
        context = FetchContext(
            job=job,
            outcome=FetchOutcome.FETCHED,
            started_ms=int(self._clock() * 1000),
            final_url=job.url,
            delay_s=job.delay_s,
        )
        try:
            if job.kind is not RequestKind.ROBOTS and host_of(job.url) != job.site:  # no rules are known for it
                raise FetchEnded(FetchOutcome.REFUSED, "other_host")
            await self._follow(context, wait=wait)
            await self._process_response(context)
        except FetchEnded as end:
            context.end(end)
        except Exception:  # noqa: BLE001 - a job without a result would block its site forever
            _log.exception("fetch_broke", kind=job.kind.value, site=job.site)
            context.end(FetchEnded(FetchOutcome.FAILED, "internal_error"))
        self._complete(context)
        return context

    async def _follow(self, context: FetchContext, *, wait: bool) -> None:
        limit = ROBOTS_REDIRECTS if context.job.kind is RequestKind.ROBOTS else self._settings.redirects
        for _ in range(limit + 1):
            context.is_repeated = False
            try:
                await self._request(context, wait=wait)
            except StaleConnection:
                # The server had closed the kept connection: repeat, with a new turn
                context.requests[-1].outcome, context.requests[-1].reason = FetchOutcome.FAILED.value, "connection"
                context.is_repeated = True
                await self._request(context, wait=True)
            wait = True
            location = context.headers.get("location", "")
            if context.status not in REDIRECTS or not location:
                return
            context.requests[-1].outcome = REDIRECTED
            try:
                target = normalise(location, context.final_url)
            except UnusableUrl:
                raise FetchEnded(FetchOutcome.FAILED, "bad_redirect") from None
            if (host := host_of(target)) != context.job.site and self._excludes(host):
                context.status = 0  # as without an answer: an unread robots.txt disallows all
                raise FetchEnded(FetchOutcome.REFUSED, "excluded")
            await self._check_hop(context, target)
            context.final_url = target
        raise FetchEnded(FetchOutcome.FAILED, "too_many_redirects")

    async def _check_hop(self, context: FetchContext, target: str) -> None:
        """Check whether the job may follow a redirect to `target`. Raises FetchEnded if not."""
        job = context.job
        if job.kind is RequestKind.ROBOTS:
            return
        host, rules = host_of(target), job.rules
        reason = ""
        context.delay_s = job.delay_s
        if host not in (job.site, twin_of(job.site)):
            reason = "redirect_offsite"
        elif port_of(target) != port_of(job.url):
            reason = "redirect_port"
        elif job.kind is RequestKind.PROBE and target.split("/", 3)[3].rstrip("/") != job.url.split("/", 3)[3]:
            raise FetchEnded(FetchOutcome.REFUSED)  # the site says that there is no such page
        else:
            if host != job.site:
                rules = await self._twin_rules(context, target)
                context.delay_s = max(job.delay_s, rules.crawl_delay_s)
                context.stated = rules.preferences(target)
            if rules is None or not rules.allows(target):
                reason = "robots"
            elif is_obeyed_no(self._settings, context.stated):
                reason = "opt_out"
            elif self._settings.is_too_slow(context.delay_s):
                reason = "crawl_delay"
        if reason:
            context.final_url, context.opt_out = target, list(context.stated)
            raise FetchEnded(FetchOutcome.REFUSED, reason)

    async def _twin_rules(self, context: FetchContext, target: str) -> RobotsRules:
        """The rules of the `www.` twin's robots.txt. Raises FetchEnded if it is unavailable."""
        origin = origin_of(target)
        known = self._twins.held(origin)
        if known is not None and known[0] > self._clock() * 1000:
            return known[1]
        if self._twinless.get(origin, 0.0) > self._clock():
            raise FetchEnded(FetchOutcome.FAILED, "robots_unavailable", transient=True)
        delay_s = context.job.delay_s
        answer = await self.fetch(Job(RequestKind.ROBOTS, host_of(target), f"{origin}/robots.txt", delay_s))
        context.requests += answer.requests
        if answer.outcome is FetchOutcome.DEFERRED:
            raise FetchEnded(FetchOutcome.DEFERRED, not_before_ms=answer.not_before_ms)
        meaning = meaning_of(answer.status, complete=answer.outcome is FetchOutcome.FETCHED)
        if meaning is RobotsAnswer.UNREACHABLE:
            now = self._clock()
            if len(self._twinless) >= _TWIN_RULES_KEPT:
                self._twinless = {name: until for name, until in self._twinless.items() if until > now}
            self._twinless[origin] = now + min(self._settings.retry_s / 2, self._settings.robots_retry_s)
            raise FetchEnded(FetchOutcome.FAILED, "robots_unavailable", transient=True)
        text = answer.body if meaning is RobotsAnswer.RULES else b""
        rules = await offload(len(text) > _LISTS_HEAVY, RobotsRules, text, self._settings.name)
        life_s = self._settings.robots_life_s(max(delay_s, rules.crawl_delay_s))
        self._twins.put(origin, int((self._clock() + life_s) * 1000), rules)
        return rules

    async def _request(self, context: FetchContext, *, wait: bool) -> None:
        """One HTTP request of a job; without `wait` the gate may defer the job. Raises FetchEnded, StaleConnection."""
        host = host_of(context.final_url)
        url = self._exchange.wire_url(context.final_url)
        request = FetchRequest(context.job.kind)
        context.status, context.headers, context.robots_tags, context.address = 0, {}, (), ""
        await self._resolve(context, request, url.raw_host or "", url.port or 0)
        addresses = [pin["host"] for pin in context.pins]
        if not wait and (away_s := self._gate.deferral_s(host, addresses)):
            raise FetchEnded(FetchOutcome.DEFERRED, not_before_ms=math.ceil((self._clock() + away_s) * 1000))
        turn = self._gate.turn(host, context.delay_s, addresses)
        try:
            await (self._wait(turn, context) if wait else turn.take())
        except GateClosed:
            raise FetchEnded(FetchOutcome.DEFERRED, not_before_ms=int(self._clock() * 1000)) from None
        try:
            if self._excludes(host):  # since the job began to wait
                raise FetchEnded(FetchOutcome.REFUSED, "excluded")
            self._record_start(context, host)
            context.requests.append(request)
            started = time.monotonic()
            try:
                await self._exchange.make(context, request, url, partial(self._sent, turn, context, host))
                self._proxy_failed_at = 0.0
            except NoSocketLeft:
                raise self._on_no_socket(context) from None
            except ProxyFailed as error:
                raise self._on_proxy_failed(context, str(error)) from None
            except FetchEnded:
                if not context.address:
                    self._connections.failed(addresses)
                raise
            finally:
                request.status = context.status
                request.duration_s = time.monotonic() - started
                context.spent_s += request.duration_s
                if context.address and context.address not in addresses:
                    self._gate.spacing.charge(context.address, started)
        finally:
            turn.leave()

    def _record_start(self, context: FetchContext, host: str) -> None:
        context.sent_ms = int(self._clock() * 1000)
        if host == context.job.site:
            context.started_ms = context.sent_ms

    async def _sent(self, turn: Turn, context: FetchContext, host: str) -> None:
        await turn.sent()
        self._record_start(context, host)

    async def _wait(self, turn: Turn, context: FetchContext) -> None:
        """Wait for a turn between two requests. Raises FetchEnded if too many jobs wait, or this one waits too long."""
        left_s = self._settings.hops_wait_s + _HOPS * context.delay_s - context.waited_s
        is_slow = context.delay_s > SLOW_S
        before = self._waiting_long if is_slow else self.waiting - self._waiting_long
        if before >= _WAITING or left_s <= 0:
            raise FetchEnded(FetchOutcome.FAILED, "busy", transient=True)
        began = time.monotonic()
        self.waiting += 1
        self._waiting_long += is_slow
        try:
            async with asyncio.timeout(left_s):
                await turn.take()
        except TimeoutError:
            raise FetchEnded(FetchOutcome.FAILED, "busy", transient=True) from None
        finally:
            self.waiting -= 1
            self._waiting_long -= is_slow
            context.waited_s += time.monotonic() - began

    def _on_no_socket(self, context: FetchContext) -> FetchEnded:
        """This machine has no socket left: a job without a request so far comes again later."""
        _log.warning("no_socket_left")
        return self._put_off(context, _STARVED_MS)

    def _on_proxy_failed(self, context: FetchContext, why: str) -> FetchEnded:
        """The proxy is down, for all sites: none is blamed, and the job comes again later."""
        settings, now = self._settings, self._clock()
        if not self._proxy_failed_at:
            self._proxy_failed_at = now
            _log.warning("proxy_failed", why=why)
        wait_s = max(settings.retry_s, (now - self._proxy_failed_at) / 4)  # ever more rarely, as without a network
        return self._put_off(context, int(1000 * min(wait_s, settings.park_cap_s)))

    def _put_off(self, context: FetchContext, wait_ms: int) -> FetchEnded:
        if len(context.requests) > 1:
            return FetchEnded(FetchOutcome.FAILED, "busy", transient=True)
        context.requests.clear()
        return FetchEnded(FetchOutcome.DEFERRED, not_before_ms=int(self._clock() * 1000) + wait_ms)

    async def _resolve(self, context: FetchContext, request: FetchRequest, host: str, port: int) -> None:
        """Pin the addresses of a host; without one, the request has failed. Raises FetchEnded."""
        try:
            context.pins = await self._connections.find(host, port)
        except OSError as error:
            context.requests.append(request)
            if isinstance(error, PrivateAddress):
                raise FetchEnded(FetchOutcome.REFUSED, "private_address") from None
            if error.errno in STARVED:
                raise self._on_no_socket(context) from None
            reason = error.reason if isinstance(error, UnresolvedHost) else "dns"
            raise FetchEnded(FetchOutcome.FAILED, reason, transient=True, unreachable=True) from None

    async def _process_response(self, context: FetchContext) -> None:
        job, status = context.job, context.status
        if status == 304 and context.final_url == job.url and (job.etag or job.last_modified):
            context.opt_out = opt_outs(context.headers, b"", self._settings.name, context.robots_tags)
            raise FetchEnded(FetchOutcome.UNCHANGED)
        is_ok = 200 <= status < 300
        if not is_ok and job.kind in TEXTS:
            raise FetchEnded(FetchOutcome.FAILED, f"http_{status}", transient=is_passing(status))
        if job.kind is RequestKind.SITEMAP and is_ok:
            # Its URLs count as the site's, wherever redirects led
            heavy = len(context.body) > _LISTS_HEAVY or context.body.startswith(b"\x1f\x8b")
            context.sitemap = await offload(heavy, read_sitemap, context.body, job.url, self._settings.sitemap_bytes)
        elif job.kind not in TEXTS:
            await self._check_page(context)

    async def _check_page(self, context: FetchContext) -> None:
        """Check and keep a page, or an error that shows itself to be no page. Raises FetchEnded as above."""
        checked = await offload(
            len(context.body) > _PAGES_HEAVY,
            check_page,
            self._settings,
            self._inspector,
            context.final_url,
            context.status,
            context.headers,
            context.body,
            truncated=context.truncated,
            robots_tags=context.robots_tags,
            has_outline=context.job.has_outline,
        )
        context.opt_out, context.outline = [*checked.opt_out, *context.stated], checked.outline
        if checked.keeps_body and context.job.kind is RequestKind.PAGE:
            context.encoding = checked.encoding
            context.packed = self._packer.compress(context.body)
        if checked.outcome is not FetchOutcome.FETCHED:
            raise FetchEnded(checked.outcome, checked.reason, transient=checked.transient)

    def _complete(self, context: FetchContext) -> None:
        last = next((request for request in reversed(context.requests) if request.kind is context.job.kind), None)
        if last is not None:
            last.outcome = last.outcome or context.outcome.value
            last.reason = last.reason or context.reason
        headers = context.headers
        context.content_type = content.media_type(headers.get("content-type", ""))
        if context.outcome is not FetchOutcome.FETCHED and not context.packed:
            context.body = b""
        context.duration_ms = int(context.spent_s * 1000)
        context.ended_ms = int(self._clock() * 1000)
        if "retry-after" in headers:
            context.retry_after_s = retry_after_s(headers["retry-after"], self._clock())


Args = ParamSpec("Args")
Result = TypeVar("Result")


async def offload(heavy: bool, work: Callable[Args, Result], *given: Args.args, **named: Args.kwargs) -> Result:
    """Run `work`, in a thread if it is `heavy`, so that a hostile body does not block the timeouts of other hosts."""
    if not heavy:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
