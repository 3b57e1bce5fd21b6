"""Parked sites: after failures, after Retry-After, and while their domain or address is in use."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from crawler.fetch.jobs import RequestKind
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.frontier_site import begun, fail, hits_at, status, with_hits

BUSY = status(429)


visited = partial(begun, use_sitemaps=False)


def test_a_park_says_until_when_and_why() -> None:
    """A site's row has the reason and the end of its park; it counts as parked until its next request."""
    site = visited("1")
    site.step(**BUSY, retry_after_s=600.0)
    assert (site.row.parked_until, site.row.parked_why) == (site.now + 600_000, "http_429")
    assert (site.totals.parked, site.totals.active, site.totals.resting) == (1, 1, 0)
    site.step()
    assert (site.row.parked_until, site.row.parked_why, site.row.park_level) == (0, "", 0)
    assert (site.totals.parked, site.totals.resting) == (0, 1)


@pytest.mark.parametrize(
    ("kind", "failed", "why"),
    [
        (RequestKind.ROBOTS, status(503), "robots.txt:http_503"),
        (RequestKind.ROBOTS, fail("timeout"), "timeout"),
        (RequestKind.TDMREP, BUSY, "tdmrep.json:http_429"),
        (RequestKind.SITEMAP, BUSY, "sitemap:http_429"),
    ],
)
def test_a_park_says_which_file_failed(kind: RequestKind, failed: dict[str, object], why: str) -> None:
    """If the server answered without the file, the reason names the file; if no server answered, it does not."""
    site = with_hits("1", ask_tdmrep=True)
    site.answer(site.reach(kind), **failed)
    assert site.row.parked_why == why


def test_failures_in_a_row_wait_twice_as_long_whatever_page_failed() -> None:
    """The waits of a host double over all its pages, and start again after a good answer."""
    site = visited("1", "2", "3", tries=1)
    site.step(**BUSY)
    assert site.row.next_start == site.now + 30_000
    site.step(**BUSY)
    assert site.row.next_start == site.now + 60_000
    site.step()
    site.hits(*hits_at("4"))
    site.step(**BUSY)
    assert site.row.next_start == site.now + 30_000


def test_a_burst_counts_once() -> None:
    """Answers to requests from before the park do not raise its level; the longest wait holds."""
    site = visited("1")
    site.now = site.committed.next_due() or 0
    (job,) = site.jobs()
    sent = site.now
    for retry_after_s in (10.0, 300.0, 20.0):
        site.now = sent
        site.answer(job, **BUSY, duration_ms=500, retry_after_s=retry_after_s)
        assert site.row.park_level == 1
    assert site.row.parked_until == site.row.next_start == sent + 500 + 300_000


def test_a_retry_after_of_zero_does_not_cancel_the_backoff() -> None:
    """With Retry-After: 0 each time, the waits still double."""
    site = visited("1", tries=5)
    waits = []
    for _ in range(4):
        site.step(**BUSY, retry_after_s=0.0)
        waits.append(site.row.next_start - site.now)
    assert waits == [30_000, 60_000, 120_000, 240_000]


def test_no_park_is_longer_than_the_cap() -> None:
    """Neither Retry-After nor doubling exceeds the cap."""
    site = visited("1", tries=100, requests_per_page=100)
    for _ in range(20):
        site.step(**BUSY, retry_after_s=1e12)
        assert site.row.next_start <= site.now + 3_600_000


def test_an_answer_that_comes_late_does_not_shorten_a_park() -> None:
    """A good answer to an older request does not shorten the park; the spacing counts from its own start."""
    site = visited("1", "2")
    site.now = site.committed.next_due() or 0
    (job,) = site.jobs()
    site.answer(job, **BUSY, retry_after_s=600.0)
    until = site.row.parked_until
    site.answer(job)
    assert site.row.next_start >= until


@pytest.mark.parametrize("kind", [RequestKind.ROBOTS, RequestKind.PAGE])
def test_a_deferred_job_is_no_attempt(kind: RequestKind) -> None:
    """A deferred job without a request is not an attempt: the site waits for its turn, then the job is repeated."""
    site = with_hits("1", use_sitemaps=False)
    job = site.reach(kind)
    before = site.row
    for _ in range(5):
        place = site.now + 7_000
        site.answer(job, outcome=FetchOutcome.DEFERRED, status=0, not_before_ms=place)
        assert site.row == msgspec.structs.replace(before, next_start=place) and site.pages == []
        site.now = place
        assert site.jobs() == [job]


def test_what_an_answer_asks_for_outlives_a_stop_that_is_taken_back() -> None:
    """A Retry-After that arrives while the site is stopped holds if the site is reopened before it ends."""
    site = with_hits("1", use_sitemaps=False)
    (job,) = site.jobs()
    site.decide(True)
    site.answer(job, **BUSY, retry_after_s=600.0)
    asked_ms = site.now
    site.decide(False)
    site.hits(*hits_at("2"))
    due = site.committed.next_due()
    assert due is not None and due >= asked_ms + 600_000
