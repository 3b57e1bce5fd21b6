"""The dry run: the claims of a crawl, made on a copy, and the reasons for making none."""

from __future__ import annotations

import random

import msgspec
import pytest

from crawler.fetch.jobs import Job, RequestKind
from crawler.frontier.rows import site_key
from crawler.stages.dry_run import DryRun, SitePlan
from stream.log.sql_state import MemoryState
from stream.schema.records import Decision, Hit
from tests.support.web.crawl_driver import hits_of
from tests.support.web.frontier_site import SETTINGS, Site, begun, fail, status, with_hits

NOW = 1_000_000
A, B = "http://a.test/1", "http://a.test/2"


def plan_of(site: Site, hits: list[Hit] | None = None) -> SitePlan:
    """The plan of `a.test` at the site's time; the rows do not change."""
    before = dict(site.committed.rows)
    plan = DryRun(site.settings, site.now, None).plan(site.committed, "a.test", hits or [])
    assert site.committed.rows == before
    return plan


def test_a_new_hit_begins_with_robots_txt_at_once() -> None:
    """An unknown site begins with robots.txt now; the plan names the page of the hit that follows."""
    plan = plan_of(Site(), hits_of(A, B))
    assert (plan.request, plan.url, plan.start_at) == ("robots", "http://a.test/robots.txt", NOW)
    assert (plan.first_page, plan.queued_in["hits"], plan.waits_for) == (A, 2, "")


def test_what_is_refused_is_told_with_its_reason() -> None:
    """URLs that robots.txt disallows, or with another port, are refused without a request; the plan has the reasons."""
    site = begun("private/x", B, robots=b"User-agent: *\nDisallow: /private\n")
    plan = plan_of(site, hits_of("http://a.test:81/"))
    assert (plan.refused, plan.url) == ({"other_port": 1, "robots": 1}, B)


def test_hits_that_are_not_crawled_are_told() -> None:
    """A hit with an imported page needs no request; a hit with another site's URL is unusable."""
    (hit,) = hits_of(A)
    imported = msgspec.structs.replace(hit, imported=True)
    foreign = msgspec.structs.replace(hit, url="http://b.test/")
    plan = plan_of(Site(), [imported, foreign])
    assert (plan.imported, plan.request, "b.test" in plan.unusable) == (1, "", True)


def test_a_parked_site_waits_for_its_time() -> None:
    """A parked site is requested after the park, and the plan has the reason."""
    site = begun(A)
    site.step(**status(429, retry_after_s=600.0))
    asked = site.now
    site.now += 10_000
    plan = plan_of(site)
    assert (plan.waits_for, plan.parked_why, plan.parked_until) == ("parked", "http_429", asked + 600_000)
    assert (plan.request, plan.start_at) == ("page", asked + 600_000)


def test_hosts_of_a_domain_come_one_after_the_other() -> None:
    """Hosts of one registrable domain start spaced; other domains do not wait for them."""
    settings = msgspec.structs.replace(SETTINGS, domain_delay_s=2.0)
    run = DryRun(settings, NOW, None)
    hits = hits_of("http://x.farm.co.uk/", "http://y.farm.co.uk/", "http://z.farm.co.uk/", "http://other.test/")
    run.add(MemoryState(), hits)
    plans = run.plans()
    assert [(plan.site, plan.start_at - NOW, plan.waits_for) for plan in plans] == [
        ("other.test", 2000, "begin"),
        ("x.farm.co.uk", 2000, "begin"),
        ("y.farm.co.uk", 4000, "domain"),
        ("z.farm.co.uk", 6000, "domain"),
    ]


