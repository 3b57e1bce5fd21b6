"""CRAWL over real HTTP on sites that answer with challenges, and on sites with soft 404s."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web

from crawler.frontier.rows import SiteRow, site_key, unpack
from stream.log.contract import partition_of
from stream.schema.records import Page
from tests.support.web.crawl_driver import Driver, Store, crawl, driving, hits_of, settings_for
from tests.support.web.inspecting import FakeInspector
from tests.support.web.loopback import Handler, Reply, Web, held

CHALLENGE = Reply(b"<!doctype html><p>Just a moment", 403, {"Content-Type": "text/html", "CF-Mitigated": "challenge"})


@pytest.fixture
def loopback() -> Iterator[Web]:
    """A web on loopback, empty at first."""
    with Web() as served:
        yield served


def text(heading: str, words: str = "") -> Reply:
    return Reply(f"<!doctype html><h1>{heading}</h1><p>{words}</p>".encode())


def at_first(reply: Reply, times: int, then: Reply) -> Handler:
    """One reply for the first requests, then another."""
    numbers = itertools.count()

    async def answer(request: web.Request) -> web.StreamResponse:
        return (reply if next(numbers) < times else then).response()

    return answer


def ends(pages: list[Page]) -> dict[str, tuple[str, str]]:
    return {page.url.partition(".test/")[2]: (page.outcome, page.reason) for page in pages}


def row_of(driver: Driver, site: str) -> SiteRow:
    states = driver.store.states
    value = states[partition_of(site, len(states))].get(site_key(site))
    assert value is not None
    return unpack(SiteRow, value)


class AnyPath(dict[str, object]):
    """Routes of a.test with one answer for all paths without their own; it has no robots.txt and no sitemap."""

    def __init__(self, answer: object) -> None:
        super().__init__({f"a.test/{name}": Reply(status=404) for name in ("robots.txt", "sitemap.xml")})
        self._answer = answer

    def get(self, key: str, default: object = None) -> object:
        return super().get(key) or (self._answer if key.startswith("a.test") else default)


def test_a_challenged_page_is_fetched_later(loopback: Web) -> None:
    """A challenge on one page parks the site; it is asked again, and all pages are fetched, at their distances."""
    loopback.routes |= {"a.test/0": at_first(CHALLENGE, 2, text("zero")), "a.test/1": text("one")}
    settings = settings_for(loopback.target, use_sitemaps=False, delay_s=0.2, retry_s=0.5)
    pages = crawl(settings, hits_of("http://a.test/0", "http://a.test/1"), inspector=FakeInspector())
    assert ends(pages) == {"0": ("fetched", ""), "1": ("fetched", "")} and len(pages) == 2
    paths = loopback.paths("a.test")
    assert paths[0] == "/robots.txt" and len(paths[1]) == 33 and paths[2:] == ["/0", "/0", "/0", "/1"]
    gaps = loopback.gaps("a.test")
    assert min(gaps) >= 0.1 and gaps[2] >= 0.4 and gaps[3] >= 0.9  # less the delays of a busy machine
    assert not loopback.overlaps("a.test")


def test_soft_404s_are_found_and_pages_are_kept(loopback: Web) -> None:
    """Six of six pages "not found" with changing recommendations are found; the site's other pages are kept."""
    numbers = itertools.count()

    async def missing(request: web.Request) -> web.StreamResponse:
        return text("Sorry", f"You may like number {next(numbers)}").response()

    loopback.routes = AnyPath(missing)  # type: ignore[assignment]
    loopback.routes |= {f"a.test/real/{number}": text(f"Number {number}") for number in range(4)}
    urls = [*(f"http://a.test/gone/{n}" for n in range(6)), *(f"http://a.test/real/{n}" for n in range(4))]
    with driving(settings_for(loopback.target), Store(), inspector=FakeInspector()) as driver:
        found = ends(driver.run(hits_of(*urls)))
        samples = {
            tuple(sample.labels.values()): sample.value
            for family in driver.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "farmwatch_fetch_requests_total" and sample.labels["reason"] == "soft_404"
        }
    no_page, fetched = ("no_page", "soft_404"), ("fetched", "")
    assert found == {**{f"gone/{n}": no_page for n in range(6)}, **{f"real/{n}": fetched for n in range(4)}}
    assert sum(samples.values()) == 6
    assert sum(len(path) == 33 for path in loopback.paths("a.test")) == 1


def test_a_rolled_back_probe_is_repeated_with_the_same_url(loopback: Web) -> None:
    """If its answer is lost before the commit, the probe comes again, and its outline is there for the first page."""
    may_answer = threading.Event()
    loopback.routes = AnyPath(held(text("Sorry"), may_answer))  # type: ignore[assignment]
    with driving(settings_for(loopback.target), Store(), inspector=FakeInspector()) as driver:
        driver.round(hits_of("http://a.test/0"))
        driver.run_until(lambda: len(loopback.paths("a.test")) == 2)
        may_answer.set()
        driver.wait_for_result()
        driver.round(commit=False)
        assert not row_of(driver, "a.test").probed
        driver.run_until(lambda: driver.at_rest)
        row = row_of(driver, "a.test")
    assert (row.probed, row.outline) == (True, b"Sorry")
    probes = [path for path in loopback.paths("a.test") if len(path) == 33]
    assert len(probes) == 2 and len(set(probes)) == 1
    assert ends(driver.store.pages) == {"0": ("no_page", "soft_404")}
