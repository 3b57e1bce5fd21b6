"""One HTTP exchange as it went over the wire, for whoever keeps archives of everything fetched."""

from __future__ import annotations

import msgspec

from crawler.fetch.jobs import RequestKind


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its response. Header names and values are bytes as sent; the body is as sent, chunks joined.

    `via` is the URL that the job asked for, where redirects led from it to `url`. `truncated` says why the body ends
    before its end, in the words of WARC 1.1 section 5.13: length, time, disconnect, or "" where it is whole.
    """

    kind: RequestKind
    url: str
    via: str = ""
    started_ms: int
    address: str = ""
    request_headers: list[tuple[bytes, bytes]] = []
    version: str = "HTTP/1.1"
    status: int
    reason: str = ""
    headers: list[tuple[bytes, bytes]] = []
    body: bytes = b""
    truncated: str = ""
