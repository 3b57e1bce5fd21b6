"""CRAWL whole, over real HTTP on loopback: politeness as the server saw it, the records, and what a crash changes."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Iterator

import pytest
from aiohttp import web

from crawler.crawl_stage import frontier_left
from crawler.settings import CrawlSettings
from crawler.web.urls import page_id
from stream.schema.records import Decision, Page
from tests.support.crawl_driver import Driver, Store, crawl, hits_of, settings_for
from tests.support.loopback import Reply, Web, page, redirect
from tests.support.waiting import wait_until

SITES = [f"site{n}.test" for n in range(6)]


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


def told(pages: list[Page], site: str) -> list[tuple[object, ...]]:
    """What is the same on every run of the pages of a site, in order."""
    return [
        (p.id, p.url, p.outcome, p.reason, p.status, p.final_url, p.encoding, p.body, p.found_by, tuple(p.hits))
        for p in pages
        if p.site == site
    ]


def test_a_crawl_is_complete_and_polite(loopback: Web) -> None:
    """Every hit has its record, discovered pages are found, and the server saw robots, delay and one at a time kept."""
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
        assert min(loopback.gaps(site)) > 0.1  # the delay, less what scheduling and connecting may take
    assert not loopback.paths("elsewhere.test")


def test_sites_are_crawled_side_by_side(loopback: Web) -> None:
    """While one site keeps its visitor waiting, the others go on."""
    release = threading.Event()

    async def held(request: web.Request) -> web.StreamResponse:
        while not release.is_set():
            await asyncio.sleep(0.01)
        return web.Response(text="<p>late", content_type="text/html")

    loopback.routes["slow.test/x"] = held
    driver = Driver(settings_for(loopback.target), Store())
    try:
        driver.round(hits_of("http://slow.test/x", "http://site0.test/hit/1", "http://site1.test/hit/1"))
        driver.run_until(lambda: driver.store.of("site0.test") and driver.store.of("site1.test"))
        assert not driver.store.of("slow.test")
        release.set()
        driver.run()
        assert driver.store.of("slow.test")[0].outcome == "fetched"
    finally:
        release.set()
        driver.close()


def test_crashes_and_rollbacks_change_nothing(loopback: Web) -> None:
    """Processes that die and batches that are rolled back at random leave the same pages as an undisturbed run."""
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
        assert told(store.pages, site) == told(calm, site)
        assert not loopback.overlaps(site)
        assert not any(path.startswith("/private") for path in loopback.paths(site))


def test_a_new_process_waits_before_it_asks_again(loopback: Web) -> None:
    """What a killed process had under way is not asked again within the delay."""
    settings = settings_for(loopback.target, delay_s=0.4)
    store = Store()
    first = Driver(settings, store)
    first.round(hits_of("http://site0.test/hit/1"))
    while not loopback.seen:
        first.round(commit=True)
    died = time.monotonic()
    first.close()
    second = Driver(settings, store)
    second.round()
    second.run_until(lambda: len(loopback.seen) >= 2)
    second.close()
    assert loopback.seen[1].began - died > 0.2


def test_an_answer_to_a_lost_claim_is_dropped(loopback: Web) -> None:
    """An answer that waits while its partition is lost changes nothing: the request is made again, recorded once."""
    driver = Driver(settings_for(loopback.target), Store())
    try:
        driver.round(hits_of("http://site0.test/map/0"))
        driver.stage.committed()
        results = driver.stage._thread._done
        wait_until(lambda: not results.empty(), "a result that is not collected", 10)
        driver.stage.lost(range(4))
        pages = driver.run()
    finally:
        driver.close()
    assert loopback.paths("site0.test").count("/robots.txt") == 2
    assert len(pages) == len({page.id for page in pages})


def test_a_decision_stops_the_site_and_accounts_for_its_hits(loopback: Web) -> None:
    """After a decision nothing more is asked of the site, and its other hits are recorded as refused."""
    hits = hits_of(*(f"http://site0.test/map/{n}" for n in range(3)), "http://site1.test/hit/1")
    driver = Driver(settings_for(loopback.target, delay_s=0.2), Store())
    try:
        driver.round(hits)
        driver.run_until(lambda: driver.store.of("site0.test"))
        pages = driver.run([Decision(id="site0.test", site="site0.test", stop=True, reason="llm")])
    finally:
        driver.close()
    decided = [page for page in pages if page.site == "site0.test"]
    assert [page.outcome for page in decided] == ["fetched", "refused", "refused"]
    assert {page.reason for page in decided[1:]} == {"site_decided"}
    assert {page.page_id for page in decided} == {page_id(hit.url) for hit in hits[:3]}
    assert len(loopback.paths("site0.test")) == 2 and len(loopback.paths("site1.test")) > 3


def test_overloaded_and_absent_hosts(loopback: Web) -> None:
    """429 is waited out and asked again; each hit of a host that is not there is refused with why."""
    answers = iter([429, 429, 200])

    async def busy(request: web.Request) -> web.StreamResponse:
        return web.Response(status=next(answers), text="<p>x", content_type="text/html", headers={"Retry-After": "0"})

    loopback.routes["busy.test/x"] = busy
    resolve_to = {"busy.test": loopback.target, "absent.test": "127.0.0.1:1"}
    settings = settings_for(loopback.target, resolve_to=resolve_to, retry_s=0.1)
    pages = crawl(settings, hits_of("http://busy.test/x", "http://absent.test/1", "http://absent.test/2"))
    ends = {page.url: (page.outcome, page.reason) for page in pages}
    assert ends == {
        "http://busy.test/x": ("fetched", ""),
        "http://absent.test/1": ("refused", "connection"),
        "http://absent.test/2": ("refused", "connection"),
    }
    starts = [seen.began for seen in loopback.seen if seen.path == "/x"]
    assert starts[1] - starts[0] > 0.05 and starts[2] - starts[1] > 0.1


def test_private_hosts_are_never_connected(loopback: Web) -> None:
    """Without the override and the test switch, hits on loopback are refused and the server sees nobody."""
    settings = CrawlSettings(contact="a@example.org", delay_s=0.02, retry_s=0.02)
    pages = crawl(settings, hits_of(f"http://127.0.0.1:{loopback.port}/x", f"http://[::1]:{loopback.port}/x"))
    assert [(page.outcome, page.reason) for page in pages] == [("refused", "private_address")] * 2
    assert loopback.seen == []


def requests_of(driver: Driver, **labels: str) -> float:
    samples = (sample for family in driver.metrics.registry.collect() for sample in family.samples)
    counted = (sample for sample in samples if sample.name == "farmwatch_fetch_requests_total")
    return sum(sample.value for sample in counted if labels.items() <= sample.labels.items())


def test_counts_of_a_crawl(loopback: Web) -> None:
    """Metrics of committed facts and the frontier's own counts agree with the pages."""
    store = Store()
    driver = Driver(settings_for(loopback.target), store)
    try:
        driver.run(HITS)
        driver.round(HITS, commit=False)  # counts of a batch that is rolled back do not show
        driver.round()
    finally:
        driver.close()
    sample = driver.metrics.registry.get_sample_value
    fetched = sum(page.outcome == "fetched" for page in store.pages)
    assert requests_of(driver) == len(loopback.seen)  # every request that the server saw, hops included
    assert requests_of(driver, kind="page", outcome="redirected", status="3xx") == len(SITES)
    assert requests_of(driver, kind="page", outcome="fetched", status="2xx", reason="") == fetched
    assert requests_of(driver, kind="robots", outcome="fetched") == len(SITES)
    assert sample("farmwatch_search_results_total", {"source": "file", "outcome": "queued"}) == len(HITS)
    assert sample("farmwatch_robots_lookups_total", {"result": "disallowed"}) == len(SITES)
    assert sample("farmwatch_fetch_inflight") == 0 and sample("farmwatch_frontier_sites", {"state": "active"}) == 0
    left = frontier_left(store, len(store.states))  # type: ignore[arg-type]
    assert (left.sites, left.active, left.queued, left.fetched) == (len(SITES), 0, 0, fetched)


