"""Politeness, measured by the server: 110 hosts (in the long form 500), 50 addresses, their domains, and kill -9.

The crawler's process is killed and restarted repeatedly. The server's log is the only witness: it has the time, host
and address of each request, and the time of its answer. Between the earliest possible arrival of one request and the
read of the next there must be the delay, less a tolerance: a new connection takes longer than an open one, and a busy
machine may delay anything.

A fifth of the hosts redirect a page to their www twin, and for another fifth robots.txt is on a host that ten of them
share. Such hosts have no row in the frontier, so that a process knows only its own requests to them. Hence two
exemptions, and no others:

- Across a kill, or after a partition moves to another process, these hosts are spaced by the delay of their domain, and
  not by their own delay or Crawl-delay. Within a process they are spaced as all others.
- With two processes, both may request a shared host; it is spaced by its domain's delay on average, as are domains and
  addresses.

A host's answer shortly before a kill, or before its partition moves to the other process, may not be committed; then it
is not known and not binding.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest

from crawler.settings import CrawlSettings
from crawler.web.hits_file import make_hit
from stream.schema.records import Page
from tests.support.sizes import kill_chance
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import crawl_settings
from tests.support.web.crawl_process import FIRST, INSPECTS, Crawl
from tests.support.web.raw_web import RawWeb, Seen, Visit, reply

HOSTS, ADDRESSES, DOMAINS, SHARED = 500, 50, 100, 10
TOLERANCE_S = 0.05  # plus this machine's largest delay, up to half of the least delay
HOST_S, DOMAIN_S, ADDRESS_S = 1.2, 0.8, 0.5
LOST_S = 2.0  # an answer shortly before a kill may not have been committed, on a busy machine
RETRY_S, CAP_S = 1.5, 5.0
CRAWL_DELAY_S = 2.5
LIMIT_S = 300.0
MAX_IN_FLIGHT = 32
SECOND = "crawl-2"


@dataclass(frozen=True)
class Host:
    """A host: its address and its requested delays."""

    name: str
    domain: str
    address: str
    crawl_delay_s: float = 0.0
    busy: str = ""  # the status of its first answer to a page, if it is an error
    retry_after: str = ""  # of that answer; "date" is a date four seconds later
    wait_s: float = 0.0  # the required time between that answer and the next request
    twin: str = ""  # the host that its second page redirects to
    robots: str = ""  # the host of its robots.txt
    is_site: bool = True  # whether hits name it


def _address(number: int) -> str:
    return f"127.0.1.{number % ADDRESSES + 1}"


def _host(number: int) -> Host:
    """An address has hosts of ten domains, a domain has hosts at five addresses."""
    domain = f"domain{(number * 7 + number // 10) % DOMAINS}.test"
    known = (f"h{number}.{domain}", domain, _address(number))
    asks = {
        1: Host(*known, crawl_delay_s=CRAWL_DELAY_S),
        3: Host(*known, busy="429 Slower", retry_after="3", wait_s=3.0),
        5: Host(*known, busy="503 Busy", retry_after="date", wait_s=3.0),  # a date has whole seconds
        7: Host(*known, busy="429 Slower", retry_after="0", wait_s=RETRY_S),
        9: Host(*known, busy="503 Busy", retry_after="100000", wait_s=CAP_S),
        11: Host(*known, busy="429 Slower", retry_after="", wait_s=RETRY_S),
    }
    if number % 10 in (2, 6):
        return Host(*known, twin=f"www.{known[0]}")
    if number % 10 in (4, 8):
        return Host(*known, robots=_shared(number // 10).name)
    return asks.get(number % 20, Host(*known))


def _twin(number: int) -> Host:
    """A twin at another address than its host; half of the twins ask for their own Crawl-delay."""
    host = _host(number)
    delay_s = CRAWL_DELAY_S if number % 10 == 6 else 0.0
    return Host(host.twin, host.domain, _address(number + 21), delay_s, is_site=False)


def _shared(number: int) -> Host:
    number %= SHARED
    return Host(f"robots.shared{number}.test", f"shared{number}.test", _address(5 * number), is_site=False)


ALL = [_host(number) for number in range(HOSTS)]
TWINS = [_twin(number) for number, host in enumerate(ALL) if host.twin]
BY_NAME = {host.name: host for host in [*ALL, *TWINS, *(_shared(number) for number in range(SHARED))]}


class Answers:
    """Answers of the hosts, each sent a little after its request, so that concurrent requests are seen."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    async def __call__(self, visit: Visit) -> None:
        host = BY_NAME[visit.host]
        await asyncio.sleep(self._chance.uniform(0.0, 0.05))
        if visit.path == "/robots.txt" and host.robots:
            await reply("", "301 Moved", location=f"http://{host.robots}/robots.txt")(visit)
        elif visit.path == "/robots.txt":
            asked = f"User-agent: *\nCrawl-delay: {host.crawl_delay_s}\n" if host.crawl_delay_s else ""
            await reply(asked, content_type="text/plain")(visit)
        elif visit.path == "/1" and host.twin:
            await reply("", "301 Moved", location=f"http://{host.twin}/1")(visit)
        elif host.busy and visit.path == "/0" and visit.number == 1:
            when = formatdate(time.time() + 4, usegmt=True) if host.retry_after == "date" else host.retry_after
            await reply("", host.busy, **({"retry_after": when} if when else {}))(visit)
        elif len(visit.path) == 33:
            await reply("", "404 None")(visit)  # the probe
        else:
            await reply(f"<!doctype html><p>{visit.host}{visit.path}</p>")(visit)


