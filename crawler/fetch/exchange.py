"""One request and its response: errors, the size of the body, and the captured bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import aiohttp
import structlog
import yarl

from crawler.fetch.address_guard import is_guard_error
from crawler.fetch.connections import Connections, Response
from crawler.fetch.context import STARVED, FetchContext, FetchEnded, NoSocketLeft, StaleConnection
from crawler.fetch.jobs import TEXTS, Capture, FetchRequest, RequestKind
from crawler.fetch.page_checks import ERROR_CAP_BYTES, may_say_more
from crawler.fetch.proxy import SiteRefused
from crawler.fetch.response_headers import clean, kept_headers
from crawler.robots.lines import ROBOTS_CAP_BYTES
from crawler.settings import CrawlSettings
from crawler.web import content_type as content
from crawler.web.ads_txt import ADS_TXT_CAP_BYTES
from crawler.web.content_encoding import BadEncoding, Inflater
from stream.schema.vocabulary import FetchOutcome

_log = structlog.get_logger()

Tap = Callable[[Capture], None]
OnConnect = Callable[[], Awaitable[None]]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
TDMREP_CAP_BYTES = 64 * 1024
_ERROR_S = 2.0  # seconds that such a body may take
_SENT_SLACK = 64 * 1024  # of headers and framing: a body on the wire is no larger than inflated

# OpenSSL's X509_V_ERR_ numbers (x509_vfy.h) in our words
_TLS_REASONS = {9: "tls_expired", 10: "tls_expired", 62: "tls_name", 64: "tls_name"}
_TLS_UNTRUSTED = frozenset({2, 18, 19, 20, 21, 24, 26, 27, 28})
_TRUNCATED = {"timeout": "time", "connection": "disconnect", "bad_encoding": "length"}  # WARC 1.1 section 5.13


class Exchange:
    """Sends requests and reads responses."""

    def __init__(
        self, settings: CrawlSettings, connections: Connections, tap: Tap | None, *, inspects: bool = False
    ) -> None:
        """`tap` gets every response; without it nothing is captured. `inspects`: the bodies of errors are read."""
        self._inspects = inspects
        self._settings = settings
        self._connections = connections
        self._tap = tap
        self._caps = {
            RequestKind.ROBOTS: ROBOTS_CAP_BYTES,
            RequestKind.TDMREP: TDMREP_CAP_BYTES,
            RequestKind.ADS_TXT: ADS_TXT_CAP_BYTES,
            RequestKind.SITEMAP: settings.sitemap_bytes,
            RequestKind.PAGE: settings.body_bytes,
            RequestKind.PROBE: settings.body_bytes,
        }

    def wire_url(self, url: str) -> yarl.URL:
        """The URL as sent. Under `resolve_to` it is plain HTTP, because test servers have no certificate."""
        if self._settings.resolve_to and url.startswith("https://"):
            url = "http://" + url.removeprefix("https://")
        return yarl.URL(url, encoded=True)

    async def make(self, context: FetchContext, request: FetchRequest, url: yarl.URL, on_connect: OnConnect) -> None:
        """Send a request and read its response. Raises FetchEnded, StaleConnection, NoSocketLeft, ProxyFailed."""
        tape = _Tape() if self._tap is not None else None
        try:
            await self._send(context, request, url, on_connect, tape)
        except FetchEnded as end:
            if tape is not None:
                tape.truncated = tape.truncated or _TRUNCATED.get(end.reason, "")
            raise
        finally:
            if tape is not None and tape.response is not None:
                self._pass_to_tap(tape.capture(context))

    async def _send(
        self, context: FetchContext, request: FetchRequest, url: yarl.URL, on_connect: OnConnect, tape: _Tape | None
    ) -> None:
        cap = self._caps[context.job.kind]
        try:
            response = await self._connections.request(context, url, _conditions(context), cap, on_connect)
            try:
                status = context.status = response.head.code
                context.body = b""  # of a redirect
                context.headers = kept_headers(response.head.headers.items())
                if "x-robots-tag" in context.headers:  # the stored header may be cut
                    context.robots_tags = response.head.headers.getall("x-robots-tag")
                if tape is not None:
                    tape.response = response
                if 200 <= status < 300:
                    await self._read(context, response, cap, tape)
                    request.body_bytes = len(context.body)
                elif self._inspects and context.job.kind not in TEXTS and may_say_more(status, context.headers):
                    await self._read_error(context, response, tape)
                elif tape is not None:
                    await tape.read(response, ERROR_CAP_BYTES)
                elif status not in REDIRECTS and status != 304:
                    response.close()  # the body of an error is of no use
            finally:
                response.release()
        except TimeoutError:
            raise FetchEnded(FetchOutcome.FAILED, "timeout", transient=True, unreachable=context.status == 0) from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise FetchEnded(FetchOutcome.FAILED, tls_reason(error.certificate_error), unreachable=True) from None
        except aiohttp.ClientSSLError:
            raise FetchEnded(FetchOutcome.FAILED, "tls", unreachable=True) from None
        except aiohttp.InvalidURL:
            raise FetchEnded(FetchOutcome.FAILED, "bad_url") from None
        except SiteRefused:
            raise FetchEnded(FetchOutcome.FAILED, "proxy_refused", transient=True, unreachable=True) from None
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, OSError) and error.errno in STARVED:
                raise NoSocketLeft from None
            if is_guard_error(error):
                raise FetchEnded(FetchOutcome.REFUSED, "private_address") from None
            if context.status == 0 and context.kept and not context.is_repeated:
                raise StaleConnection from None
            raise FetchEnded(
                FetchOutcome.FAILED, "connection", transient=True, unreachable=context.status == 0
            ) from None
        except BadEncoding:
            raise FetchEnded(FetchOutcome.FAILED, "bad_encoding") from None
        except ValueError:  # no HTTP, or headers beyond the limits
            raise FetchEnded(FetchOutcome.FAILED, "bad_response") from None

    async def _read(self, context: FetchContext, response: Response, cap: int, tape: _Tape | None) -> None:
        headers = context.headers
        is_page = context.job.kind in (RequestKind.PAGE, RequestKind.PROBE)
        if is_page and not content.may_be_html(headers.get("content-type", "")):
            if tape is not None:
                tape.truncated = "length"
            response.close()
            raise FetchEnded(FetchOutcome.REFUSED, "content_type")
        encoding, stream = headers.get("content-encoding", ""), response.content
        if not encoding and stream.is_eof():  # complete and not encoded, as most pages are
            body = stream.read_nowait()
            context.body, context.truncated = body[:cap], len(body) > cap
            if tape is not None:
                tape.pieces.append(body)
                tape.truncated = "length" if context.truncated else ""
            return
        inflater = Inflater(encoding, cap)
        left = cap + _SENT_SLACK  # of bytes sent: a stream may be endless and inflate to nothing
        async for piece in stream.iter_any():
            if tape is not None:
                tape.pieces.append(piece)
            inflater.feed(piece)
            left -= len(piece)
            if inflater.full or left <= 0:
                if tape is not None:
                    tape.truncated = "length"
                response.close()
                break
        context.body, context.truncated = inflater.body(), inflater.cut_short or left <= 0

    async def _read_error(self, context: FetchContext, response: Response, tape: _Tape | None) -> None:
        """Read the start of the body of an error. A failure does not change the result of the fetch."""
        try:
            async with asyncio.timeout(_ERROR_S):
                await self._read(context, response, ERROR_CAP_BYTES, tape)
                return
        except (TimeoutError, BadEncoding, aiohttp.ClientError, OSError) as error:
            if tape is not None:
                tape.truncated = "time" if isinstance(error, TimeoutError) else "disconnect"
        response.close()

    def _pass_to_tap(self, capture: Capture) -> None:
        assert self._tap is not None
        try:
            self._tap(capture)
        except Exception:  # noqa: BLE001 - a failed archive must not lose the page
            _log.exception("capture_lost", kind=capture.kind.value)


class _Tape:
    def __init__(self) -> None:
        self.response: Response | None = None
        self.pieces: list[bytes] = []
        self.truncated = ""

    async def read(self, response: Response, cap: int) -> None:
        """Read a body for the tap only. An error does not change the result of the fetch."""
        try:
            async with asyncio.timeout(_ERROR_S):
                async for piece in response.content.iter_any():
                    self.pieces.append(piece[:cap])
                    cap -= len(piece)
                    if cap < 0:
                        self.truncated = "length"
                        break
                else:
                    return
        except TimeoutError:
            self.truncated = "time"
        except (aiohttp.ClientError, OSError):
            self.truncated = "disconnect"
        response.close()

    def capture(self, context: FetchContext) -> Capture:
        job, response = context.job, self.response
        assert response is not None
        head = response.head
        return Capture(
            kind=job.kind,
            url=context.final_url,
            via="" if context.final_url == job.url else job.url,
            started_ms=context.sent_ms,
            address=context.address,
            request_headers=[(name.encode(), value.encode("utf-8", "replace")) for name, value in response.sent],
            version=f"HTTP/{head.version.major}.{head.version.minor}",
            status=head.code,
            reason=clean(head.reason or "", 200),
            headers=list(head.raw_headers),
            body=b"".join(self.pieces),
            truncated=self.truncated,
        )


def _conditions(context: FetchContext) -> dict[str, str]:
    """The headers of a conditional request, for the job's own URL only.

    The validators belong to that URL. At the end of a changed redirect, an ETag such as `"1"` could match a page that
    was never fetched.
    """
    job = context.job
    if context.final_url != job.url:
        return {}
    conditions = {"If-None-Match": job.etag, "If-Modified-Since": job.last_modified}
    return {name: value for name, value in conditions.items() if value}


def tls_reason(error: Exception) -> str:
    """The reason for a rejected certificate, by OpenSSL's code."""
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    return _TLS_REASONS.get(code) or ("tls_untrusted" if code in _TLS_UNTRUSTED else "tls")
