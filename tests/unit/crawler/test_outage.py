"""CRAWL while nothing can be resolved: an outage on our side costs time, and no site."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from structlog.testing import capture_logs

from crawler.settings import CrawlSettings
from tests.support.crawl_driver import Driver, Store, crawl, hits_of, settings_for
from tests.support.loopback import Web, page

SITES = [f"site{n}.test" for n in range(6)]
HITS = hits_of(*(f"http://{site}/{n}" for n in range(2) for site in SITES))


class Resolver(AbstractResolver):
    """All names lead to a port of this machine, but those that are dead, and none while it is down."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.is_down = False
        self.dead: set[str] = set()
        self.failures = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The address, or the error of a resolver that cannot be reached."""
        if self.is_down or host in self.dead:
            self.failures += 1
            raise OSError("temporary failure in name resolution")
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self.port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing to release."""


@pytest.fixture
def loopback() -> Iterator[Web]:
    """Six sites of two pages each."""
    with Web() as served:
        served.routes |= {f"{site}/{n}": page("page") for site in SITES for n in range(2)}
        yield served


def by_name(loopback: Web) -> CrawlSettings:
    """Settings that resolve names."""
    return settings_for(loopback.target, resolve_to={}, use_sitemaps=False)


def test_no_site_is_given_up_while_nothing_resolves(loopback: Web) -> None:
    """A resolver that fails for all and works later: every page is fetched once, and the outage is told."""
    resolver = Resolver(loopback.port)
    resolver.is_down = True
    driver = Driver(by_name(loopback), Store(), resolver=resolver)
    try:
        with capture_logs() as logs:
            driver.round(HITS)
            while resolver.failures < 100:
                assert not driver.at_rest, "all sites are given up"
                driver.round()
                time.sleep(0.005)
            resolver.is_down = False
            pages = driver.run()
    finally:
        driver.close()
    assert sorted(page.url for page in pages) == sorted(hit.url for hit in HITS)
    assert {page.outcome for page in pages} == {"fetched"}
    events = [entry["event"] for entry in logs]
    assert events.count("no_network") == 1 and "network_is_back" in events


@pytest.mark.parametrize("dead", [1, 5])
def test_dead_sites_among_working_ones_are_given_up(loopback: Web, dead: int) -> None:
    """Names that do not resolve while others do end with that word, one or most of them."""
    resolver = Resolver(loopback.port)
    resolver.dead = set(SITES[:dead])
    pages = crawl(by_name(loopback), HITS, resolver=resolver)
    assert {page.site for page in pages if (page.outcome, page.reason) == ("refused", "dns")} == resolver.dead
    assert {page.site for page in pages if page.outcome == "fetched"} == set(SITES[dead:])
    assert len(pages) == len(HITS)
