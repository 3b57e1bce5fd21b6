"""Heads of responses as servers send them, over real sockets: what browsers and curl take is taken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.jobs import FetchResult
from crawler.web.response_head import HEAD_CAP_BYTES, head_end, plain_head, read_head
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.fetching import Server, fetch_from

BODY = b"<html><p>words</p></html>"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
OK = b"HTTP/1.1 200 OK\r\n"
TYPE = b"Content-Type: text/html\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def sends(*pieces: bytes) -> Server:
    """A server that answers each request with the pieces, which arrive one by one, and keeps the connection open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.01)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return serve


def fetched(*pieces: bytes, **changes: Any) -> FetchResult:
    """The answer to one request."""
    return fetch_from(sends(*pieces), **changes)[0]


def page(status: bytes = OK, fields: bytes = b"", framing: bytes = LENGTH, body: bytes = BODY) -> bytes:
    """A response."""
    return status + TYPE + fields + framing + b"\r\n" + body


TAKEN = {
    "a line of 9 kB": page(fields=b"Content-Security-Policy: " + b"a " * 4500 + b"\r\n"),
    "a line of 60 kB": page(fields=b"X: " + b"a" * 60_000 + b"\r\n"),
    "the length twice": page(framing=LENGTH * 2),
    "the length in a list": page(framing=b"Content-Length: %d, %d\r\n" % (len(BODY), len(BODY))),
    "the length with a zero": page(framing=b"Content-Length: 0%d\r\n" % len(BODY) + LENGTH),
    "the length and a comma": page(framing=b"Content-Length: %d,\r\n" % len(BODY)),
    "the length and none": page(framing=b"Content-Length:\r\n" + LENGTH),
    "a length and chunks": page(framing=LENGTH + CHUNKED, body=CHUNKS),
    "chunks and a length": page(framing=CHUNKED + LENGTH, body=CHUNKS),
    "chunked twice": page(framing=CHUNKED * 2, body=CHUNKS),
    "identity": page(framing=b"Transfer-Encoding: identity\r\n" + LENGTH),
    "no transfer coding": page(framing=b"Transfer-Encoding: None\r\n" + LENGTH),
    "an empty transfer coding": page(framing=b"Transfer-Encoding:\r\n" + LENGTH),
    "identity twice": page(framing=b"Transfer-Encoding: identity, \r\nTransfer-Encoding: Identity\r\n" + LENGTH),
    "identity and chunks": page(framing=b"Transfer-Encoding: identity\r\n" + CHUNKED, body=CHUNKS),
    "a space before the colon": page(framing=LENGTH.replace(b":", b" :")),
    "a space in a name": page(fields=b"X-Powered By: shop\r\n"),
    "no name": page(fields=b": shop\r\n"),
    "no colon": page(fields=b"shop\r\n"),
    "letters in a name": page(fields="Größe: 5\r\n".encode()),
    "control characters": page(fields=b"X\x01Y: 5\r\nX-A: a\0b\rc\x01\r\n"),
    "brackets in a name": page(fields=b'X(Y): 5\r\n"X": 5\r\n'),
    "a folded line": page(fields=b"X-A: a\r\n b: c\r\n"),
    "lines of LF": page().replace(b"\r\n", b"\n"),
    "no reason": page(b"HTTP/1.1 200\r\n"),
    "spaces": page(b"HTTP/1.1  200  OK\r\n"),
    "another version": page(b"HTTP/2 200\r\n"),
    "lower case": page(b"http/1.1 200 OK\r\n"),
    "no space": page(b"HTTP/1.1 200OK\r\n"),
    "ICY": page(b"ICY 200 OK\r\n"),
    "empty lines first": b"\r\n\r\n" + page(),
    "interim responses": b"HTTP/1.1 103 Early Hints\r\nLi nk: </x>\r\n\r\nHTTP/1.1 100\r\n\r\n" + page(),
    "twenty interim responses": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20 + page(),
    "more than the body": page(body=BODY + b"and more"),
    "more than the chunks": page(framing=CHUNKED, body=CHUNKS + b"and more"),
    "two types": page(fields=b"Content-Type: text/html; charset=utf-8\r\n"),
    "no coding": page(fields=b"Content-Encoding: utf-8\r\n"),
}


