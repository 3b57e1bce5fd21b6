"""CRAWL over real HTTP on loopback: politeness as the server saw it, the records, and crashes."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Iterator

import pytest
from aiohttp import web

from crawler.frontier.report import frontier_left
from tests.support.web.crawl_driver import Driver, Store, crawl, driving, hits_of, same_on_every_run, settings_for
from tests.support.web.loopback import Reply, Web, page, redirect

SITES = [f"site{n}.test" for n in range(4)]


@pytest.fixture
def loopback() -> Iterator[Web]:
    """Six sites with hits, sitemaps, links, disallowed pages, errors and redirects."""
    with Web() as served:
        for site in SITES:
            served.routes |= {
                f"{site}/robots.txt": Reply(b"User-agent: *\nDisallow: /private\n"),
                f"{site}/sitemap.xml": Reply(
                    b"<urlset>"
                    + b"".join(b"<url><loc>http://%s/map/%d</loc></url>" % (site.encode(), n) for n in range(3))
                    + b"</urlset>"
                ),
                f"{site}/hit/1": page("first", "/link/1", "/link/2", "/private/2", "/tag/x", "https://elsewhere.test/"),
                f"{site}/hit/2": redirect("/moved"),
                f"{site}/moved": page("moved"),
                f"{site}/link/1": page("deeper", "/link/3"),
                f"{site}/link/2": page("leaf"),
                f"{site}/link/3": page("leaf"),
                f"{site}/private/1": page("never"),
                f"{site}/private/2": page("never"),
                f"{site}/file": Reply(b"%PDF-1.7", headers={"Content-Type": "application/pdf"}),
                **{f"{site}/map/{n}": page(f"map {n}") for n in range(3)},
            }
        yield served


HITS = hits_of(*(f"http://{site}/{path}" for path in ("hit/1", "private/1", "hit/2", "gone", "file") for site in SITES))


def test_a_crawl_is_complete_and_polite(loopback: Web) -> None:
    """Every hit has a record and links are found; the server saw robots.txt, the delay and one request at a time."""
    pages = crawl(settings_for(loopback.target, delay_s=0.2), HITS)
    assert {hit.id for hit in HITS} == {hit for page in pages for hit in page.hits}
    by_url = {page.url: page for page in pages}
    assert len(by_url) == len(pages)
    for site in SITES:
        ends = {
            url.removeprefix(f"http://{site}"): (p.outcome, p.reason) for url, p in by_url.items() if p.site == site
        }
        assert ends.pop("/private/1") == ("refused", "robots")
        assert ends.pop("/gone") == ("failed", "http_404")
        assert ends.pop("/file") == ("refused", "content_type")
        assert set(ends) == {"/hit/1", "/hit/2", "/map/0", "/map/1", "/map/2", "/link/1", "/link/2", "/link/3"}
        assert set(ends.values()) == {("fetched", "")}
        paths = loopback.paths(site)
        assert paths[0] == "/robots.txt" and paths.count("/robots.txt") == 1
        assert not any(path.startswith("/private") for path in paths) and len(paths) == len(set(paths))
        assert not loopback.overlaps(site)
        assert min(loopback.gaps(site)) > 0.1  # the delay, less the time for scheduling and connecting
    assert not loopback.paths("elsewhere.test")


def test_crashes_and_rollbacks_change_nothing(loopback: Web) -> None:
    """After random crashes and rollbacks, the pages are those of an undisturbed run."""
    calm = crawl(settings_for(loopback.target, delay_s=0.02), HITS)
    loopback.seen.clear()
    dice = random.Random(7)
    settings = settings_for(loopback.target, delay_s=0.02)
    store = Store()
    driver = Driver(settings, store)
    driver.round(HITS, commit=False)
    driver.round(HITS)
    rounds, crashes, next_crash = 0, 0, 3
    while not driver.at_rest:
        rounds += 1
        if rounds == next_crash and crashes < 8:
            driver.close()
            driver = Driver(settings, store)
            crashes += 1
            next_crash += dice.randint(2, 8)
        driver.round(commit=dice.random() > 0.1)
        time.sleep(0.005)
    driver.close()
    assert crashes > 2
    for site in SITES:
        assert same_on_every_run(store.pages, site) == same_on_every_run(calm, site)
        assert not loopback.overlaps(site)
        assert not any(path.startswith("/private") for path in loopback.paths(site))


def test_an_answer_to_a_lost_claim_is_dropped(loopback: Web) -> None:
    """An answer that waits while its partition is lost changes nothing: the request is repeated and recorded once."""
    with driving(settings_for(loopback.target)) as driver:
        driver.round(hits_of("http://site0.test/map/0"))
        driver.stage.committed()
        driver.wait_for_result()
        driver.stage.lost(range(4))
        pages = driver.run()
    assert loopback.paths("site0.test").count("/robots.txt") == 2
    assert len(pages) == len({page.id for page in pages})


def requests_of(driver: Driver, **labels: str) -> float:
    samples = (sample for family in driver.metrics.registry.collect() for sample in family.samples)
    counted = (sample for sample in samples if sample.name == "farmwatch_fetch_requests_total")
    return sum(sample.value for sample in counted if labels.items() <= sample.labels.items())


def test_counts_of_a_crawl(loopback: Web) -> None:
    """Metrics of committed facts and the frontier's own counts agree with the pages."""
    store = Store()
    with driving(settings_for(loopback.target), store) as driver:
        driver.run(HITS)
        driver.round(HITS, commit=False)  # counts of a rolled-back batch are not shown
        driver.round()
    sample = driver.metrics.registry.get_sample_value
    fetched = sum(page.outcome == "fetched" for page in store.pages)
    assert requests_of(driver) == len(loopback.seen)  # every request to the server, hops included
    assert requests_of(driver, kind="page", outcome="redirected", status="3xx") == len(SITES)
    assert requests_of(driver, kind="page", outcome="fetched", status="2xx", reason="") == fetched
    assert requests_of(driver, kind="robots", outcome="fetched") == len(SITES)
    assert sample("farmwatch_search_results_total", {"source": "file", "outcome": "queued"}) == len(HITS)
    assert sample("farmwatch_robots_lookups_total", {"result": "disallowed"}) == len(SITES)
    assert sample("farmwatch_fetch_inflight") == 0 and sample("farmwatch_frontier_sites", {"state": "active"}) == 0
    left = frontier_left(store, len(store.states))  # type: ignore[arg-type]
    assert (left.sites, left.active, left.queued, left.fetched) == (len(SITES), 0, 0, fetched)


