"""Politeness, measured from the server's side: 500 hosts, 50 addresses, 100 registrable domains, and kill -9.

The crawler's process is killed again and again and started anew. The server's log is the only witness: when a request
came, when its answer was sent, to which host and address. From the earliest moment at which a request can have come to
the moment at which the next one was read there must be the delay, less a tolerance: a request that must connect first
takes longer to arrive than one on a connection that is there, and on a busy machine anything may take long.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest

from crawler.hits_file import make_hit
from crawler.settings import CrawlSettings
from stream.records import Page
from tests.crawl_process import Crawl
from tests.raw_web import RawWeb, Seen, Visit, reply

HOSTS, ADDRESSES, DOMAINS = 500, 50, 100
TOLERANCE_S = 0.05  # and as long as this machine was late at worst, up to half of the least delay
HOST_S, DOMAIN_S, ADDRESS_S = 1.2, 0.8, 0.5
LOST_S = 0.7  # an answer that came so shortly before a kill may not have been committed, and is not known then
RETRY_S, CAP_S = 1.5, 5.0
CRAWL_DELAY_S = 2.5
LIMIT_S = 300.0


@dataclass(frozen=True)
class Host:
    """A host: where it stands, and what it asks for."""

    name: str
    domain: str
    address: str
    crawl_delay_s: float = 0.0
    busy: str = ""  # the status of its first answer to a page, if that is none
    retry_after: str = ""  # of that answer; "date" is one of four seconds later
    wait_s: float = 0.0  # what must lie between that answer and the next request


def _host(number: int) -> Host:
    """Hosts of an address are of ten domains, hosts of a domain at five addresses."""
    domain = f"domain{(number * 7 + number // 10) % DOMAINS}.test"
    known = (f"h{number}.{domain}", domain, f"127.0.1.{number % ADDRESSES + 1}")
    asks = {
        1: Host(*known, crawl_delay_s=CRAWL_DELAY_S),
        3: Host(*known, busy="429 Slower", retry_after="3", wait_s=3.0),
        5: Host(*known, busy="503 Busy", retry_after="date", wait_s=3.0),  # a date is in whole seconds
        7: Host(*known, busy="429 Slower", retry_after="0", wait_s=RETRY_S),
        9: Host(*known, busy="503 Busy", retry_after="100000", wait_s=CAP_S),
        11: Host(*known, busy="429 Slower", retry_after="", wait_s=RETRY_S),
    }
    return asks.get(number % 20, Host(*known))


ALL = [_host(number) for number in range(HOSTS)]
BY_NAME = {host.name: host for host in ALL}


class Answers:
    """What the hosts answer, each answer a little later than its request, so that two at once would be seen."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    async def __call__(self, visit: Visit) -> None:
        """Answer a request."""
        host = BY_NAME[visit.host]
        await asyncio.sleep(self._chance.uniform(0.0, 0.05))
        if visit.path == "/robots.txt":
            asked = f"User-agent: *\nCrawl-delay: {host.crawl_delay_s}\n" if host.crawl_delay_s else ""
            await reply(asked, content_type="text/plain")(visit)
        elif host.busy and visit.path == "/0" and visit.number == 1:
            when = formatdate(time.time() + 4, usegmt=True) if host.retry_after == "date" else host.retry_after
            await reply("", host.busy, **({"retry_after": when} if when else {}))(visit)
        else:
            await reply(f"<!doctype html><p>{visit.host}{visit.path}</p>")(visit)


def settings(port: int) -> CrawlSettings:
    """The delays under test; everything that would make further requests is off."""
    return CrawlSettings(
        contact="https://crawler.example/about",
        delay_s=HOST_S,
        domain_delay_s=DOMAIN_S,
        address_delay_s=ADDRESS_S,
        retry_s=RETRY_S,
        park_cap_s=CAP_S,
        tries=5,
        max_in_flight=32,
        use_sitemaps=False,
        ask_tdmrep=False,
        allow_private=True,
        refetch_fetched_s=0.0,
        resolve_to={host.name: f"{host.address}:{port}" for host in ALL},
    )


@dataclass(frozen=True)
class Crawled:
    """A crawl with kills, as the server and the log tell of it."""

    seen: list[Seen]
    pages: list[Page]
    wanted: list[str]
    kills: list[float]  # monotonic
    late_s: float

    def by(self, name: Callable[[Seen], str]) -> Iterable[list[Seen]]:
        """The requests in groups, each in order."""
        ordered = sorted(self.seen, key=lambda seen: (name(seen), seen.began))
        return (list(group) for _, group in itertools.groupby(ordered, key=name))

    def least_gap(self, name: Callable[[Seen], str]) -> float:
        """The least time between two starts of a group, seconds."""
        return min(b.began - a.earliest for group in self.by(name) for a, b in itertools.pairwise(group))


