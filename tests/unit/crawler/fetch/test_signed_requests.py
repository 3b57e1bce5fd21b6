"""Signed requests over real HTTP on loopback: each is verified as the server has seen it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.errors import BadCrawlSettings, BadSigningKey
from crawler.fetch.jobs import Capture, RequestKind
from crawler.settings import CrawlSettings, SignatureSettings
from crawler.stages.preflight import check_crawl
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import crawl, hits_of, settings_for
from tests.support.web.fetching import fetch, job_for
from tests.support.web.loopback import Reply, Web, page, redirect
from tests.support.web.signed import AGENT, signature_settings, verified_request


def test_every_request_of_a_crawl_is_signed(loopback: Web, tmp_path: Path) -> None:
    """robots.txt, the targets of redirects at other hosts, sitemaps and pages: each for the host that is asked."""
    loopback.routes |= {
        "a.test/robots.txt": redirect("http://www.a.test/robots.txt"),
        "www.a.test/robots.txt": Reply(b"User-agent: *\nDisallow: /no\n"),
        "a.test/1": redirect("http://www.a.test/2"),
        "www.a.test/2": page("x"),
    }
    signature, key = signature_settings(tmp_path)
    pages = crawl(settings_for(loopback.target, signature=signature, ask_tdmrep=True), hits_of("http://a.test/1"))
    assert [each.outcome for each in pages if each.hits] == ["fetched"]
    assert {"/robots.txt", "/.well-known/tdmrep.json", "/1", "/sitemap.xml"} <= set(loopback.paths("a.test"))
    assert {"/robots.txt", "/2"} <= set(loopback.paths("www.a.test"))
    for seen in loopback.seen:
        found = verified_request(f"http://{seen.host}{seen.path}", seen.headers, key.jwk)
        assert found.covered_components['"signature-agent";key="sig1"'] == f'"{AGENT}"'


def test_a_port_is_part_of_what_is_signed(loopback: Web, tmp_path: Path) -> None:
    """The authority of a site at another port has the port, as its Host header."""
    loopback.routes["a.test/x"] = page("x")
    signature, key = signature_settings(tmp_path)
    assert fetch(loopback.target, "http://a.test:8080/x", signature=signature).outcome is FetchOutcome.FETCHED
    (seen,) = loopback.seen
    assert seen.headers["Host"] == "a.test:8080" and verified_request("http://a.test:8080/x", seen.headers, key.jwk)


def test_conditional_requests_are_signed_too(loopback: Web, tmp_path: Path) -> None:
    """The validators of a re-visit stand beside the signature, and an archive has the request as it was sent."""
    loopback.routes["a.test/x"] = Reply(status=304)
    captured: list[Capture] = []
    signature, key = signature_settings(tmp_path)
    job = job_for("http://a.test/x", RequestKind.PAGE, etag='"1"')
    assert fetch(loopback.target, job, captured.append, signature=signature).outcome is FetchOutcome.UNCHANGED
    assert loopback.seen[0].headers["If-None-Match"] == '"1"'
    sent = {name.decode(): value.decode() for name, value in captured[0].request_headers}
    assert verified_request("http://a.test/x", sent, key.jwk)


def test_without_a_key_nothing_is_signed(loopback: Web) -> None:
    """By default a request has none of the three headers."""
    loopback.routes["a.test/x"] = page("x")
    fetch(loopback.target, "http://a.test/x")
    assert not any(name.startswith("Signature") for name in loopback.seen[0].headers)


@pytest.mark.parametrize(
    ("contact", "agent", "signs_as"),
    [
        ("https://crawler.example/about", "", "https://crawler.example"),
        ("https://Crawler.example:8443?x", "", "https://crawler.example:8443"),
        ("https://crawler.example:443", "", "https://crawler.example"),
        ("a@b.example", "https://b.example/", "https://b.example"),
        ("http://crawler.example", "", None),
        ("a@b.example", "", None),
        ("https://crawler.example", "b.example", None),
        ("https://crawler.example", "https://b.example/path", None),
        ("https://crawler.example", 'https://b.example"', None),
        ("https://user@crawler.example", "", None),
    ],
)
def test_the_agent_is_the_https_site_of_the_contact(contact: str, agent: str, signs_as: str | None) -> None:
    """Its origin, or that of crawl.signature.agent; without one, signed requests are refused, and others are not."""
    settings = CrawlSettings(contact=contact, signature=SignatureSettings(key="key.pem", agent=agent))
    if signs_as is not None:
        settings.check()
        assert settings.signature_agent == signs_as
        return
    with pytest.raises(BadCrawlSettings):
        settings.check()
    CrawlSettings(contact=contact).check()


def test_a_crawl_does_not_start_without_its_key(tmp_path: Path) -> None:
    """A key that cannot be read ends the checks before a start: nothing is asked for unsigned."""
    signature, _ = signature_settings(tmp_path)
    check_crawl(settings_for("127.0.0.1:1", signature=signature))
    Path(signature.key).chmod(0o644)
    with pytest.raises(BadSigningKey):
        check_crawl(settings_for("127.0.0.1:1", signature=signature))
