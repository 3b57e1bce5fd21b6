"""Re-visits over months: which URLs are fetched again, when, under which condition, and the rows of a visit."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.fetch.jobs import Job, RequestKind
from crawler.frontier.rows import UrlRow, revisit_prefix, unpack
from crawler.frontier.site_store import url_key
from crawler.frontier.statuses import Status
from crawler.web.sitemaps import SitemapFile
from crawler.web.urls import fetch_id, page_bytes
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.frontier_site import Site, hits_at, status

DAY_S = 86_400.0
MONTH_MS = 30 * 86_400_000
VALIDATORS = {"etag": '"v1"', "last-modified": "Tue, 01 Sep 2026 08:00:00 GMT"}


def site_with(**changes: object) -> Site:
    """A site whose pages are re-visited after 30 days."""
    return Site(**{"use_sitemaps": False, "refetch_fetched_s": 30 * DAY_S, **changes})


def fetched(*paths: str, site: Site | None = None, **fields: Any) -> Site:
    """A resting site with its pages fetched."""
    site = site or site_with()
    site.hits(*hits_at(*paths))
    site.robots()
    for _ in paths:
        site.step(**fields)
    return site


def later(site: Site) -> Job:
    """The page of the next re-visit, after robots.txt."""
    due = site.committed.next_due()
    assert due is not None
    site.now = max(site.now, due)
    (job,) = site.jobs()
    if job.kind is RequestKind.ROBOTS:
        site.answer(job)
        return later(site)
    return job


def row_of(site: Site, url: str) -> UrlRow:
    """The stored row of a URL."""
    return unpack(UrlRow, site.committed.rows[url_key("a.test", page_bytes(url))][0])


def test_a_page_is_asked_for_again_with_its_validators() -> None:
    """After its interval a page is requested with the ETag and date of its last visit, as visit 2."""
    site = fetched("1", headers=VALIDATORS)
    assert (site.totals.active, site.totals.resting, site.totals.queued) == (0, 1, 0)
    started = site.now
    job = later(site)
    assert site.now >= started + MONTH_MS
    assert (job.url, job.etag, job.last_modified) == ("http://a.test/1", *VALIDATORS.values())
    assert (site.totals.active, site.totals.queued) == (1, 1)
    site.answer(job, headers={"etag": 'W/"v2"'}, body=b"new")
    assert [(page.visit, page.outcome, page.id) for page in site.pages] == [
        (visit, "fetched", fetch_id("http://a.test/1", visit)) for visit in (1, 2)
    ]
    assert len({page.page_id for page in site.pages}) == 1 and site.pages[1].hits == site.pages[0].hits
    job = later(site)
    assert (job.etag, job.last_modified) == ('W/"v2"', "")


def test_an_unchanged_page_is_recorded_without_a_body() -> None:
    """A 304 gives a record `unchanged` and schedules a re-visit; validators that it does not replace stay."""
    site = fetched("1", headers=VALIDATORS)
    site.answer(later(site), outcome=FetchOutcome.UNCHANGED, status=304, headers={"etag": '"v1b"'})
    page = site.pages[-1]
    assert (page.visit, page.outcome, page.reason, page.body) == (2, "unchanged", "", b"")
    job = later(site)
    assert (job.etag, job.last_modified) == ('"v1b"', VALIDATORS["last-modified"])


@pytest.mark.parametrize(
    "headers",
    [{"etag": "x\r\nHost: evil"}, {"etag": '"' + "a" * 300 + '"'}, {"etag": "unquoted"}, {"etag": '"caf\xe9"'},
     {"last-modified": "Tue\r\nX: y, 01 Sep 2026"}, {"last-modified": "0" * 5000}, {"last-modified": "\x1b[2J" * 3}],
)  # fmt: skip
def test_validators_that_could_do_harm_are_not_sent_back(headers: dict[str, str]) -> None:
    """An invalid ETag or date is not stored; such a page is requested without a condition."""
    job = later(fetched("1", headers=headers))
    assert (job.etag, job.last_modified) == ("", "")


def test_revisits_eat_neither_budget() -> None:
    """Years of re-visits use up neither the page budget nor the request budget."""
    site = fetched("1", site=site_with(page_budget=2))
    for _ in range(20):
        site.answer(later(site))
    assert not site.row.stopped and (site.row.fetched, site.row.page_requests, site.totals.fetched) == (1, 1, 1)
    assert site.hits(*hits_at("2")) == ["queued"]


@pytest.mark.parametrize("how", ["decision", "budget"])
def test_a_stopped_site_is_never_revisited(how: str) -> None:
    """A decided site, or one with a spent budget, is not due again; the latter drops its schedule."""
    site = fetched("1", site=site_with(page_budget=1 if how == "budget" else 5))
    if how == "decision":
        site.decide(stop=True)
    site.walk()
    assert site.committed.next_due() is None and site.row.stopped
    assert any(key.startswith(revisit_prefix("a.test")) for key in site.committed.rows) == (how == "decision")


def test_a_site_that_is_opened_again_is_revisited_again() -> None:
    """After a stop is lifted, the scheduled re-visits are still there, including queued ones."""
    site = fetched("1", "2")
    later(site)
    site.decide(stop=True)
    site.walk()
    assert site.totals.queued == 0 and len(site.pages) == 2
    site.decide(stop=False)
    assert {later(site).url} <= {"http://a.test/1", "http://a.test/2"}


def test_a_new_hit_goes_before_what_is_visited_again() -> None:
    """A new hit is fetched before queued re-visits; a hit for a queued page is known and kept."""
    site = fetched("1", "2")
    first = later(site)
    site.hits(*hits_at("new"))
    again = hits_at("2", "1")
    assert site.hits(*again) == ["known", "known"]
    site.answer(first)
    assert site.step().url == "http://a.test/new"
    assert site.step().url == "http://a.test/2"
    assert again[0].id in site.pages[-1].hits


@pytest.mark.parametrize(
    "fields",
    [status(404), {"outcome": FetchOutcome.REFUSED, "reason": "opt_out"}, {"final_url": "http://a.test/moved"}],
)
def test_only_fetched_pages_are_requested_again(fields: dict[str, Any]) -> None:
    """A failed or refused URL, and the target of a redirect, are not scheduled."""
    site = fetched("1", **fields)
    planned = [key[-16:] for key in site.committed.rows if key.startswith(revisit_prefix("a.test"))]
    assert planned == ([page_bytes("http://a.test/1")] if "final_url" in fields else [])


def test_a_hit_for_what_only_redirects_led_to_has_a_record_even_if_its_site_is_stopped() -> None:
    """A hit for a redirect target is recorded, even as a refusal of a stopped site."""
    site = fetched("1", final_url="http://a.test/moved")
    site.decide(stop=True)
    site.hits(*hits_at("moved"))
    site.walk()
    assert [(page.url[-5:], page.reason) for page in site.pages[1:]] == [("moved", "site_decided")]


def test_a_page_that_fails_when_visited_again_is_tried_as_often() -> None:
    """A transient failure at a re-visit is retried; the last failure is recorded, and the page counts once."""
    site = fetched("1", headers=VALIDATORS)
    site.answer(later(site), **status(500))
    assert row_of(site, "http://a.test/1").status is Status.FETCHED and len(site.pages) == 1
    for _ in range(2):
        site.step(**status(500))
    assert [(page.visit, page.outcome) for page in site.pages] == [(1, "fetched"), (2, "failed")]
    assert site.row.fetched == 1 and site.committed.next_due() is None


def test_sitemaps_are_read_again_for_new_pages() -> None:
    """A re-visit of a site with room reads its sitemaps again and fetches new pages."""
    site = site_with(use_sitemaps=True, page_budget=4, use_links=False)
    site.hits(*hits_at("1"))
    site.robots()
    site.step()
    listed = SitemapFile(pages=("http://a.test/m1",))
    assert site.step(sitemap=listed).kind is RequestKind.SITEMAP and site.step().url == "http://a.test/m1"
    assert site.totals.resting == 1
    seen: list[str] = []
    while "http://a.test/new" not in seen:
        job = later(site)
        seen.append(job.url)
        listed = SitemapFile(pages=("http://a.test/m1", "http://a.test/1", "http://a.test/new"))
        site.answer(job, sitemap=listed if job.kind is RequestKind.SITEMAP else SitemapFile())
    assert "http://a.test/sitemap.xml" in seen
    assert site.pages[-1].url == "http://a.test/new" and site.pages[-1].found_by == "sitemap"