def test_the_limit_keeps_what_comes_first() -> None:
    """The plan keeps the first sites up to its limit; sites without a request come last."""
    world = Site()
    for number in range(30):
        world.now = NOW + number * 1000
        world.hits(*hits_of(f"http://s{number:02}.test/"))
    world.now = NOW
    world.decide(True)  # a.test: stopped, nothing to do
    run = DryRun(world.settings, NOW, 5)
    run.add(world.committed, hits_of("http://new.test/"))
    assert [plan.site for plan in run.plans()] == ["new.test", "s00.test", "s01.test", "s02.test", "s03.test"]
    run = DryRun(world.settings, NOW, 100)
    run.add(world.committed)
    assert [plan.site for plan in run.plans()][-1] == "a.test"


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_what_a_crawl_then_does(seed: int) -> None:
    """At any moment of a random life of a site, the crawl makes the planned request at the planned time."""
    dice = random.Random(seed)
    site = Site(page_budget=8, refetch_fetched_s=3600.0, ask_tdmrep=True, use_sitemaps=dice.random() < 0.5)
    compared = 0
    for _ in range(60):
        roll = dice.random()
        if roll < 0.25:
            site.hits(*hits_of(f"http://a.test/{dice.randrange(9)}"))
        elif roll < 0.3:
            site.decide(dice.random() < 0.5)
        elif roll < 0.4:
            site.now += dice.choice((1, 4000, 10_000_000))
        if site_key("a.test") not in site.committed.rows:
            continue
        plan = plan_of(site)
        began = site.now
        jobs: list[Job] = []
        while not jobs and (due := site.committed.next_due()) is not None:
            site.now = max(site.now, due)
            jobs = site.jobs(since_ms=began)
        planned = [(plan.request, plan.url, plan.start_at)] if plan.request else []
        assert planned == [(job.kind.value, job.url, site.now) for job in jobs]
        for job in jobs:
            compared += 1
            if job.kind is RequestKind.PAGE and dice.random() < 0.3:
                site.answer(job, **fail(unreachable=False, status=503))
            else:
                site.answer(job, body=b"User-agent: *\nDisallow: /3\n" if job.kind is RequestKind.ROBOTS else b"")
    assert compared > 5


@pytest.mark.parametrize("host", ["10.0.0.1", "127.0.0.1", "[::1]"])
def test_an_address_that_is_not_public_is_asked_for_nothing(host: str) -> None:
    """The guard refuses a host with a private address without a look-up; without the guard it is planned."""
    hits = hits_of(f"http://{host}/x")
    state = MemoryState()
    guarded = DryRun(SETTINGS, NOW, None).plan(state, host, hits)
    assert (guarded.request, guarded.stopped_why) == ("", "private_address")
    lifted = DryRun(msgspec.structs.replace(SETTINGS, allow_private=True), NOW, None).plan(state, host, hits)
    assert lifted.request == "robots"


def test_a_stopped_site_asks_for_nothing() -> None:
    """An unread decision stops the site in the plan, and the rest is refused with that reason."""
    site = with_hits(A)
    stop = Decision(id="a.test", site="a.test", stop=True, reason="x")
    plan = DryRun(site.settings, site.now, None).plan(site.committed, "a.test", [stop])
    assert (plan.stopped_why, plan.request, plan.refused) == ("site_decided", "", {"site_decided": 1})


def test_what_is_overdue_waits_one_delay_from_the_start() -> None:
    """A starting crawl does not know its last request: an overdue site waits one delay first."""
    site = with_hits(A)
    site.now += 60_000
    plan = plan_of(site)
    assert (plan.waits_for, plan.start_at) == ("begin", site.now + 5000)


def test_a_page_that_is_known_is_asked_for_with_a_condition() -> None:
    """A resting site is due on the day of its re-visit, and its request is marked conditional."""
    site = begun(A, refetch_fetched_s=86_400.0, use_sitemaps=False, robots_ttl_s=1e9)
    site.step(headers={"etag": '"x"'})
    plan = plan_of(site)
    assert plan.waits_for == "revisit"
    assert (plan.url, plan.start_at, plan.conditional) == (A, site.now + 86_400_000, True)
