"""Who may use the console: a token in a cookie, known host names, own forms, and headers that let nothing run.

Against DNS rebinding the Host is checked, against forged requests (CSRF) the Origin and a form field, against crawled
content that slips through the escaping a Content Security Policy (https://www.w3.org/TR/CSP3/) without any script
but the console's own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from stream.log.private_folders import give_to_owner, make_private
from stream.text.user_errors import ConfigError

_COOKIE = "farmwatch-console-{}"  # the port: browsers give a cookie to all ports of a host
KEPT = "console.token"  # the file
_ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared; a browser needs one address
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with "no-referrer" browsers send the forms as of Origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def browsed_host(host: str) -> str:
    """The host in the address for a browser, by the setting `console.host`."""
    one = _ANY.get(host, host)
    return f"[{one}]" if ":" in one else one


def kept_token(folder: Path) -> str:
    """The token of the folder, made at the first call and readable by its owner alone. Raises OSError, ConfigError."""
    file = folder / KEPT
    make_private(folder)
    with suppress(FileExistsError), os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
        made.write(secrets.token_urlsafe(32) + "\n")
        give_to_owner(file)
    if token := file.read_text().strip():
        return token
    raise ConfigError(f"{file}: has no token: remove it, and the next start makes one")


class Access:
    """Checks every request. A browser gets its cookie from the address with the token, or from the form."""

    def __init__(self, token: str, host: str, port: int, more_hosts: Sequence[str]) -> None:
        """`more_hosts`: further names under which browsers reach the console, each with its port if it is not 80."""
        self._hosts = {f"{name}:{port}" for name in (host, *_LOOPBACK)} | {name.lower() for name in more_hosts}
        self._key, self._cookie = token.encode(), _COOKIE.format(port)
        self._session = self._digest("session")
        self.form_token = self._digest("form")

    def refusal(self, request: web.Request) -> str:
        """Why the request cannot be from a page of the console; "" if it can."""
        if request.host.lower() not in self._hosts:
            return f"unknown host {request.host[:80]!r}: add it to console.hosts if browsers reach the console so"
        if request.method not in ("GET", "HEAD"):
            origin = request.headers.get("Origin", "")
            if origin.partition("://")[2].lower() not in self._hosts:
                return "a form of another page"
        return ""

    def is_known(self, request: web.Request) -> bool:
        """Whether the request has the cookie, or the token itself as programs send it (RFC 6750)."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        is_program = kind.lower() == "bearer" and self.opens(token.strip())
        return is_program or _same(request.cookies.get(self._cookie, ""), self._session)

    def opens(self, token: str) -> bool:
        """Whether this is the token."""
        return _same(token, self._key.decode())

    def let_in(self, where: str = "/") -> web.Response:
        """Give the browser its cookie, and send it on to an address without the token."""
        answer = web.Response(status=303, headers={"Location": where})
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        return answer

    def is_own_form(self, field: str) -> bool:
        """Whether a form that was sent is one of the console's."""
        return _same(field, self.form_token)

    def _digest(self, purpose: str) -> str:
        return hmac.new(self._key, purpose.encode(), hashlib.sha256).hexdigest()


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), known.encode())


def secured(answer: web.StreamResponse) -> web.StreamResponse:
    """The answer with the headers of every answer."""
    answer.headers.update(_HEADERS)
    return answer
