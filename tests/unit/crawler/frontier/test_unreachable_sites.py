"""Unreachable sites: hits that retry them, and failures that do not count."""

from __future__ import annotations

import pytest

from crawler.fetch.jobs import RequestKind
from crawler.web.urls import fetch_id
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import hits_of
from tests.support.web.frontier_site import Site, begun, fail, hits_at, status, with_hits

DAY_MS = 86_400_000


def test_a_later_hit_fetches_again_what_was_unreachable() -> None:
    """A hit for a URL that was refused as unreachable reopens the site and visits that URL again."""
    site = Site()
    hits = hits_at("1", "2")
    site.hits(*hits)
    site.walk(**fail())
    assert {page.reason for page in site.pages} == {site.row.stopped} == {"connection"}
    assert site.hits(hits[0]) == ["known"] and site.committed.next_due() is None
    site.now += DAY_MS
    assert site.hits(hits[0]) == ["queued"] and site.row.stopped == ""
    assert site.hits(hits[1], hits[0]) == ["queued", "known"]
    site.walk()
    again = site.pages[2:]
    assert [(page.url, page.outcome, page.visit) for page in again] == [(hit.url, "fetched", 2) for hit in hits]
    assert [page.id for page in again] == [fetch_id(hit.url, 2) for hit in hits]
    assert [page.hits for page in again] == [[hit.id] for hit in hits]
    assert site.hits(*hits) == ["known", "known"]
    assert site.totals.queued == 0 and site.totals.fetched == 2


def test_only_failures_in_a_row_stop_a_site() -> None:
    """Any answer between connection failures, even an error, resets their count."""
    site = begun("1", "2")
    for answer in (fail(), fail(), status(404), fail(), fail()):
        site.step(**answer)
    before = site.row.stopped
    site.step(**fail())
    assert (before, site.row.stopped) == ("", "connection")


def test_a_later_hit_asks_again_where_robots_txt_was_unavailable() -> None:
    """A hit also reopens a site with robots_unavailable; another failure counts as another visit."""
    site = Site(robots_tries=1)
    hits = hits_at("1")
    for visit in (1, 2):
        site.hits(*hits)
        site.walk(outcome=FetchOutcome.FAILED, status=503)
        assert [(page.reason, page.visit) for page in site.pages][visit - 1 :] == [("robots_unavailable", visit)]
        site.now += DAY_MS
    site.hits(*hits)
    site.walk()
    assert [(page.outcome, page.visit) for page in site.pages][2:] == [("fetched", 3)]


def test_the_page_at_which_its_site_was_given_up_is_tried_again_too() -> None:
    """The page whose failure made the site unreachable is retried together with the site, and only then."""
    site = Site(use_sitemaps=False)
    hits = hits_at("1", "2")
    site.hits(*hits)
    site.robots()
    site.walk(**fail())
    assert [(page.outcome, page.reason) for page in site.pages] == [("failed", "connection"), ("refused", "connection")]
    assert site.hits(*hits) == ["known"] * 2
    site.now += DAY_MS
    assert site.hits(*hits) == ["queued"] * 2
    site.walk()
    assert [page.outcome for page in site.pages][2:] == ["fetched"] * 2


def test_a_page_that_fails_by_itself_is_not_tried_again() -> None:
    """A transient failure is retried if it stopped the site, not if it ended one page of a working site."""
    site = Site(use_sitemaps=False, tries=1)
    hits = hits_at("1", "2")
    site.hits(*hits)
    site.robots()
    site.step(**fail("timeout", status=200, unreachable=False))
    site.walk()
    site.now += DAY_MS
    assert site.hits(*hits) == ["known"] * 2
    assert [(page.outcome, page.reason) for page in site.pages] == [("failed", "timeout"), ("fetched", "")]


@pytest.mark.parametrize("reason", ["tls_expired", "tls_name", "tls_untrusted", "tls"])
def test_what_is_wrong_with_a_certificate_is_told_at_once(reason: str) -> None:
    """A bad certificate is permanent: robots.txt is requested once, and the site and its pages have its reason."""
    site = Site()
    hits = hits_of("https://a.test/1", "https://a.test/2")
    site.hits(*hits)
    assert site.walk(**fail(reason, transient=False)) == ["https://a.test/robots.txt"]
    assert site.row.stopped == reason
    assert [(page.outcome, page.reason) for page in site.pages] == [("refused", reason)] * 2
    site.now += DAY_MS
    assert site.hits(*hits) == ["queued"] * 2
    site.walk()
    assert [page.outcome for page in site.pages][2:] == ["fetched"] * 2


def test_other_refusals_are_final() -> None:
    """A URL that robots.txt disallows, or that had no room in the budget, is not retried."""
    site = Site(page_budget=1)
    hits = hits_at("private", "1", "2")
    site.hits(*hits)
    site.robots(b"User-agent: *\nDisallow: /private")
    site.walk()
    assert sorted(page.reason for page in site.pages) == ["", "budget", "robots"]
    site.now += 2 * DAY_MS
    assert site.hits(*hits) == ["known"] * 3 and site.committed.next_due() is None


def test_an_excused_failure_is_no_attempt() -> None:
    """A failure that the site did not cause never counts: the same job is repeated after a wait."""
    site = with_hits("1")
    for kind in (RequestKind.ROBOTS, RequestKind.PAGE, RequestKind.SITEMAP):
        for _ in range(5):
            assert site.step(**fail(), excused=True).kind is kind
            assert site.committed.next_due() == site.now + 30_000
        assert not site.row.stopped and site.row.failures == site.row.robots_tries == site.row.park_level == 0
        assert site.row.parked_why == "connection"
        assert site.step().kind is kind
    assert [page.outcome for page in site.pages] == ["fetched"] and site.row.page_requests == 1


@pytest.mark.parametrize("reason", ["dns", "dns_no_name", "dns_no_address", "timeout", "connection", "proxy_refused"])
def test_the_last_failure_says_why_a_site_was_not_reached(reason: str) -> None:
    """A silent site is retried, robots.txt like pages, and the last reason is kept."""
    site = with_hits("1")
    site.step(**fail("connection"))
    assert len(site.walk(**fail(reason))) == 2
    assert (site.row.stopped, site.pages[0].reason) == (reason, reason)
