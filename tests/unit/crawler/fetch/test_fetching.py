"""One job, one answer, over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
import zstandard

from crawler.errors import NoContact
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult, RequestKind
from crawler.settings import CrawlSettings
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import settings_for
from tests.support.web.fetching import HTML, endless, fetch, fetch_all, fetch_from, job_for
from tests.support.web.loopback import Handler, Reply, Web, page, raw, redirect

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def test_a_page_as_sent(loopback: Web) -> None:
    """A fetched page has its decoded body, charset and kept headers.

    The request has the User-Agent.
    """
    body = "<html><p>Größe".encode()
    loopback.routes["a.test/x"] = Reply(
        gzip.compress(body),
        headers={"Content-Type": "Text/HTML", "Content-Encoding": "gzip", "ETag": '"1"', "Set-Cookie": "a=b"},
    )
    answer = fetch(loopback.target, "https://a.test/x")
    assert (answer.outcome, answer.status, answer.content_type) == (FetchOutcome.FETCHED, 200, "text/html")
    assert zstandard.ZstdDecompressor().decompress(answer.packed) == body == answer.body
    assert (answer.encoding, answer.truncated, answer.final_url) == ("utf-8", False, "https://a.test/x")
    assert answer.headers["etag"] == '"1"' and "set-cookie" not in answer.headers
    sent = loopback.seen[0].headers
    assert sent["User-Agent"].startswith("farmwatch/") and "(+https://crawler.example/about)" in sent["User-Agent"]
    assert sent["Host"] == "a.test" and "Cookie" not in sent and "Referer" not in sent


@pytest.mark.parametrize(
    ("start", "every_s", "limits", "unreachable"),
    [
        (HEAD + b"\r\n", 5.0, {"idle_timeout_s": 0.1}, False),
        (HEAD + b"\r\n", 0.02, {"total_timeout_s": 0.3}, False),
        (HEAD, 0.02, {"idle_timeout_s": 0.2, "total_timeout_s": 0.5}, True),
        (b"", 10.0, {"idle_timeout_s": 0.1}, True),
    ],
    ids=["silent body", "dripping body", "dripping head", "silent"],
)
def test_slow_servers_time_out(start: bytes, every_s: float, limits: dict[str, Any], unreachable: bool) -> None:
    """Silence and an endless slow body end in a timeout that may pass; without headers the site is unreachable."""
    (answer,) = fetch_from(endless(start, b"X" if start else b"", every_s), **limits)
    assert (answer.outcome, answer.reason, answer.transient, answer.body) == (FetchOutcome.FAILED, "timeout", True, b"")
    assert (answer.unreachable, answer.status) == (unreachable, 0 if unreachable else 200)
    assert answer.duration_ms < 2000


def test_redirects_of_the_site_are_followed(loopback: Web) -> None:
    """Redirects on the same host are followed, including relative ones, with the delay between the hops."""
    loopback.routes |= {
        "a.test/1": redirect("/2"),
        "a.test/2": redirect("https://a.test/3#x", 301),
        "a.test/3": page("end"),
    }
    answer = fetch(loopback.target, "http://a.test/1", delay_s=0.2)
    assert (answer.outcome, answer.final_url) == (FetchOutcome.FETCHED, "https://a.test/3")
    assert loopback.paths("a.test") == ["/1", "/2", "/3"] and not loopback.overlaps("a.test")
    assert all(gap > 0.1 for gap in loopback.gaps("a.test"))
    assert answer.duration_ms < 200, "the duration is that of the requests, without the waits between them"


@pytest.mark.parametrize(
    ("location", "outcome", "reason"),
    [
        ("http://other.test/", FetchOutcome.REFUSED, "redirect_offsite"),
        ("/private/x", FetchOutcome.REFUSED, "robots"),
        ("ftp://a.test/", FetchOutcome.FAILED, "bad_redirect"),
        ("http://[bad", FetchOutcome.FAILED, "bad_redirect"),
        ("http://a.1../", FetchOutcome.FAILED, "bad_redirect"),
        ("/" + "x" * 3000, FetchOutcome.FAILED, "bad_redirect"),
    ],
)
def test_redirects_that_are_not_followed(loopback: Web, location: str, outcome: FetchOutcome, reason: str) -> None:
    """Redirects to another site, a disallowed page, or an invalid or overlong URL are not requested."""
    loopback.routes |= {"a.test/go": redirect(location), "other.test/": page("x"), "a.test/private/x": page("x")}
    answer = fetch(loopback.target, "http://a.test/go")
    assert (answer.outcome, answer.reason) == (outcome, reason)
    assert [seen.path for seen in loopback.seen] == ["/go"]


@pytest.mark.parametrize(
    ("location", "path"),
    [(b"/caf\xe9", "/caf%C3%A9"), (b"/caf\xc3\xa9", "/caf%C3%A9"), (b"/" + b"x" * 1500, "/" + "x" * 1500)],
)
def test_unusual_locations_are_followed(loopback: Web, location: bytes, path: str) -> None:
    """A Location with bytes beyond ASCII is decoded; one beyond the cap for kept headers is not cut."""
    reply = b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    loopback.routes["a.test/go"] = raw(reply)
    assert fetch(loopback.target, "http://a.test/go").final_url == f"http://a.test{path}"


def test_the_www_twin_is_followed_under_its_own_robots(loopback: Web) -> None:
    """A redirect to the www twin is followed if the twin's robots.txt, requested once, allows it."""
    loopback.routes |= {
        "a.test/yes": redirect("https://www.a.test/yes"),
        "a.test/no": redirect("https://www.a.test/no"),
        "www.a.test/yes": page("here"),
        "www.a.test/no": page("never"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /no"),
    }
    urls = [f"https://a.test/{path}" for path in ("yes", "no", "yes")]
    yes, no, _ = fetch_all(settings_for(loopback.target), *urls)
    assert (yes.outcome, yes.final_url) == (FetchOutcome.FETCHED, "https://www.a.test/yes")
    assert (no.outcome, no.reason) == (FetchOutcome.REFUSED, "robots")
    assert loopback.paths("www.a.test") == ["/robots.txt", "/yes", "/yes"]


def test_the_twins_crawl_delay_is_kept(loopback: Web) -> None:
    """The hop to the www twin waits the larger of both delays after its robots.txt, or is refused beyond the cap."""
    loopback.routes |= {
        "a.test/x": redirect("https://www.a.test/x"),
        "www.a.test/x": page("here"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nCrawl-delay: 0.3"),
        "b.test/x": redirect("https://www.b.test/x"),
        "www.b.test/robots.txt": Reply(b"User-agent: *\nCrawl-delay: 86401"),
    }
    assert fetch(loopback.target, "https://a.test/x").outcome is FetchOutcome.FETCHED
    assert loopback.paths("www.a.test") == ["/robots.txt", "/x"] and loopback.gaps("www.a.test")[0] > 0.2
    answer = fetch(loopback.target, "https://b.test/x")
    assert (answer.outcome, answer.reason) == (FetchOutcome.REFUSED, "crawl_delay")
    assert loopback.paths("www.b.test") == ["/robots.txt"]


def test_an_answer_lists_every_request(loopback: Web) -> None:
    """An answer lists each HTTP request of its job with the outcome: hops, and the twin's robots.txt."""
    loopback.routes |= {
        "a.test/1": redirect("/2"),
        "a.test/2": redirect("https://www.a.test/3"),
        "www.a.test/3": page("end"),
        "a.test/off": redirect("http://other.test/"),
        "a.test/loop": redirect("/loop"),
    }

    def listed(answer: FetchResult) -> list[tuple[str, str]]:
        return [(request.kind.value, request.outcome) for request in answer.requests]

    answer = fetch(loopback.target, "https://a.test/1")
    assert listed(answer) == [("page", "redirected")] * 2 + [("robots", "failed"), ("page", "fetched")]
    assert answer.requests[-1].body_bytes == len(answer.body) and all(r.duration_s > 0 for r in answer.requests)
    assert listed(fetch(loopback.target, "http://a.test/off")) == [("page", "redirected")]
    assert listed(fetch(loopback.target, "http://a.test/gone")) == [("page", "failed")]
    answer = fetch(loopback.target, "http://a.test/loop", delay_s=0.001)
    assert listed(answer) == [("page", "redirected")] * 11 and answer.reason == "too_many_redirects"


@pytest.mark.parametrize(("address", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_allow_private_lifts_the_guard_for_both_families(address: str, host: str) -> None:
    """Without the guard, loopback is fetched over IPv4 and IPv6 alike; with it, neither is."""

    async def main() -> list[FetchResult]:
        async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + b"Content-Length: 6\r\n\r\n<html>")
            writer.close()

        try:
            server = await asyncio.start_server(reply, address, 0)
        except OSError:
            pytest.skip(f"this machine has no {address}")
        url = f"http://{host}:{server.sockets[0].getsockname()[1]}/"
        settings = [settings_for("", resolve_to={}, allow_private=allowed) for allowed in (True, False)]
        async with server:
            return [(await asyncio.to_thread(fetch_all, each, url))[0] for each in settings]

    reached, refused = asyncio.run(main())
    assert (reached.outcome, reached.address) == (FetchOutcome.FETCHED, address)
    assert (refused.outcome, refused.reason) == (FetchOutcome.REFUSED, "private_address")


@pytest.mark.parametrize(
    ("reply", "outcome", "reason", "transient"),
    [
        (Reply(b"x", 404), FetchOutcome.FAILED, "http_404", False),
        (Reply(b"x", 500), FetchOutcome.FAILED, "http_500", True),
        (Reply(b"x", 429, {"Retry-After": "7"}), FetchOutcome.FAILED, "http_429", True),
        (Reply(b"x", 304), FetchOutcome.FAILED, "http_304", False),
        (Reply(b"%PDF-1.4", headers={"Content-Type": "application/pdf"}), FetchOutcome.REFUSED, "content_type", False),
        (Reply(b"\0\1\2\3" * 300, headers=HTML), FetchOutcome.REFUSED, "content_type", False),
        (Reply(b"\0x" * 50, headers=HTML | {"Content-Encoding": "gzip"}), FetchOutcome.FAILED, "bad_encoding", False),
        (Reply(b"\0x", headers=HTML | {"Content-Encoding": "zstd"}), FetchOutcome.FAILED, "bad_encoding", False),
        (raw(b"<html>no header at all</html>"), FetchOutcome.FAILED, "bad_response", False),
        (raw(HEAD + b"Content-Length: 99\r\n\r\n<html>"), FetchOutcome.FAILED, "connection", True),
        (Reply(b""), FetchOutcome.FETCHED, "", False),
    ],
)  # fmt: skip
def test_statuses_and_types(
    loopback: Web, reply: Reply | Handler, outcome: FetchOutcome, reason: str, transient: bool
) -> None:
    """Each kind of response has its outcome and reason; only overload, server errors and cut bodies may pass."""
    loopback.routes["a.test/x"] = reply
    answer = fetch(loopback.target, "http://a.test/x")
    assert (answer.outcome, answer.reason, answer.transient) == (outcome, reason, transient)
    assert answer.retry_after_s == (7.0 if answer.status == 429 else None)
    assert answer.body == b"" and not answer.unreachable


def test_opt_outs_are_recorded_and_obeyed_on_request(loopback: Web) -> None:
    """A page that opts out is fetched with its signals, or refused without a body if the settings require it."""
    headers = HTML | {"X-Robots-Tag": "noai"}
    loopback.routes["a.test/x"] = Reply(b"<html><meta name=robots content=nofollow>", headers=headers)
    answer = fetch(loopback.target, "http://a.test/x")
    assert (answer.outcome, answer.opt_out) == (FetchOutcome.FETCHED, ["header:noai", "meta:nofollow"])
    answer = fetch(loopback.target, "http://a.test/x", obey_opt_out=True)
    assert (answer.outcome, answer.reason, answer.packed, answer.body) == (FetchOutcome.REFUSED, "opt_out", b"", b"")
    assert answer.opt_out == ["header:noai", "meta:nofollow"]


def test_preferences_of_headers_and_of_the_twin_are_recorded_and_obeyed_on_request(loopback: Web) -> None:
    """A page has the preferences of its headers, and of the robots.txt of the twin that it redirects to."""
    loopback.routes |= {
        "a.test/x": redirect("http://www.a.test/x"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nContent-Signal: ai-train=no\n"),
        "www.a.test/x": Reply(b"<html>", headers=HTML | {"Content-Usage": "train-ai=y"}),
    }
    said = ["header:content-usage:train-ai=y", "robots.txt:content-signal:ai-train=no"]
    answer = fetch(loopback.target, "http://a.test/x")
    assert (answer.outcome, answer.opt_out) == (FetchOutcome.FETCHED, said)
    answer = fetch(loopback.target, "http://a.test/x", obey_preferences=True)
    assert (answer.outcome, answer.reason, answer.opt_out) == (FetchOutcome.REFUSED, "opt_out", said[1:])
    loopback.routes["a.test/y"] = Reply(b"<html>", headers=HTML | {"Content-Usage": "train-ai=n"})
    answer = fetch(loopback.target, "http://a.test/y", obey_preferences=True)
    assert (answer.outcome, answer.reason, answer.body) == (FetchOutcome.REFUSED, "opt_out", b"")


def test_a_long_robots_header_keeps_its_end(loopback: Web) -> None:
    """An opt-out after a thousand characters of an X-Robots-Tag counts, although the stored header is cut."""
    tags = f"otherbot: {'noarchive, ' * 200}\r\nX-Robots-Tag: noai"
    loopback.routes["a.test/"] = raw(HEAD + f"X-Robots-Tag: {tags}\r\n\r\n<html>".encode())
    answer = fetch(loopback.target, "http://a.test/")
    assert answer.opt_out == ["header:noai"] and len(answer.headers["x-robots-tag"]) <= 1000


def test_a_table_of_addresses_allows_no_other(loopback: Web) -> None:
    """Under resolve_to the guard refuses IP literals too: only addresses of the table are reached."""
    loopback.routes["a.test/robots.txt"] = redirect("http://169.254.169.254/latest/meta-data/")
    answer = fetch(loopback.target, job_for("http://a.test/robots.txt", RequestKind.ROBOTS))
    assert (answer.outcome, answer.reason) == (FetchOutcome.REFUSED, "private_address")


def test_no_fetcher_without_a_contact() -> None:
    """A fetcher without a contact is refused."""
    with pytest.raises(NoContact):
        Fetcher(CrawlSettings())