@pytest.mark.parametrize("sent", TAKEN.values(), ids=TAKEN)
def test_odd_heads_are_taken(sent: bytes) -> None:
    """The page is fetched, and a second request gets it again, over a kept connection or a new one."""
    for answer in fetch_from(sends(sent), "http://a.test/x", "http://a.test/y"):
        assert (answer.outcome, answer.status, answer.body) == (FetchOutcome.FETCHED, 200, BODY), answer.reason


REFUSED = {
    "two lengths": page(framing=LENGTH + b"Content-Length: 5\r\n"),
    "two lengths in a list": page(framing=b"Content-Length: %d, 5\r\n" % len(BODY)),
    "a length of two numbers": page(framing=b"Content-Length: %d 5\r\n" % len(BODY)),
    "another transfer coding": page(framing=b"Transfer-Encoding: gzip\r\n" + LENGTH),
    "endless interim responses": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 21 + page(),
    "a length that is none": page(framing=b"Content-Length: -1\r\n"),
    "a line of 70 kB": page(fields=b"X: " + b"a" * 70_000 + b"\r\n"),
    "an endless head": OK + b"X: a\r\n" * (HEAD_CAP_BYTES // 6 + 1),
    "no head": BODY,
    "another protocol": b"SSH-2.0-OpenSSH_9.2p1\r\n",
    "no status": page(b"HTTP/1.1 OK\r\n"),
    "four digits": page(b"HTTP/1.1 2000 OK\r\n"),
}


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
def test_what_is_no_http_is_refused(sent: bytes) -> None:
    """Lengths that differ, heads without an end and other protocols are `bad_response`, before any time limit."""
    answer = fetched(sent, total_timeout_s=60.0, idle_timeout_s=60.0)
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.FAILED, "bad_response", False)


def test_the_headers_of_an_odd_head_count() -> None:
    """Lines around a bad one keep their values."""
    answer = fetched(page(fields=b"ETag: one\r\nX-Powered By: shop\r\nServer : s\r\nX-Robots-Tag: noai\r\n"))
    kept = {"content-type": "text/html", "etag": "one", "server": "s", "x-robots-tag": "noai"}
    assert answer.headers == kept and answer.opt_out == ["header:noai"]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_a_head_in_pieces(size: int) -> None:
    """A head may arrive in pieces of any size."""
    sent = b"\r\nHTTP/1.1 100 Continue\r\n\r\n" + page(fields=b"X-Powered By: shop\r\n", framing=LENGTH * 2)
    answer = fetched(*(sent[start : start + size] for start in range(0, len(sent), size)), total_timeout_s=60.0)
    assert (answer.outcome, answer.body) == (FetchOutcome.FETCHED, BODY)


def test_a_broken_chunk_ends_the_response() -> None:
    """A body that stops to be HTTP after its first bytes ends the job at once; it must not wait for ever."""
    start = page(framing=CHUNKED, body=b"5\r\n<html\r\n")
    answer = fetched(start, b"this is no chunk\r\n", total_timeout_s=60.0, idle_timeout_s=60.0)
    assert (answer.outcome, answer.reason) == (FetchOutcome.FAILED, "bad_response")


@given(st.lists(st.sampled_from([*map(bytes, TAKEN.values()), *REFUSED.values(), b"\0", b"\xff", b" "]), max_size=3))
def test_a_plain_head_is_read_as_the_sent_one(parts: list[bytes]) -> None:
    """The head that a parser gets is plain, and says the same; others raise ValueError."""
    sent = b"".join(parts)
    end = head_end(sent)
    if end is None:
        return
    try:
        plain = plain_head(sent[:end])
    except ValueError:
        return
    read = read_head(sent[:end])
    again = plain_head(plain.data)
    assert plain.status == read.status and again.data == plain.data
    assert set(read_head(plain.data).headers) <= {*read.headers, (b"Content-Length", b"%d" % len(BODY))}
