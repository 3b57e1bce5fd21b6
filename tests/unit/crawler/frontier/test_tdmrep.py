"""tdmrep.json of a site: when it is requested, what it does, and how it fails."""

from __future__ import annotations

from functools import partial

import pytest

from crawler.fetch.jobs import RequestKind
from crawler.frontier.rows import robots_key, sitemap_key, tdm_key
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.frontier_site import begun, fail, hits_at, status, with_hits

RESERVING = b'[{"location": "/mine/*", "tdm-reservation": 1}]'
SIGNAL = "well-known:tdm-reservation"


reserved = partial(begun, "mine/1", "free", use_sitemaps=False, ask_tdmrep=True)


def test_reserved_pages_carry_the_signal() -> None:
    """tdmrep.json is requested once, after robots.txt; only the pages that it reserves have the signal."""
    site = reserved()
    job = site.step(body=RESERVING)
    assert (job.kind, job.url) == (RequestKind.TDMREP, "http://a.test/.well-known/tdmrep.json")
    assert site.walk(opt_out=["meta:noai"]) == ["/mine/1", "/free"]
    assert [page.opt_out for page in site.pages] == [["meta:noai", SIGNAL], ["meta:noai"]]


def test_reserved_pages_are_not_asked_for_where_opt_outs_are_obeyed() -> None:
    """With obey_opt_out, a reserved URL is refused without a request, and its record has the reason."""
    site = reserved(obey_opt_out=True)
    site.step(body=RESERVING)
    assert site.walk() == ["/free"]
    assert [(page.outcome, page.reason, page.opt_out) for page in site.pages] == [
        ("refused", "opt_out", [SIGNAL]),
        ("fetched", "", []),
    ]


def test_a_redirect_into_a_reserved_place_carries_the_signal() -> None:
    """A page that redirects to a reserved URL has the signal."""
    site = reserved()
    site.step(body=RESERVING)
    site.walk(final_url="http://a.test/mine/2")
    assert [page.opt_out for page in site.pages] == [[SIGNAL]] * 2


@pytest.mark.parametrize(
    "fields",
    [
        status(404),
        status(503),
        fail("timeout"),
        {"body": b"<html>not found"},
        {"body": b"\xff\xfe["},
        {"outcome": FetchOutcome.REFUSED, "reason": "content_type", "body": RESERVING},
    ],
)
def test_what_cannot_be_read_reserves_nothing(fields: dict[str, object]) -> None:
    """A missing, failed or invalid file costs one request: pages are fetched without a signal."""
    site = reserved()
    assert site.step(**fields).kind is RequestKind.TDMREP
    assert site.walk() == ["/mine/1", "/free"] and [page.opt_out for page in site.pages] == [[], []]


def test_robots_txt_keeps_us_from_it() -> None:
    """If robots.txt disallows its path, tdmrep.json is not requested."""
    assert reserved(robots=b"User-agent: *\nDisallow: /.well-known/").walk() == ["/mine/1", "/free"]


def test_it_is_believed_for_a_day() -> None:
    """After a day, robots.txt and tdmrep.json are requested again, and the new text counts."""
    site = reserved()
    site.step(body=RESERVING)
    site.walk()
    site.now += 25 * 3_600_000
    site.hits(*hits_at("mine/9"))
    site.robots()
    assert site.step(body=b"[]").kind is RequestKind.TDMREP
    site.walk()
    assert site.pages[-1].url.endswith("/9") and site.pages[-1].opt_out == []


def test_a_stopped_site_keeps_no_text() -> None:
    """A stop drops robots.txt, tdmrep.json and the sitemaps; a text that arrives later is not stored."""
    site = reserved()
    site.step(body=RESERVING)
    site.decide(stop=True)
    site.walk()
    mapped = begun("1")
    mapped.reach(RequestKind.SITEMAP)
    assert sitemap_key("a.test") in mapped.committed.rows
    mapped.decide(stop=True)
    mapped.walk()
    late = with_hits("1")
    (job,) = late.jobs()
    late.decide(stop=True)
    late.answer(job, body=b"User-agent: *")
    late.walk()
    for stopped in (site, mapped, late):
        assert stopped.row.robots_until == stopped.row.tdm_until == 0
        texts = {robots_key("a.test"), tdm_key("a.test"), sitemap_key("a.test")}
        assert not texts & stopped.committed.rows.keys()


def test_a_failure_that_may_pass_takes_back_no_reservation() -> None:
    """A reservation holds while the file is unavailable, and the file is requested again within hours."""
    site = reserved()
    site.step(body=RESERVING)
    site.walk()
    site.now += 25 * 3_600_000
    site.hits(*hits_at("mine/8", "mine/9"))
    site.robots()
    assert site.step(**status(503)).kind is RequestKind.TDMREP
    assert site.step().kind is RequestKind.PAGE and site.pages[-1].opt_out == [SIGNAL]
    site.now += 2 * 3_600_000
    assert site.step(**status(404)).kind is RequestKind.TDMREP
    assert site.step().kind is RequestKind.PAGE and site.pages[-1].opt_out == []
