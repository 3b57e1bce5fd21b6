"""Requests and responses on the wire: conditions, limits, lies and TLS, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.fetch.exchange import ERROR_CAP_BYTES, TDMREP_CAP_BYTES, _tls_reason
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import Capture, FetchOutcome, FetchResult, Job, RequestKind
from crawler.robots.rules import RobotsRules
from tests.support.crawl_driver import settings_for
from tests.support.loopback import Reply, Web, raw, redirect

HTML = {"Content-Type": "text/html"}
OPEN = RobotsRules(b"", "farmwatch")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def loopback() -> Iterator[Web]:
    """A web on loopback."""
    with Web() as served:
        yield served


def fetch(
    target: str,
    url: str,
    kind: RequestKind = RequestKind.PAGE,
    *,
    etag: str = "",
    last_modified: str = "",
    tap: Callable[[Capture], None] | None = None,
    **changes: Any,
) -> FetchResult:
    """Fetch one URL."""

    async def main() -> FetchResult:
        settings = settings_for(target, **changes)
        async with Fetcher(settings, tap=tap) as fetcher:
            job = Job(kind, "a.test", url, settings.delay_s, OPEN, etag=etag, last_modified=last_modified)
            return await fetcher.fetch(job)

    return asyncio.run(main())


def fetch_from(handler: Handler, *, times: int = 1, **changes: Any) -> list[FetchResult]:
    """Fetch from a server that does as it likes, `times` in turn with one fetcher."""

    async def main() -> list[FetchResult]:
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        settings = settings_for(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", **changes)
        async with server, Fetcher(settings) as fetcher:
            job = Job(RequestKind.PAGE, "a.test", "http://a.test/x", settings.delay_s, OPEN)
            return [await fetcher.fetch(job) for _ in range(times)]

    return asyncio.run(main())


def test_a_page_that_did_not_change(loopback: Web) -> None:
    """With an ETag and a date of the last visit the request is conditional, and a 304 is an outcome of its own."""
    loopback.routes["a.test/x"] = Reply(status=304, headers={"ETag": '"1"', "X-Robots-Tag": "noai"})
    answer = fetch(loopback.target, "http://a.test/x", etag='"1"', last_modified="Tue, 01 Sep 2026 10:00:00 GMT")
    assert (answer.outcome, answer.status, answer.body, answer.packed) == (FetchOutcome.UNCHANGED, 304, b"", b"")
    assert answer.opt_out == ["header:noai"] and answer.requests[-1].outcome == "unchanged"
    sent = loopback.seen[0].headers
    assert sent["If-None-Match"] == '"1"' and sent["If-Modified-Since"] == "Tue, 01 Sep 2026 10:00:00 GMT"


def test_a_304_that_nobody_asked_for(loopback: Web) -> None:
    """Without a condition a 304 is a failure: there is no page that did not change."""
    loopback.routes["a.test/x"] = Reply(status=304)
    answer = fetch(loopback.target, "http://a.test/x")
    assert (answer.outcome, answer.reason) == (FetchOutcome.FAILED, "http_304")
    assert "If-None-Match" not in loopback.seen[0].headers and "If-Modified-Since" not in loopback.seen[0].headers


def test_conditions_are_for_the_url_itself(loopback: Web) -> None:
    """Where the URL leads elsewhere the condition is not repeated there, and a 304 from there does not count."""
    loopback.routes |= {"a.test/x": redirect("/y"), "a.test/y": Reply(status=304)}
    answer = fetch(loopback.target, "http://a.test/x", etag='"1"')
    assert (answer.outcome, answer.reason) == (FetchOutcome.FAILED, "http_304")
    assert ["If-None-Match" in seen.headers for seen in loopback.seen] == [True, False]


def test_tdmrep_is_read_up_to_its_cap(loopback: Web) -> None:
    """/.well-known/tdmrep.json is fetched as it is, whatever its type, up to 64 KiB."""
    loopback.routes["a.test/ok"] = Reply(b'[{"location": "/", "tdm-reservation": 1}]', headers={"Content-Type": "x/y"})
    answer = fetch(loopback.target, "http://a.test/ok", RequestKind.TDMREP)
    assert answer.outcome is FetchOutcome.FETCHED and answer.body.startswith(b'[{"location"') and not answer.truncated
    loopback.routes["a.test/big"] = Reply(b" " * (TDMREP_CAP_BYTES + 1))
    answer = fetch(loopback.target, "http://a.test/big", RequestKind.TDMREP)
    assert (len(answer.body), answer.truncated) == (TDMREP_CAP_BYTES, True)


def test_the_address_is_told(loopback: Web) -> None:
    """An answer names the address that its last response came from, also over a kept connection."""
    loopback.routes["a.test/x"] = redirect("/y")
    loopback.routes["a.test/y"] = Reply(b"<html>")
    answer = fetch(loopback.target, "http://a.test/x")
    assert (answer.outcome, answer.address) == (FetchOutcome.FETCHED, "127.0.0.1")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(5000)) + b"\r\n<html>",
        b"HTTP/1.1 200 OK\r\nX-Giant: " + b"y" * 1_000_000 + b"\r\n\r\n<html>",
        b"HTTP/1.1 200 " + b"O" * 100_000 + b"\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\n" + b"N" * 100_000 + b": x\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6x\r\n\r\n<html>",
        b"<html>no header at all</html>",
    ],
    ids=["flood", "giant", "status line", "name", "two lengths", "negative", "no number", "no HTTP"],
)
def test_headers_beyond_all_bounds(loopback: Web, head: bytes) -> None:
    """A flood of headers, giant ones and nonsense end the request as a bad response, which is not tried again."""
    loopback.routes["a.test/x"] = raw(head)
    answer = fetch(loopback.target, "http://a.test/x")
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.FAILED, "bad_response", False)


async def drip_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the bytes of a head one by one, for ever."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD)
    try:
        while True:
            writer.write(b"X")
            await writer.drain()
            await asyncio.sleep(0.02)
    except ConnectionError:
        writer.close()


def test_a_head_that_drips_is_ended_by_the_total() -> None:
    """Each byte starts the time of silence anew; the whole request has a limit of its own."""
    (answer,) = fetch_from(drip_head, idle_timeout_s=0.2, total_timeout_s=0.5)
    assert (answer.reason, answer.unreachable, answer.transient) == ("timeout", True, True)
    assert 400 <= answer.duration_ms < 2000


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity"])
def test_a_stream_that_yields_nothing_is_cut(encoding: str) -> None:
    """What is sent is capped like what is kept: empty gzip members and empty brotli blocks end, too."""
    pieces = {
        "gzip": gzip.compress(b"<html>") + gzip.compress(b"") * 3000,
        "br": b"\x0b\x02\x80<html>" + b"\x06" * 60_000,  # metadata blocks of no length
        "identity": b"<html>" + b" " * 60_000,
    }
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + f"Content-Encoding: {encoding}\r\n\r\n".encode())
        try:
            while True:
                writer.write(pieces[encoding])
                await writer.drain()
                sent += len(pieces[encoding])
        except ConnectionError:
            writer.close()

    (answer,) = fetch_from(endless, body_bytes=100_000, total_timeout_s=20.0)
    assert answer.truncated or answer.reason == "bad_encoding"
    assert len(answer.body) <= 100_000 and sent < 20_000_000


def test_more_than_the_length_says(loopback: Web) -> None:
    """What follows a body beyond its Content-Length is not part of it, nor the answer to the next request."""
    extra = b"<html>1" + b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html>2"
    served = 0

    async def lying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        while True:
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                writer.close()
                return
            served += 1
            writer.write(HEAD + b"Content-Length: 7\r\n\r\n" + extra)

    answers = fetch_from(lying, times=3)
    assert [answer.body for answer in answers] == [b"<html>1"] * 3 and served == 3


def test_a_kept_connection_that_was_closed() -> None:
    """A request lost with a kept connection is made once more, after the delay; the server never sees two at once."""
    starts: list[float] = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for turn in range(2):
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            starts.append(asyncio.get_running_loop().time())
            if turn == 0:
                writer.write(HEAD + b"Content-Length: 6\r\n\r\n<html>")
        writer.close()

    first, second = fetch_from(once, times=2, delay_s=0.2)
    assert first.outcome is second.outcome is FetchOutcome.FETCHED
    assert [request.outcome for request in second.requests] == ["failed", "fetched"]
    assert len(starts) == 3 and starts[2] - starts[1] > 0.15


def test_a_tap_gets_the_exchange_as_sent(loopback: Web) -> None:
    """Each response is told: the redirect, then the page with its body as sent, raw headers, and what we sent."""
    body = gzip.compress(b"<html>")
    loopback.routes |= {
        "a.test/x": redirect("/y"),
        "a.test/y": Reply(body, headers=HTML | {"Content-Encoding": "gzip", "X-Own": "Gr\u00fc\u00dfe"}),
    }
    taped: list[Capture] = []
    answer = fetch(loopback.target, "http://a.test/x", tap=taped.append)
    assert answer.body == b"<html>"
    there, page = taped
    assert (there.url, there.via, there.status) == ("http://a.test/x", "", 302)
    assert (page.url, page.via, page.status, page.reason) == ("http://a.test/y", "http://a.test/x", 200, "OK")
    assert (page.body, page.truncated, page.address, page.version) == (body, "", "127.0.0.1", "HTTP/1.1")
    assert (b"X-Own", "Gr\u00fc\u00dfe".encode()) in page.headers
    sent = dict(page.request_headers)
    assert sent[b"Host"] == b"a.test" and sent[b"User-Agent"].startswith(b"farmwatch/")


@pytest.mark.parametrize("status", [404, 500, 302])
def test_a_tap_gets_bounded_bodies_of_errors(loopback: Web, status: int) -> None:
    """Bodies of errors and redirects are read for a tap, up to a small cap; the answer does not change by it."""
    body = b"e" * (ERROR_CAP_BYTES + 1)
    loopback.routes["a.test/x"] = Reply(body, status, {"Location": "http://other.test/"} if status == 302 else HTML)
    taped: list[Capture] = []
    answer = fetch(loopback.target, "http://a.test/x", tap=taped.append)
    assert (answer.status, answer.reason) == (status, "redirect_offsite" if status == 302 else f"http_{status}")
    assert len(taped[0].body) == ERROR_CAP_BYTES and taped[0].truncated == "length"


def test_a_tap_is_told_why_a_body_ends(loopback: Web) -> None:
    """The words of WARC for a body cut by a cap, by time, and by a lost connection; a tap that fails loses no page."""

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        writer.write(HEAD + b"Content-Length: 999999\r\n\r\n<html>")
        await writer.drain()
        if path == b"/slow":
            await reader.read()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(cut, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = settings_for(target, idle_timeout_s=0.2)
        async with server, Fetcher(settings, tap=taped.append) as fetcher:
            for path in ("slow", "cut"):
                await fetcher.fetch(Job(RequestKind.PAGE, "a.test", f"http://a.test/{path}", 0.01, OPEN))

    taped: list[Capture] = []
    asyncio.run(main())
    loopback.routes |= {
        "a.test/big": Reply(b"<html>" * 100),
        "a.test/pdf": Reply(b"%PDF", headers={"Content-Type": "a/b"}),
    }
    fetch(loopback.target, "http://a.test/big", tap=taped.append, body_bytes=50)
    fetch(loopback.target, "http://a.test/pdf", tap=taped.append)
    assert [(capture.truncated, capture.body[:6]) for capture in taped] == [
        ("time", b"<html>"),
        ("disconnect", b"<html>"),
        ("length", b"<html>"),
        ("length", b""),
    ]

    def broken(_: Capture) -> None:
        raise OSError("no space")

    assert fetch(loopback.target, "http://a.test/big", tap=broken).outcome is FetchOutcome.FETCHED


@pytest.mark.parametrize(
    ("code", "reason"), [(9, "tls_expired"), (10, "tls_expired"), (18, "tls_untrusted"), (20, "tls_untrusted"),
                         (62, "tls_name"), (64, "tls_name"), (7, "tls"), (0, "tls")],
)  # fmt: skip
def test_what_is_wrong_with_a_certificate(code: int, reason: str) -> None:
    """OpenSSL's numbers for expired, misnamed and untrusted certificates have words; all else is `tls`."""
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code = code
    assert _tls_reason(error) == reason and _tls_reason(ValueError()) == "tls"


