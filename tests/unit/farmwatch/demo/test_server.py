"""The loopback web, over real HTTP."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from farmwatch.demo.server import LoopbackWeb, Response

HOSTS = {
    "a.example": {
        "/": Response(body=b"front of a"),
        "/x?b=1&a=%20": Response(body=b"with query"),
        "/x": Response(body=b"without query"),
        "/moved": Response(302, {"Location": "/x"}),
        "/zipped": Response(
            headers={"Content-Encoding": "gzip", "Content-Type": "text/html"}, body=gzip.compress(b"z")
        ),
        "/slow": Response(503, {"Retry-After": "7"}, b"later", delay_s=0.05),
    },
    "b.example": {"/": Response(body=b"front of b")},
}


@pytest.fixture(scope="module")
def web() -> Iterator[LoopbackWeb]:
    with LoopbackWeb(HOSTS) as running:
        yield running


def _get(web: LoopbackWeb, host: str, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host, "User-Agent": "tester/1"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("host", "path", "body"),
    [
        ("a.example", "/", b"front of a"),
        ("b.example", "/", b"front of b"),
        ("A.EXAMPLE:8080", "/", b"front of a"),
        ("b.example.", "/", b"front of b"),
        ("a.example", "/x?b=1&a=%20", b"with query"),
        ("a.example", "/x?other=1", b"without query"),
        ("c.example", "/", b"nothing here\n"),
        ("b.example", "/x", b"nothing here\n"),
    ],
)
def test_a_page_is_found_by_host_and_path(web: LoopbackWeb, host: str, path: str, body: bytes) -> None:
    """The port of a host does not matter; a query that does not match exactly is ignored; what is unknown is 404."""
    response, got = _get(web, host, path)
    assert (response.status, got) == (404 if body.startswith(b"nothing") else 200, body)


def test_status_headers_and_encoded_body_are_sent_unchanged(web: LoopbackWeb) -> None:
    """A redirect has its Location, and a gzip body its header."""
    moved, _ = _get(web, "a.example", "/moved")
    assert (moved.status, moved.headers["Location"]) == (302, "/x")
    zipped, body = _get(web, "a.example", "/zipped")
    assert (zipped.headers["Content-Encoding"], gzip.decompress(body)) == ("gzip", b"z")
    assert _get(web, "a.example", "/", "HEAD")[1] == b""


def test_requests_are_logged_and_answers_delayed(web: LoopbackWeb) -> None:
    """A recorded request has host, path and start; a response takes its delay."""
    began = time.monotonic()
    assert _get(web, "a.example", "/slow?q=1")[0].headers["Retry-After"] == "7"
    assert time.monotonic() - began >= 0.05
    last = web.requests[-1]
    assert (last.host, last.path, last.started >= began) == ("a.example", "/slow?q=1", True)