def test_closing_does_not_wait_for_slow_servers(loopback: Web) -> None:
    """A stage with a hanging request closes at once, and its thread ends."""

    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    loopback.routes["hang.test/robots.txt"] = hang
    settings = settings_for(loopback.target, idle_timeout_s=20.0, total_timeout_s=20.0)
    with driving(settings) as driver:
        driver.round(hits_of("http://hang.test/x"))
        driver.run_until(lambda: loopback.seen)
        assert driver.stage.ready()
    assert not driver.stage.ready()
    assert not [thread for thread in threading.enumerate() if thread.name == "fetch"]


def test_hosts_at_one_address_take_turns(loopback: Web) -> None:
    """Jobs at a busy address are deferred and return; they count as deferred, not as requests or failures."""
    settings = settings_for(loopback.target, address_delay_s=0.2, use_sitemaps=False, use_links=False)
    with driving(settings) as driver:
        pages = driver.run(hits_of(*(f"http://{site}/map/0" for site in SITES[:4])))
    assert [(page.outcome, page.visit) for page in pages] == [("fetched", 1)] * 4
    starts = sorted(seen.began for seen in loopback.seen)
    assert len(starts) == 8 and min(later - earlier for earlier, later in itertools.pairwise(starts)) > 0.1
    kinds = ("robots", "page")
    sample = driver.metrics.registry.get_sample_value
    assert sum(sample("farmwatch_fetch_deferred_total", {"kind": kind}) or 0 for kind in kinds) > 0
    assert requests_of(driver, outcome="deferred") == 0