def test_inflating_many_members_is_bounded(loopback: Web) -> None:
    """A body of a hundred thousand gzip members is cut, and does not hold the loop."""
    empty = zlib.compressobj(9, zlib.DEFLATED, 31)
    member = empty.compress(b"") + empty.flush()
    loopback.routes["a.test/x"] = Reply(
        gzip.compress(b"<html>") + member * 50_000, headers=HTML | {"Content-Encoding": "gzip"}
    )
    answer = fetch(loopback.target, "http://a.test/x", total_timeout_s=20.0)
    assert (answer.outcome, answer.body, answer.truncated) == (FetchOutcome.FETCHED, b"<html>", True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody trusts, with its key."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    subprocess.run([*command, "-keyout", str(path), "-out", str(path) + ".crt"], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(str(path) + ".crt").read_bytes())
    return path


@pytest.mark.parametrize(("secure", "reason"), [(True, "tls_untrusted"), (False, "tls")])
def test_tls_errors_are_a_status(certificate: Path, secure: bool, reason: str) -> None:
    """A certificate that is not trusted, and a server that speaks no TLS, end as failures that are not tried again."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(100)
        writer.close()

    async def main() -> FetchResult:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        server = await asyncio.start_server(plain, "127.0.0.1", 0, ssl=context if secure else None)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        settings = settings_for("127.0.0.1:1", resolve_to={})
        async with server, Fetcher(settings) as fetcher:
            return await fetcher.fetch(Job(RequestKind.PAGE, "127.0.0.1", url, 0.01, OPEN))

    answer = asyncio.run(main())
    assert (answer.outcome, answer.reason, answer.unreachable, answer.transient) == (
        FetchOutcome.FAILED,
        reason,
        True,
        False,
    )
