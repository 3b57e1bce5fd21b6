"""ads.txt of a site: when it is requested, what is emitted, and how it fails."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from crawler.fetch.jobs import RequestKind
from tests.support.web.frontier_site import Site, begun, fail, hits_at, status

ADS = b"<script src='https://pagead2.googlesyndication.com/pagead/js/adsbygoogle.js'></script>"
STATED = {"body": b"OWNERDOMAIN=owner.example\ngoogle.com, pub-1234567890, DIRECT", "content_type": "text/plain"}

asking = partial(begun, use_sitemaps=False, use_links=False, ask_ads_txt=True)


def stated(site: Site) -> list[tuple[str, str, list[str]]]:
    return [(record.site, record.owner_domain, record.google_ids) for record in site.ads_txt]


def test_a_page_with_ads_makes_it_be_requested_once() -> None:
    """Right after that page, before the next one; other pages with ads make no second request."""
    site = asking("plain", "ads", "more")
    site.step()
    site.step(body=ADS)
    job = site.step(**STATED)
    assert (job.kind, job.url) == (RequestKind.ADS_TXT, "http://a.test/ads.txt")
    assert site.walk(body=ADS) == ["/more"]
    assert stated(site) == [("a.test", "owner.example", ["pub-1234567890"])]
    assert site.ads_txt[0].read_at > 0


def test_it_is_requested_after_the_last_page_too() -> None:
    """A site with nothing else to do has this left, and rests afterwards."""
    site = asking("ads")
    site.step(body=ADS)
    assert (site.totals.active, site.totals.resting) == (1, 0)
    assert site.walk(**STATED) == ["/ads.txt"]
    assert (site.totals.active, site.totals.resting) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "body"),
    [({"ask_ads_txt": False}, ADS), ({}, b"<p>none</p>"), ({"robots": b"User-agent: *\nDisallow: /ads.txt"}, ADS)],
)
def test_when_it_is_not_requested(changes: dict[str, Any], body: bytes) -> None:
    """By default, of a site without ads, and where robots.txt forbids it."""
    site = asking("1", "2", **changes)
    assert site.walk(body=body) == ["/1", "/2"] and site.ads_txt == []


@pytest.mark.parametrize(
    ("fields", "emitted"),
    [
        (status(404), [("a.test", "", [])]),
        ({**status(301), "reason": "redirect_offsite"}, [("a.test", "", [])]),
        ({**STATED, "content_type": "text/html"}, [("a.test", "", [])]),
        ({**STATED, "content_type": ""}, [("a.test", "owner.example", ["pub-1234567890"])]),
        (status(503), []),
        (fail("timeout"), []),
    ],
)
def test_a_file_that_cannot_be_had_costs_one_request(fields: dict[str, Any], emitted: list[object]) -> None:
    """Its absence is emitted, a failure that may pass is not; the pages go on."""
    site = asking("1", "2")
    site.step(body=ADS)
    assert site.step(**fields).kind is RequestKind.ADS_TXT
    assert site.walk(body=ADS) == ["/2"] and stated(site) == emitted


def test_one_in_flight_at_a_stop_is_kept() -> None:
    """A stopped site is asked for nothing, so what the term has asked for is taken; a reopened one makes no second."""
    site = asking("1", "2")
    site.step(body=ADS)
    job = site.reach(RequestKind.ADS_TXT)
    site.decide(stop=True)
    site.answer(job, **STATED)
    assert stated(site) == [("a.test", "owner.example", ["pub-1234567890"])] and site.row.stopped
    site.decide(stop=False)
    assert "/ads.txt" not in site.walk(body=ADS)


def test_one_that_a_stop_forestalls_is_requested_when_the_site_is_reopened() -> None:
    """In the same term: the process ended before the answer."""
    site = asking("1", "2")
    site.step(body=ADS)
    site.reach(RequestKind.ADS_TXT)
    site.decide(stop=True)
    assert site.walk() == []
    site.decide(stop=False)
    assert "/ads.txt" in site.walk(body=ADS)


def test_a_new_term_asks_again() -> None:
    """After a page of the new term that loads ads."""
    site = asking("1", page_budget=1)
    site.step(body=ADS)  # the budget is spent: nothing is requested any more
    assert site.walk() == [] and site.ads_txt == []
    site.decide(stop=False, term=1)
    site.settings = replace(site.settings, page_budget=5)
    site.robots()
    site.step(body=ADS)
    assert site.step(**STATED).kind is RequestKind.ADS_TXT
    site.walk(body=ADS)
    site.decide(stop=False, term=2)
    site.step(body=ADS)
    assert site.step(**STATED).kind is RequestKind.ADS_TXT and len(site.ads_txt) == 2


def test_a_failure_of_our_own_is_no_attempt() -> None:
    """The job comes again."""
    site = asking("1")
    site.step(body=ADS)
    assert site.step(**fail(), excused=True).kind is RequestKind.ADS_TXT
    assert site.step(**STATED).kind is RequestKind.ADS_TXT and len(site.ads_txt) == 1


def test_later_hits_make_no_second_request() -> None:
    """In the same term."""
    site = asking("1")
    site.step(body=ADS)
    site.step(**STATED)
    site.hits(*hits_at("2"))
    assert site.walk(body=ADS) == ["/2"]