def test_closing_does_not_wait_for_slow_servers(loopback: Web) -> None:
    """A stage with a request that hangs closes at once, and its thread ends."""

    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    loopback.routes["hang.test/robots.txt"] = hang
    driver = Driver(settings_for(loopback.target, idle_timeout_s=20.0, total_timeout_s=20.0), Store())
    driver.round(hits_of("http://hang.test/x"))
    while not loopback.seen:
        driver.round()
    assert driver.stage.ready()
    driver.close()
    assert not driver.stage.ready()
    assert not [thread for thread in threading.enumerate() if thread.name == "fetch"]


def test_hosts_at_one_address_take_turns(loopback: Web) -> None:
    """Where an address has its turn, jobs are put off and come again: counted as such, and as no request or failure."""
    settings = settings_for(loopback.target, address_delay_s=0.4, use_sitemaps=False, use_links=False)
    driver = Driver(settings, Store())
    try:
        pages = driver.run(hits_of(*(f"http://{site}/map/0" for site in SITES[:4])))
    finally:
        driver.close()
    assert [(page.outcome, page.visit) for page in pages] == [("fetched", 1)] * 4
    starts = sorted(seen.began for seen in loopback.seen)
    assert len(starts) == 8 and min(later - earlier for earlier, later in itertools.pairwise(starts)) > 0.3
    kinds = ("robots", "page")
    sample = driver.metrics.registry.get_sample_value
    assert sum(sample("farmwatch_fetch_deferred_total", {"kind": kind}) or 0 for kind in kinds) > 0
    assert requests_of(driver, outcome="deferred") == 0