def settings(port: int) -> CrawlSettings:
    """The tested delays; everything that would cause further requests is off."""
    return crawl_settings(
        delay_s=HOST_S,
        domain_delay_s=DOMAIN_S,
        address_delay_s=ADDRESS_S,
        retry_s=RETRY_S,
        park_cap_s=CAP_S,
        tries=5,
        max_in_flight=MAX_IN_FLIGHT,
        use_sitemaps=False,
        ask_tdmrep=False,
        allow_private=True,
        refetch_fetched_s=0.0,
        resolve_to={host.name: f"{host.address}:{port}" for host in BY_NAME.values()},
    )


@dataclass(frozen=True)
class Crawled:
    """A crawl with kills, as recorded by the server and the log."""

    seen: list[Seen]
    pages: list[Page]
    hosts: list[Host]
    wanted: list[str]
    kills: list[float]  # monotonic
    late_s: float
    both: tuple[float, float] = (0.0, 0.0)  # start and end of the time with two processes

    @property
    def tolerance_s(self) -> float:
        """The tolerance of a gap: see the module docstring."""
        return min(TOLERANCE_S + self.late_s, ADDRESS_S / 2)

    def by(self, name: Callable[[Seen], str]) -> Iterable[list[Seen]]:
        ordered = sorted(self.seen, key=lambda seen: (name(seen), seen.began))
        return (list(group) for _, group in itertools.groupby(ordered, key=name))

    def least_gap(self, name: Callable[[Seen], str]) -> float:
        return min(b.began - a.earliest for group in self.by(name) for a, b in itertools.pairwise(group))

    def was_killed(self, since: float, until: float) -> bool:
        return any(since <= at <= until for at in self.kills)

    def is_known(self, earlier: Seen, later: Seen) -> bool:
        """Whether the earlier answer was on the log at the later request, and not lost by a kill."""
        moved = self.both[1] and crawler_of(earlier) != crawler_of(later)  # at an unknown time
        return not moved and not self.was_killed(earlier.earliest, min(earlier.ended + LOST_S, later.began))


