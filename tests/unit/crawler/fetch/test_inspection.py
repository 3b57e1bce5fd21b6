"""Inspected answers over HTTP: what is no page keeps its body, and errors are read for the reason that they show."""

from __future__ import annotations

import gzip

import pytest
import zstandard

from crawler.fetch.jobs import REDIRECTED, Capture, RequestKind
from crawler.fetch.response_headers import KEPT_HEADERS
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.fetching import HTML, fetch, job_for
from tests.support.web.inspecting import FakeInspector
from tests.support.web.loopback import Reply, Web, page, redirect

URL = "http://a.test/x"
MAY_PASS = [("challenge", 200), ("challenge", 403), ("challenge", 503), ("blocked", 429), ("maintenance", 503)]
FINAL = [("blocked", 200), ("blocked", 403), ("login_wall", 401), ("parked", 200), ("maintenance", 200)]


def said(reason: str, status: int = 200, **headers: str) -> Reply:
    """An answer that the fake inspector finds to be no page."""
    return Reply(b"<!doctype html><p>no page: %s" % reason.encode(), status, HTML | headers)


@pytest.mark.parametrize(("reason", "status"), MAY_PASS + FINAL)
def test_what_is_no_page_has_its_reason_and_its_body(loopback: Web, reason: str, status: int) -> None:
    """With any status. A challenge may pass; others may with a status that may."""
    loopback.routes["a.test/x"] = said(reason, status)
    answer = fetch(loopback.target, URL, inspector=FakeInspector())
    assert (answer.outcome, answer.reason, answer.status) == (FetchOutcome.NO_PAGE, reason, status)
    assert answer.transient is ((reason, status) in MAY_PASS)
    assert b"no page" in zstandard.ZstdDecompressor().decompress(answer.packed) and answer.encoding == "utf-8"
    request = answer.requests[-1]
    assert (request.outcome, request.reason, request.status) == ("no_page", reason, status)


def test_a_header_may_say_it(loopback: Web) -> None:
    """Headers of networks in front of sites are kept and inspected, and Retry-After is read as of any failure."""
    loopback.routes["a.test/x"] = Reply(b"<p>wait", 403, HTML | {"CF-Mitigated": "challenge", "Retry-After": "7"})
    answer = fetch(loopback.target, URL, inspector=FakeInspector())
    assert (answer.reason, answer.retry_after_s) == ("challenge", 7.0)
    assert answer.headers["cf-mitigated"] == "challenge" and "cf-mitigated" in KEPT_HEADERS


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"<p>no page: blocked", 404, HTML), "http_404"),
        (Reply(b"<p>no page: soft_404", 500, HTML), "http_500"),  # a server that failed may be asked again
        (Reply(b"<p>oops", 503, HTML), "http_503"),
        (Reply(b"no page: blocked", 403, {"Content-Type": "application/json"}), "http_403"),
        (Reply(b"no gzip\0, no page: blocked", 403, HTML | {"Content-Encoding": "gzip"}), "http_403"),
        (Reply(b"", 403, HTML), "http_403"),
    ],
)
def test_other_errors_stay_what_they_are(loopback: Web, reply: Reply, reason: str) -> None:
    """An error without a reason in its body, or with a body that cannot be read, is a failure with its status."""
    loopback.routes["a.test/x"] = reply
    answer = fetch(loopback.target, URL, inspector=FakeInspector())
    assert (answer.outcome, answer.reason, answer.body, answer.packed) == (FetchOutcome.FAILED, reason, b"", b"")
    assert (answer.opt_out, answer.outline) == ([], b"")


def test_a_long_error_is_read_up_to_its_cap(loopback: Web) -> None:
    """An endless or inflating error costs no more than 64 KiB."""
    body = gzip.compress(b"<p>no page: challenge" + b" " * 5_000_000)
    loopback.routes["a.test/x"] = Reply(body, 503, HTML | {"Content-Encoding": "gzip"})
    answer = fetch(loopback.target, URL, inspector=FakeInspector())
    assert (answer.reason, len(answer.body)) == ("challenge", 65_536)


def test_an_opt_out_of_a_challenge_is_not_that_of_the_page(loopback: Web) -> None:
    """With crawl.obey_opt_out its body is not kept, but the page may be asked for again."""
    loopback.routes["a.test/x"] = said("challenge", 403, **{"X-Robots-Tag": "noindex"})
    answer = fetch(loopback.target, URL, inspector=FakeInspector(), obey_opt_out=True)
    assert (answer.outcome, answer.reason, answer.transient) == (FetchOutcome.NO_PAGE, "challenge", True)
    assert (answer.packed, answer.body, answer.opt_out) == (b"", b"", ["header:noindex"])


def test_a_probe_does_not_follow_a_redirect_to_another_path(loopback: Web) -> None:
    """Such a redirect says that there is no page; one to the same path on another scheme or the twin is followed."""
    loopback.routes |= {
        "a.test/x": redirect("/"),
        "a.test/": page("home"),
        "b.test/x": redirect("http://www.b.test/x/"),
        "www.b.test/x/": Reply(b"<!doctype html><h1>gone</h1>"),
    }
    elsewhere = fetch(loopback.target, job_for(URL, RequestKind.PROBE), inspector=FakeInspector())
    assert loopback.paths("a.test") == ["/x"]
    assert (elsewhere.outcome, elsewhere.reason, elsewhere.status) == (FetchOutcome.REFUSED, "", 302)
    assert elsewhere.requests[-1].outcome == REDIRECTED
    job = job_for("http://b.test/x", RequestKind.PROBE, has_outline=True)
    same = fetch(loopback.target, job, inspector=FakeInspector())
    assert (same.outcome, same.outline, same.packed) == (FetchOutcome.FETCHED, b"gone", b"")


def test_sitemaps_are_inspected_as_errors_only(loopback: Web) -> None:
    """A challenge in the place of a sitemap is one; robots.txt and tdmrep.json follow their own standards."""
    for kind in (RequestKind.SITEMAP, RequestKind.ROBOTS, RequestKind.TDMREP):
        loopback.routes["a.test/x"] = said("challenge", 403)
        answer = fetch(loopback.target, job_for(URL, kind), inspector=FakeInspector())
        assert answer.outcome is (FetchOutcome.NO_PAGE if kind is RequestKind.SITEMAP else FetchOutcome.FAILED)


def test_the_archive_gets_an_inspected_error(loopback: Web) -> None:
    """The body on the wire is captured as that of a page is."""
    loopback.routes["a.test/x"] = said("challenge", 403)
    captures: list[Capture] = []
    fetch(loopback.target, URL, tap=captures.append, inspector=FakeInspector())
    assert [(one.status, one.body) for one in captures] == [(403, said("challenge").body)]