def crawl(folder: Path, *, pages: int, kills: int, between_s: tuple[float, float]) -> Crawled:
    """Crawl all hosts to the end, killed so many times on the way."""
    seed = int(os.environ.get("FARMWATCH_KILL_SEED", random.randrange(2**32)))
    print(f"FARMWATCH_KILL_SEED={seed}")
    chance = random.Random(seed)
    addresses = [f"127.0.1.{n + 1}" for n in range(ADDRESSES)]
    killed = []
    with RawWeb(Answers(seed), addresses) as web:
        wanted = [f"http://{host.name}/{n}" for host in ALL for n in range(pages)]
        with Crawl(folder, f"sqlite:{folder / 'log'}", settings(web.port)) as crawling:
            crawling.hits([make_hit({"url": url}) for url in wanted])
            began = time.monotonic()
            crawling.start()
            for _ in range(kills):
                time.sleep(chance.uniform(*between_s))
                crawling.kill()
                killed.append(time.monotonic())
                crawling.start()
            crawling.finish(LIMIT_S)
            print(f"{len(web.seen)} requests in {time.monotonic() - began:.1f} s, {kills} kills")
            crawling.stop()
            return Crawled(list(web.seen), crawling.pages(), wanted, killed, web.longest_round_s)


def check(crawled: Crawled) -> None:
    """The whole claim, from the server's log."""
    tolerance_s = min(TOLERANCE_S + crawled.late_s, ADDRESS_S / 2)
    print(f"tolerance {tolerance_s:.3f} s")
    gaps = {
        "host": (crawled.least_gap(lambda s: s.host), HOST_S),
        "domain": (crawled.least_gap(lambda s: BY_NAME[s.host].domain), DOMAIN_S),
        "address": (crawled.least_gap(lambda s: s.address), ADDRESS_S),
    }
    for name, (gap, delay_s) in gaps.items():
        print(f"{name}: least gap {gap:.3f} s, delay {delay_s:.3f} s")
    for name, (gap, delay_s) in gaps.items():
        assert gap >= delay_s - tolerance_s, name
    again = across_kills = 0
    for requests in crawled.by(lambda s: s.host):
        host = BY_NAME[requests[0].host]
        assert {seen.address for seen in requests} == {host.address}
        for earlier, later in itertools.pairwise(requests):
            assert later.began >= earlier.ended, f"{host.name}: two requests at once"
            gap = later.began - earlier.earliest
            if host.crawl_delay_s and earlier.path != "/robots.txt":
                assert gap >= host.crawl_delay_s - tolerance_s, f"{host.name}: Crawl-delay"
            killed = [at for at in crawled.kills if earlier.began <= at <= later.began]
            if earlier.status in ("429", "503") and not any(at < earlier.ended + LOST_S for at in killed):
                across_kills += bool(killed)
                assert gap >= host.wait_s - tolerance_s, f"{host.name}: Retry-After {host.retry_after!r}"
        pages = Counter(seen.path for seen in requests if seen.status == "200")
        again += sum(pages.values()) - len(pages)
    print(f"{again} pages asked for again, {across_kills} waits for Retry-After across a kill")
    assert across_kills > 0
    assert again <= HOSTS * len(crawled.kills)
    assert Counter(page.url for page in crawled.pages) == Counter(crawled.wanted)
    assert {(page.outcome, page.reason) for page in crawled.pages} == {("fetched", "")}
    assert max(Counter(page.id for page in crawled.pages).values()) == 1
    last = max(seen.began for seen in crawled.seen)
    assert sum(at < last for at in crawled.kills) == len(crawled.kills), "the crawl was over too soon to be killed"


@pytest.mark.kill
def test_politeness_as_the_server_sees_it(tmp_path: Path) -> None:
    """Per host, domain and address no start is too soon, whatever is killed; Crawl-delay and Retry-After are kept."""
    check(crawl(tmp_path / "crawl", pages=2, kills=5, between_s=(1.0, 5.0)))


@pytest.mark.chaos
def test_politeness_over_many_kills(tmp_path: Path) -> None:
    """The long form: five pages a host, and thirty kills."""
    check(crawl(tmp_path / "crawl", pages=5, kills=30, between_s=(0.5, 5.0)))