def crawl(
    folder: Path, *, pages: int, kills: int, between: tuple[int, int], hosts: int = HOSTS, together: int = 0
) -> Crawled:
    """Crawl hosts to the end with this many kills, each after so many requests of the process that is killed.

    With `together`, two processes start, and the second one stops once each has made so many requests.
    """
    chance = kill_chance()
    addresses = [_address(n) for n in range(ADDRESSES)]
    killed: list[float] = []
    both = (0.0, 0.0)
    with RawWeb(Answers(chance.getrandbits(32)), addresses) as web:
        wanted = [f"http://{host.name}/{n}" for host in ALL[:hosts] for n in range(pages)]
        with Crawl(folder, f"sqlite:{folder / 'log'}", settings(web.port), INSPECTS) as crawling:
            crawling.hits([make_hit({"url": url}) for url in wanted])
            began = time.monotonic()
            crawling.start()
            if together:
                crawling.start(SECOND)
            for number in range(kills):
                _until_requested(web, FIRST, requests_of(list(web.seen))[FIRST] + chance.randint(*between))
                if number == kills - 1:
                    _until_a_site_waits(web, killed)
                crawling.kill()
                killed.append(time.monotonic())
                crawling.start()
            if together:
                for member in (FIRST, SECOND):
                    _until_requested(web, member, together)
                crawling.stop(SECOND)
                both = (began, time.monotonic())
            crawling.finish(LIMIT_S)
            print(f"{len(web.seen)} requests in {time.monotonic() - began:.1f} s, {kills} kills")
            crawling.stop()
            seen, pages_seen = list(web.seen), crawling.pages()
            return Crawled(seen, pages_seen, ALL[:hosts], wanted, killed, web.longest_round_s, both)


def crawler_of(seen: Seen) -> str:
    """The process that made the request: a User-Agent is "... (+contact#process)"."""
    return seen.headers["user-agent"].rpartition("#")[2].rstrip(")")


def requests_of(seen: Iterable[Seen]) -> Counter[str]:
    """The number of requests that each process made."""
    return Counter(map(crawler_of, seen))


def _until_requested(web: RawWeb, member: str, number: int) -> None:
    wait_until(lambda: requests_of(list(web.seen))[member] >= number, f"{number} requests of {member}", LIMIT_S, 0.1)


def _until_a_site_waits(web: RawWeb, killed: Sequence[float]) -> None:
    """Wait until a site has asked for a time without requests, its answer is on the log, and the time is not over."""

    def waits(seen: Seen, now: float) -> bool:
        host = BY_NAME[seen.host]
        asked = host.is_site and seen.status in ("429", "503") and host.wait_s > RETRY_S
        logged = not any(seen.earliest <= at <= seen.ended + LOST_S for at in killed)
        return asked and logged and LOST_S + 0.1 <= now - seen.ended <= host.wait_s - 0.5

    wait_until(lambda: any(waits(seen, time.monotonic()) for seen in list(web.seen)), "a site that waits", LIMIT_S)


def check_shared_pace(crawled: Crawled) -> None:
    """No two starts of a domain or an address are too close."""
    gaps = {
        "domain": (crawled.least_gap(lambda s: BY_NAME[s.host].domain), DOMAIN_S),
        "address": (crawled.least_gap(lambda s: s.address), ADDRESS_S),
    }
    for name, (gap, delay_s) in gaps.items():
        print(f"{name}: least gap {gap:.3f} s, delay {delay_s:.3f} s")
        assert gap >= delay_s - crawled.tolerance_s, name


def check_average_pace(crawled: Crawled) -> None:
    """Over the run, no domain or address gets more requests than from one process, but one per move of partitions."""
    shares = requests_of(s for s in crawled.seen if s.began < crawled.both[1])
    print(f"requests while both ran: {dict(shares)}")
    assert len(shares) == 2 and min(shares.values()) >= sum(shares.values()) / 10, "one process did all of it"
    moves = 2 * (len(crawled.kills) + 2)  # each process, at each join, leave and kill
    for name, key, delay_s in (
        ("domain", lambda s: BY_NAME[s.host].domain, DOMAIN_S),
        ("address", lambda s: s.address, ADDRESS_S),
    ):
        most = 0.0
        for requests in crawled.by(key):
            span_s = requests[-1].began - requests[0].earliest
            allowed = span_s / (delay_s - crawled.tolerance_s) + 1
            assert len(requests) <= allowed + moves, f"{name} of {requests[0].host}"
            most = max(most, (len(requests) - 1) * delay_s / max(span_s, delay_s))
        print(f"{name}: {most:.2f} of the rate that its delay allows, at most")


