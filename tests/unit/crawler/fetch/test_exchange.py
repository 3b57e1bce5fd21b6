"""Requests and responses on the wire: conditions, limits and TLS, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from pathlib import Path

import pytest
import zstandard

from crawler.fetch.exchange import TDMREP_CAP_BYTES, tls_reason
from crawler.fetch.jobs import Capture, FetchResult, RequestKind
from crawler.fetch.page_checks import ERROR_CAP_BYTES
from crawler.web.ads_txt import ADS_TXT_CAP_BYTES, StatedOwner
from stream.schema.vocabulary import FetchOutcome
from tests.hostile.internet import Certificates
from tests.support.web.crawl_driver import settings_for
from tests.support.web.fetching import HTML, endless, fetch, fetch_all, fetch_from, job_for
from tests.support.web.loopback import Reply, Web, redirect

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
DATE = "Tue, 01 Sep 2026 10:00:00 GMT"


def test_a_page_that_did_not_change(loopback: Web) -> None:
    """With the ETag and date of the last visit the request is conditional, and a 304 has its own outcome."""
    loopback.routes["a.test/x"] = Reply(status=304, headers={"ETag": '"1"', "X-Robots-Tag": "noai"})
    answer = fetch(loopback.target, job_for("http://a.test/x", etag='"1"', last_modified=DATE))
    assert (answer.outcome, answer.status, answer.body, answer.packed) == (FetchOutcome.UNCHANGED, 304, b"", b"")
    assert answer.opt_out == ["header:noai"] and answer.requests[-1].outcome == "unchanged"
    sent = loopback.seen[0].headers
    assert sent["If-None-Match"] == '"1"' and sent["If-Modified-Since"] == DATE


def test_conditions_are_for_the_url_itself(loopback: Web) -> None:
    """A redirect target is requested without the condition, and a 304 from there does not count."""
    loopback.routes |= {"a.test/x": redirect("/y"), "a.test/y": Reply(status=304)}
    answer = fetch(loopback.target, job_for("http://a.test/x", etag='"1"'))
    assert (answer.outcome, answer.reason) == (FetchOutcome.FAILED, "http_304")
    assert ["If-None-Match" in seen.headers for seen in loopback.seen] == [True, False]


def test_tdmrep_is_read_up_to_its_cap(loopback: Web) -> None:
    """/.well-known/tdmrep.json is fetched with any content type, up to 64 KiB."""
    loopback.routes["a.test/ok"] = Reply(b'[{"location": "/", "tdm-reservation": 1}]', headers={"Content-Type": "x/y"})
    answer = fetch(loopback.target, job_for("http://a.test/ok", RequestKind.TDMREP))
    assert answer.outcome is FetchOutcome.FETCHED and answer.body.startswith(b'[{"location"') and not answer.truncated
    loopback.routes["a.test/big"] = Reply(b" " * (TDMREP_CAP_BYTES + 1))
    answer = fetch(loopback.target, job_for("http://a.test/big", RequestKind.TDMREP))
    assert (len(answer.body), answer.truncated) == (TDMREP_CAP_BYTES, True)


def test_an_endless_ads_txt_is_read_up_to_its_cap() -> None:
    """Of a file that never ends, half a MiB is kept, and little more is read; the lines so far count."""
    sent: list[int] = []
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nOWNERDOMAIN=owner.example\n"
    more = b"google.com, pub-1234567890123456, RESELLER\n" * 4096
    (answer,) = fetch_from(endless(head, more, sent=sent), job_for("http://a.test/ads.txt", RequestKind.ADS_TXT))
    assert answer.outcome is FetchOutcome.FETCHED and (len(answer.body), answer.truncated) == (ADS_TXT_CAP_BYTES, True)
    assert 0 < sum(sent) < 16 * ADS_TXT_CAP_BYTES
    assert StatedOwner.read(answer.body) == StatedOwner("owner.example")


def test_ads_txt_is_taken_from_the_site_or_its_twin_alone(loopback: Web) -> None:
    """A redirect within the domain counts as ads.txt 1.1 says; one to another site is not followed."""
    stated = Reply(b"OWNERDOMAIN=owner.example", headers={"Content-Type": "text/plain"})
    loopback.routes |= {
        "a.test/ads.txt": redirect("http://www.a.test/ads.txt"),
        "www.a.test/ads.txt": stated,
        "b.test/ads.txt": redirect("http://manager.test/b.test"),
        "manager.test/b.test": stated,
    }
    jobs = [job_for(f"http://{site}/ads.txt", RequestKind.ADS_TXT) for site in ("a.test", "b.test")]
    taken, refused = fetch_all(settings_for(loopback.target), *jobs)
    assert StatedOwner.read(taken.body).domain == "owner.example"
    assert (refused.outcome, refused.reason, refused.body) == (FetchOutcome.REFUSED, "redirect_offsite", b"")
    assert "manager.test" not in {seen.host for seen in loopback.seen}


def test_the_encoding_of_robots_txt(loopback: Web) -> None:
    """Rules that are text as sent count, whatever the header says; a coding that is not read gives no rules."""
    rules = b"User-agent: *\nDisallow: /private\n"
    for said, body, outcome in (
        ("utf-8", rules, FetchOutcome.FETCHED),
        ("br", rules, FetchOutcome.FETCHED),
        ("zstd", zstandard.compress(rules), FetchOutcome.FAILED),
        ("none", gzip.compress(rules), FetchOutcome.FAILED),
    ):
        loopback.routes["a.test/robots.txt"] = Reply(body, headers={"Content-Encoding": said})
        answer = fetch(loopback.target, job_for("http://a.test/robots.txt", RequestKind.ROBOTS))
        assert (answer.outcome, answer.body) == (outcome, rules if outcome is FetchOutcome.FETCHED else b"")


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 2000


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"<html>") + gzip.compress(b"") * 3000),
        (b"Content-Encoding: br\r\n\r\n\x0b\x02\x80<html>", b"\x06" * 60_000),  # metadata blocks of no length
        (b"\r\n", b"<html>" + b" " * 60_000),
        (b"Transfer-Encoding: chunked\r\n\r\n", (b"1;" + b"x" * 2000 + b"\r\n \r\n") * 50),
        (None, INTERIM),
    ],
    ids=["gzip", "br", "identity", "chunk extensions", "interim answers"],
)
def test_an_endless_stream_is_cut(start: bytes | None, piece: bytes) -> None:
    """A cap bounds all bytes on the wire: empty gzip members, chunk extensions and interim responses end."""
    sent: list[int] = []
    server = endless(b"" if start is None else HEAD + start, piece, sent=sent)
    (answer,) = fetch_from(server, body_bytes=100_000, total_timeout_s=300.0)
    assert answer.truncated or answer.reason in ("bad_encoding", "bad_response")
    assert not answer.transient and len(answer.body) <= 100_000 and sum(sent) < 20_000_000


def test_a_kept_connection_that_was_closed() -> None:
    """A request lost with a kept-alive connection is repeated once, after the delay, and never in parallel."""
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

    first, second = fetch_from(once, *["http://a.test/x"] * 2, delay_s=0.2)
    assert first.outcome is second.outcome is FetchOutcome.FETCHED
    assert [request.outcome for request in second.requests] == ["failed", "fetched"]
    assert len(starts) == 3 and starts[2] - starts[1] > 0.15


def test_a_tap_gets_the_exchange_as_sent(loopback: Web) -> None:
    """A tap gets each response: the redirect, then the page with its body as sent, raw headers and the request."""
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
    """For a tap, bodies of errors and redirects are read up to a small cap; the result stays the same."""
    body = b"e" * (ERROR_CAP_BYTES + 1)
    loopback.routes["a.test/x"] = Reply(body, status, {"Location": "http://other.test/"} if status == 302 else HTML)
    taped: list[Capture] = []
    answer = fetch(loopback.target, "http://a.test/x", tap=taped.append)
    assert (answer.status, answer.reason) == (status, "redirect_offsite" if status == 302 else f"http_{status}")
    assert len(taped[0].body) == ERROR_CAP_BYTES and taped[0].truncated == "length"


def test_a_tap_gets_why_a_body_ends(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body cut by a cap, by time or by a lost connection has WARC's word for it; a failing tap loses no page."""

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        head = HEAD.replace(b"200 OK", b"404 None") if b"gone" in path else HEAD
        writer.write(head + b"Content-Length: 999999\r\n\r\n<html>")
        await writer.drain()
        if path == b"/slow":
            await reader.read()
        writer.close()

    taped: list[Capture] = []
    urls = [f"http://a.test/{path}" for path in ("slow", "cut", "gone")]
    answers = fetch_from(cut, *urls, tap=taped.append, idle_timeout_s=0.2)
    monkeypatch.setattr("crawler.fetch.exchange._ERROR_S", 0.2)  # an error that drips, longer than a tap waits
    answers += fetch_from(endless(b"HTTP/1.1 404 None\r\n\r\n", b"<html>", 0.05), tap=taped.append)
    assert [answer.reason for answer in answers] == ["timeout", "connection", "http_404", "http_404"]
    assert answers[-1].duration_ms < 2000, "less than the time of a whole request"
    loopback.routes |= {
        "a.test/big": Reply(b"<html>" * 100),
        "a.test/pdf": Reply(b"%PDF", headers={"Content-Type": "a/b"}),
    }
    fetch(loopback.target, "http://a.test/big", tap=taped.append, body_bytes=50)
    fetch(loopback.target, "http://a.test/pdf", tap=taped.append)
    assert [(capture.truncated, capture.body[:6]) for capture in taped] == [
        ("time", b"<html>"),
        ("disconnect", b"<html>"),
        ("disconnect", b"<html>"),
        ("time", b"<html>"),
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
    """Expired, misnamed and untrusted certificates have their own reasons; other TLS errors are `tls`."""
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code = code
    assert tls_reason(error) == reason and tls_reason(ValueError()) == "tls"


@pytest.mark.parametrize(("secure", "reason"), [(True, "tls_untrusted"), (False, "tls")])
def test_tls_errors_are_a_status(tmp_path: Path, secure: bool, reason: str) -> None:
    """An untrusted certificate, or a server without TLS, ends as a permanent failure."""
    if secure and not Certificates.is_there():
        pytest.skip("no openssl on the PATH to make certificates with")
    context = Certificates(tmp_path / "tls").server({"localhost": "self-signed"}) if secure else None

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(100)
        writer.close()

    async def main() -> FetchResult:
        server = await asyncio.start_server(plain, "127.0.0.1", 0, ssl=context)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with server:
            return (await asyncio.to_thread(fetch_all, settings_for("", resolve_to={}), url))[0]

    answer = asyncio.run(main())
    assert (answer.outcome, answer.reason) == (FetchOutcome.FAILED, reason)
    assert answer.unreachable and not answer.transient
