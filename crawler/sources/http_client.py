"""The HTTP client of the sources: GET, bounded, without cookies; a secret goes to no other host.

The operator configures sources, so private addresses are allowed, such as a SearXNG on this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlencode, urljoin, urlsplit

import aiohttp
from yarl import URL

from crawler.sources.source import BadAnswer, SourceAnswer, SourceBusy, SourceRefused, SourceRequest
from crawler.web.content_encoding import ACCEPTED, BadEncoding, Inflater

ANSWER_CAP = 4 * 1024 * 1024  # inflated bytes
_HOPS = 3
_PIECE = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)


class SourceClient:
    """Sends requests to sources. Use it with `async with`, on one event loop."""

    def __init__(self, user_agent: str, clock: Callable[[], float] = time.time) -> None:
        self._user_agent = user_agent
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> SourceClient:
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": self._user_agent, "Accept-Encoding": ACCEPTED},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, request: SourceRequest, timeout_s: float, cap: int = ANSWER_CAP) -> SourceAnswer:
        """The response, whatever its status; follows redirects on the same host.

        Raises SourceBusy if there is none, BadAnswer if it exceeds `cap` bytes or does not match its encoding,
        SourceRefused for a redirect to another host.
        """
        assert self._session is not None, "use `async with`"
        url = request.url
        secret = urlencode(request.secret_params)
        limits = aiohttp.ClientTimeout(total=timeout_s)
        for _ in range(_HOPS + 1):
            try:
                async with self._session.get(
                    URL(f"{url}{'&' if '?' in url else '?'}{secret}" if secret else url),
                    headers={**request.headers, **request.secret_headers},
                    allow_redirects=False,
                    timeout=limits,
                ) as response:
                    if response.status in _REDIRECTS and "Location" in response.headers:
                        url = _next(request, url, response.headers["Location"])
                        continue
                    return await self._read(request, response, cap)
            except TimeoutError:
                raise SourceBusy(f"{request.shown} did not answer within {timeout_s:g} s") from None
            except (aiohttp.ClientError, OSError, ValueError) as error:
                # never the error's own text: it contains the URL, which may hold the key
                raise SourceBusy(f"{request.shown} cannot be reached: {_reason(error)}") from None
        raise SourceRefused(f"{request.shown} redirects more than {_HOPS} times: check its url in the settings")

    async def _read(self, request: SourceRequest, response: aiohttp.ClientResponse, cap: int) -> SourceAnswer:
        try:
            inflater = Inflater(response.headers.get("Content-Encoding", ""), cap)
            async for piece in response.content.iter_chunked(_PIECE):
                inflater.feed(piece)
                if inflater.full:
                    raise BadAnswer(f"{request.shown} answers with more than {cap} bytes")
            body = inflater.body()
        except BadEncoding as error:
            raise BadAnswer(f"{request.shown} answers with what is not its encoding: {error}") from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        return SourceAnswer(response.status, headers, body, self._clock())


def _next(request: SourceRequest, url: str, location: str) -> str:
    """The target of a redirect. Raises SourceRefused for another host, port or scheme."""
    try:
        target = urljoin(url, location)
        before, after = urlsplit(url), urlsplit(target)
        same = (before.scheme, before.netloc.lower()) == (after.scheme, after.netloc.lower())
        host = f"{after.scheme}://{after.hostname}"
    except ValueError:
        same, host = False, "a place that is no URL"
    if not same:
        shown = "".join(character for character in host[:200] if character.isprintable())
        raise SourceRefused(
            f"{request.shown} redirects to {shown}, and nothing was sent there: set the source's url to it if you"
            " trust it"
        )
    return target


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name is not in DNS"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return "its certificate is not trusted, or TLS fails"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:100]
    return type(error).__name__
