"""CRAWL while no name resolves: our own outage costs time and no site."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from structlog.testing import capture_logs

from crawler.fetch.address_guard import resolved
from crawler.fetch.dns_lookup import Found, Nameservers
from crawler.settings import CrawlSettings
from tests.support.web.crawl_driver import crawl, driving, hits_of, settings_for
from tests.support.web.loopback import Web, page

SITES = [f"site{n}.test" for n in range(6)]
HITS = hits_of(*(f"http://{site}/{n}" for n in range(2) for site in SITES))


class Resolver(AbstractResolver):
    """Resolves all names but the dead ones to a port of this machine, and none while it is down."""

    def __init__(self, port: int, dead: Sequence[str] = ()) -> None:
        self.port, self.dead = port, dead
        self.is_down = False
        self.failures = 0

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """The address, or an error while the resolver is down."""
        if self.is_down or host in self.dead:
            self.failures += 1
            raise OSError("temporary failure in name resolution")
        return [resolved(host, "127.0.0.1", self.port)]

    async def close(self) -> None:
        """Nothing to release."""


@pytest.fixture
def loopback() -> Iterator[Web]:
    """Six sites of two pages each."""
    with Web() as served:
        served.routes |= {f"{site}/{n}": page("page") for site in SITES for n in range(2)}
        yield served


def by_name(loopback: Web) -> CrawlSettings:
    """Settings that resolve names; a slow machine ends no streak of failures, which lasts ten times retry_s."""
    return settings_for(loopback.target, resolve_to={}, use_sitemaps=False, retry_s=0.15)


def test_no_site_is_given_up_while_nothing_resolves(loopback: Web) -> None:
    """A resolver fails for all and recovers: every page is fetched once, and the outage is logged."""
    resolver = Resolver(loopback.port)
    resolver.is_down = True
    with driving(by_name(loopback), resolver=resolver) as driver, capture_logs() as logs:
        driver.round(HITS)
        driver.run_until(lambda: driver.at_rest or resolver.failures >= 36)  # twice the limit for a site
        assert not driver.at_rest, "all sites are given up"
        resolver.is_down = False
        pages = driver.run()
    assert sorted(page.url for page in pages) == sorted(hit.url for hit in HITS)
    assert {page.outcome for page in pages} == {"fetched"}
    events = [entry["event"] for entry in logs]
    assert events.count("no_network") == 1 and "network_is_back" in events


@pytest.mark.parametrize("dead", [1, 5])
def test_dead_sites_among_working_ones_are_given_up(loopback: Web, dead: int) -> None:
    """Names that do not resolve while others do end with that reason, even if most names fail."""
    resolver = Resolver(loopback.port, SITES[:dead])
    pages = crawl(by_name(loopback), HITS, resolver=resolver)
    assert {page.site for page in pages if (page.outcome, page.reason) == ("refused", "dns")} == set(SITES[:dead])
    assert {page.site for page in pages if page.outcome == "fetched"} == set(SITES[dead:])
    assert len(pages) == len(HITS)


def test_each_retry_asks_the_nameservers(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a lookup takes longer than the wait before a retry: no attempt is answered by the last failure."""
    asked: list[str] = []

    async def look_up(_: Nameservers, host: str, timeout_s: float) -> Found:
        asked.append(host)
        await asyncio.sleep(timeout_s)  # as long as no nameserver answers
        raise TimeoutError

    monkeypatch.setattr(Nameservers, "look_up", look_up)
    settings = settings_for(loopback.target, resolve_to={}, use_sitemaps=False, retry_s=0.1, connect_timeout_s=0.3)
    (page,) = crawl(settings, hits_of("http://silent.test/"))
    assert (page.outcome, page.reason) == ("refused", "dns")
    assert asked == ["silent.test"] * settings.tries