def check_hosts(crawled: Crawled) -> None:
    """Each host has one request at a time, spaced by its delays, and none during its requested waits."""
    across_kills = 0
    for requests in crawled.by(lambda s: s.host):
        host = BY_NAME[requests[0].host]
        assert {seen.address for seen in requests} == {host.address}
        if crawled.both[1] and not host.is_site and not host.name.startswith("www."):
            continue  # two processes may share it
        for earlier, later in itertools.pairwise(requests):
            assert later.began >= earlier.ended, f"{host.name}: two requests at once"
            is_new = crawler_of(earlier) != crawler_of(later) or crawled.was_killed(earlier.earliest, later.began)
            if is_new and not host.is_site:
                continue
            gap = later.began - earlier.earliest
            delay_s = max(HOST_S, host.crawl_delay_s if crawled.is_known(earlier, later) else 0.0)
            assert gap >= delay_s - crawled.tolerance_s, f"{host.name}: {earlier.path} and {later.path}"
            if earlier.status in ("429", "503") and crawled.is_known(earlier, later):
                across_kills += crawled.was_killed(earlier.ended, later.began)
                assert gap >= host.wait_s - crawled.tolerance_s, f"{host.name}: Retry-After {host.retry_after!r}"
    print(f"{across_kills} waits for Retry-After across a kill")
    assert across_kills > 0 or crawled.both[1]


def check_pages(crawled: Crawled) -> None:
    """Each page exists once; it was requested again only if a kill came before its answer was on the log."""
    again = 0
    for requests in crawled.by(lambda s: s.host + s.path):
        if requests[0].path == "/robots.txt":
            continue
        for earlier, later in itertools.pairwise(requests):
            again += earlier.status not in ("429", "503")
            if crawled.both[1]:  # partitions move, and their new owner repeats requests in flight
                continue
            # the target of a redirect may be answered much later
            until = later.began if earlier.status == "301" else earlier.ended + LOST_S
            assert earlier.status in ("429", "503") or crawled.was_killed(earlier.earliest, until), requests[0]
    print(f"{again} pages asked for again")
    assert again <= MAX_IN_FLIGHT * (2 * len(crawled.kills) + 2)
    assert Counter(page.url for page in crawled.pages) == Counter(crawled.wanted)
    assert {(page.outcome, page.reason) for page in crawled.pages} == {("fetched", "")}
    assert max(Counter(page.id for page in crawled.pages).values()) == 1
    led = {page.url: page.final_url for page in crawled.pages if page.final_url != page.url}
    assert led == {url: url.replace("//", "//www.") for h in crawled.hosts if h.twin and (url := f"http://{h.name}/1")}
    last = max(seen.began for seen in crawled.seen)
    assert sum(at < last for at in crawled.kills) == len(crawled.kills), "the crawl was over too soon to be killed"


def check(crawled: Crawled) -> None:
    """All checks, from the server's log."""
    print(f"tolerance {crawled.tolerance_s:.3f} s")
    (check_average_pace if crawled.both[1] else check_shared_pace)(crawled)
    check_hosts(crawled)
    check_pages(crawled)


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Future[Crawled], Future[Crawled]]]:
    """Both short forms, run concurrently because they mostly wait."""
    folder = tmp_path_factory.mktemp("polite")
    with ThreadPoolExecutor(2) as both:
        one = both.submit(crawl, folder / "one", pages=2, kills=3, between=(20, 70), hosts=110)
        two = both.submit(crawl, folder / "two", pages=2, kills=1, between=(40, 70), hosts=110, together=60)
        yield one, two


@pytest.mark.kill
def test_politeness_as_the_server_sees_it(crawls: tuple[Future[Crawled], Future[Crawled]]) -> None:
    """No request to a host, domain or address is too early, whatever is killed; delays asked for are kept."""
    check(crawls[0].result())


@pytest.mark.kill
def test_two_processes_are_as_polite_as_one(crawls: tuple[Future[Crawled], Future[Crawled]]) -> None:
    """Two processes, one of them killed, never request a host at once or too early, nor in sum more than one may."""
    check(crawls[1].result())


@pytest.mark.chaos
def test_politeness_over_many_kills(tmp_path: Path) -> None:
    """The long form: five pages of each of 500 hosts, and thirty kills."""
    check(crawl(tmp_path / "crawl", pages=5, kills=30, between=(0, 150)))
