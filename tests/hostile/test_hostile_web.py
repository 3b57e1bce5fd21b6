"""The hostile web against the real crawler: every attack at once, while 200 normal sites are crawled to the end.

There are two crawls, in separate processes on the embedded log, through real DNS, real TCP and the guard: one of the
normal sites alone, which shows what they cost on this machine, and one of everything. Each attack's row is a separate
test on the results of the second crawl.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp.http_parser
import pytest
import zstandard

from crawler.settings import CrawlSettings
from crawler.web.hits_file import make_hit
from crawler.web.urls import normalise
from stream.schema.records import Page
from tests.hostile.against_http import BODIES, CONTENT, LENGTHS, REDIRECTS, STATUSES, TLS, WIRE
from tests.hostile.against_ways import HUBBED, HUBS, NAMES, ROBOTS, TRAPS, hubbed
from tests.hostile.answers import WAY_THERE, Attack
from tests.hostile.internet import INTRANET, PUBLIC, Certificates
from tests.support.sizes import LONG
from tests.support.web.crawl_driver import crawl_settings
from tests.support.web.crawl_process import Crawl
from tests.support.web.loopback_dns import LoopbackDns, Zone
from tests.support.web.raw_web import RawWeb, Seen, Visit, reply

# Each attack is its own host under hostile.test, with a robots.txt that allows everything unless that is the attack.
ATTACKS = [*BODIES, *LENGTHS, *WIRE, *CONTENT, *TRAPS, *ROBOTS, *HUBS, *STATUSES, *REDIRECTS, *NAMES, *TLS]
BY_HOST = {attack.host: attack for attack in ATTACKS}
SITES = [f"site{n}.decent{n}.test" for n in range(200 if LONG else 40)]
PATHS = {"/h1", "/h2", "/m1", "/m2", "/l1"}  # of each of them: two hits, two from its sitemap, a link
MEMORY_CAP_MIB = 200.0
BUDGET = 6
LIMIT_S = 240.0
UNDER_WAY = 10  # hosts of attacks that are at work longer than any normal site; about 80 are
CPU_RATIO = 20.0  # CPU time with the attacks to that without; about 8, of 40 sites 10
_COOKIE_NAMES = ("cookie", "authorization", "referer")
_IN_PYTHON = aiohttp.http_parser.HttpResponseParser is aiohttp.http_parser.HttpResponseParserPy


@dataclass(frozen=True)
class Pace:
    """The pace of the normal sites, as the server saw it; seconds."""

    all_s: float  # from the first request to the end of the last one
    spans: list[float]  # per site, the same
    gaps: list[float]  # per site, the longest time between two of its requests
    cpu_s: float  # of the crawl's process

    @classmethod
    def of(cls, seen: Sequence[Seen], cpu_s: float) -> Pace:
        by_site = {site: [s for s in seen if s.host == site] for site in SITES}
        ends = [max(s.ended for s in visits) for visits in by_site.values()]
        spans = [end - visits[0].began for end, visits in zip(ends, by_site.values(), strict=True)]
        gaps = [max(b.began - a.began for a, b in itertools.pairwise(visits)) for visits in by_site.values()]
        return cls(max(ends) - min(visits[0].began for visits in by_site.values()), spans, gaps, cpu_s)

    def __str__(self) -> str:
        return (
            f"all in {self.all_s:.1f} s, a site in {statistics.median(self.spans):.1f} s ({max(self.spans):.1f} s at"
            f" most), longest pause of a site {statistics.median(self.gaps):.2f} s ({max(self.gaps):.2f} s at most)"
        )


@dataclass(frozen=True)
class Crawled:
    """The results of the crawls."""

    pages: list[Page]
    web: RawWeb
    tls: int  # its other port; 0 without certificates
    peak_mib: float
    alone: Pace
    among_attacks: Pace
    before: int  # the requests of the first crawl
    output: str

    def of(self, site: str) -> list[Page]:
        return [page for page in self.pages if page.site == site]

    def asked(self, site: str) -> set[str]:
        """The paths requested from a site and its twin, without robots.txt, tdmrep.json and the default sitemap."""
        own = {path for path in self.web.paths(site) if path not in WAY_THERE}
        return own | {f"www{path}" for path in self.web.paths(f"www.{site}") if path not in WAY_THERE}


def settings(nameserver: str) -> CrawlSettings:
    """Polite settings with short times, so that a bad host costs seconds."""
    return crawl_settings(
        delay_s=0.05,
        domain_delay_s=0.0,
        address_delay_s=0.0,
        delay_slow_cap_s=0.2,
        retry_s=0.1,
        park_cap_s=0.5,
        robots_retry_s=8.0,  # longer than a request may take
        robots_tries=2,
        tries=2,
        page_budget=BUDGET,
        connect_timeout_s=4.0,
        idle_timeout_s=4.0,
        total_timeout_s=6.0,  # a loaded machine may stall for seconds
        nameservers=[nameserver],
        dns_least_s=0.001,
        refetch_fetched_s=0.0,
    )


async def decent(visit: Visit) -> None:
    """A normal site."""
    here = f"http://{visit.host}:{visit.port}"
    if visit.path == "/sitemap.xml":
        text = f"<urlset><url><loc>{here}/m1</loc></url><url><loc>{here}/m2</loc></url></urlset>"
        await reply(text, content_type="application/xml")(visit)
    elif visit.path == "/robots.txt":
        await reply("User-agent: *\nDisallow: /no\n", content_type="text/plain")(visit)
    elif visit.path in PATHS:
        await reply(f"<!doctype html><p>{visit.host}{visit.path}</p><a href=/l1>l</a><a href=/no/1>n</a>")(visit)
    else:
        await reply("", "404 None")(visit)


async def answer(visit: Visit) -> None:
    """The attack or the normal site with the host name of the request."""
    attack = BY_HOST.get(visit.host.removeprefix("www."))
    if attack is not None:
        await attack.handler(visit.host, visit.path)(visit)
    else:
        await (hubbed if visit.host in HUBBED else decent)(visit)


def names() -> dict[str, list[Zone]]:
    found = {attack.host: list(attack.dns) for attack in ATTACKS}
    return {"*": [Zone(("127.0.0.1",))], "www.twin-inside.hostile.test": [Zone((INTRANET,))], **found}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Both crawls, run to the end."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    web = RawWeb(answer, ["127.0.0.1", INTRANET, "127.1.0.2", "127.1.0.3", "127.1.0.4"])
    with web, LoopbackDns() as dns:
        dns.names.update(names())
        env = {"FARMWATCH_TEST_INTERNET": PUBLIC}
        tls = 0
        if Certificates.is_there():
            certificates = Certificates(folder / "tls")
            env["SSL_CERT_FILE"] = str(certificates.authority)
            tls = web.listen(certificates.server({a.host: a.tls for a in ATTACKS if a.tls not in ("", "none")}))
        attacking = [url for a in ATTACKS if tls or not a.tls for url in a.urls(web.port, tls)]
        attacking += [f"http://{host}:{web.port}/x" for host in HUBBED]
        urls = [f"http://{site}:{web.port}{path}" for site in SITES for path in ("/h1", "/h2")]
        chosen = settings(dns.nameserver)
        with Crawl(folder / "alone", f"sqlite:{folder / 'alone.log'}", chosen, env) as crawl:
            _crawl(crawl, urls)
            alone = Pace.of(web.seen, crawl.cpu_s())
            crawl.stop()
        before = len(web.seen)
        with Crawl(folder / "all", f"sqlite:{folder / 'all.log'}", chosen, env) as crawl:
            began = time.monotonic()
            _crawl(crawl, [*attacking, *urls])
            took_s, peak_mib, cpu_s = time.monotonic() - began, crawl.peak_mib(), crawl.cpu_s()
            crawl.stop()
            among = Pace.of(web.seen[before:], cpu_s)
            print(f"\n{len(ATTACKS)} attacks and {len(SITES)} sites: {took_s:.1f} s, peak {peak_mib:.0f} MiB")
            print(f"decent sites alone: {alone}\namong attacks: {among}")
            yield Crawled(crawl.pages(), web, tls, peak_mib, alone, among, before, crawl.output(10_000))


def _crawl(crawl: Crawl, urls: Sequence[str]) -> None:
    crawl.hits([make_hit({"url": url, "query_id": "q"}) for url in urls])
    crawl.start()
    crawl.finish(LIMIT_S)


def test_decent_sites_are_crawled_to_the_end(crawled: Crawled) -> None:
    """Every page of every normal site is fetched exactly once, despite the attacks."""
    found = Counter((page.site, page.url.partition(f":{crawled.web.port}")[2]) for page in crawled.pages)
    for site in SITES:
        assert {path: n for (of, path), n in found.items() if of == site} == dict.fromkeys(PATHS, 1), site
    decent_pages = [page for page in crawled.pages if page.site.endswith(tuple(SITES))]
    assert {(page.outcome, page.reason) for page in decent_pages} == {("fetched", "")}


def test_decent_sites_do_not_wait_for_attacks(crawled: Crawled) -> None:
    """When the last normal site is at its end, attacks are still under way; none of them burns the process's time."""
    ends: dict[str, float] = {}
    for seen in crawled.web.seen[crawled.before :]:
        ends[seen.host] = max(seen.ended, ends.get(seen.host, 0))
    last = max(ends[site] for site in SITES)
    assert sum(end > last for end in ends.values()) >= UNDER_WAY
    assert crawled.among_attacks.cpu_s <= CPU_RATIO * crawled.alone.cpu_s


def test_a_hub_of_robots_holds_up_its_own(crawled: Crawled) -> None:
    """Hosts that share the robots.txt of one slow host wait for each other there, and all get their page."""
    found = [(page.site, page.outcome, page.reason) for page in crawled.pages if page.site in HUBBED]
    assert sorted(found) == sorted((host, "fetched", "") for host in HUBBED)
    at_hub = [s for s in crawled.web.seen if s.host == "hub.hostile.test" and s.path == "/robots.txt"]
    assert len(at_hub) == len(HUBBED) + 1  # its own job too
    assert all(later.began >= earlier.ended for earlier, later in itertools.pairwise(at_hub))


def test_memory_stays_bounded(crawled: Crawled) -> None:
    """Although gibibytes are sent to it, the crawling process never holds more than the cap."""
    assert crawled.peak_mib < MEMORY_CAP_MIB


def test_nothing_is_published_twice(crawled: Crawled) -> None:
    """Each fetch id is on the log once."""
    assert [ident for ident, n in Counter(page.id for page in crawled.pages).items() if n > 1] == []


def test_nobody_reached_the_intranet(crawled: Crawled) -> None:
    """No request reaches an address outside the public network, by any name or redirect."""
    assert [(s.host, s.path) for s in crawled.web.seen if s.address.startswith("127.1.")] == []


def test_no_request_carries_what_a_site_left(crawled: Crawled) -> None:
    """Cookies are never sent back, and no request has a Referer."""
    carried = {name for seen in crawled.web.seen for name in seen.headers if name in _COOKIE_NAMES}
    assert carried == set()


def test_records_hold_no_control_characters(crawled: Crawled) -> None:
    """The names, URLs and headers in a record are printable."""
    for page in crawled.pages:
        texts = [page.url, page.final_url, page.content_type, page.encoding, page.reason, *page.opt_out]
        texts += [text for pair in page.headers.items() for text in pair]
        assert all(text.isprintable() for text in texts), page.url


def test_an_answer_that_nobody_asked_for_is_no_page(crawled: Crawled) -> None:
    """Bytes after an answer never count as the answer to the next request."""
    bodies = [zstandard.decompress(page.body) for page in crawled.of("answer-after.hostile.test") if page.body]
    assert not [body for body in bodies if b"poisoned" in body and b"href" not in body]


def test_the_log_of_the_process_is_clean(crawled: Crawled) -> None:
    """Nothing in the process failed, and its output has no escape sequence of a site."""
    assert "Traceback" not in crawled.output and "_broke" not in crawled.output
    assert all(c.isprintable() or c == "\n" for c in crawled.output)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(crawled: Crawled, attack: Attack) -> None:
    """The attack ends as its row says, recorded on the page, within the budget of a site."""
    if attack.tls and not crawled.tls:
        pytest.skip("no openssl on the PATH to make certificates with")
    hit = make_hit({"url": attack.urls(crawled.web.port, crawled.tls)[0]})
    pages = crawled.of(hit.site)
    (page,) = [page for page in pages if page.url == normalise(hit.url)]
    assert (page.outcome, page.reason) == (attack.python if _IN_PYTHON and attack.python else attack.ends)
    assert page.truncated == attack.truncated
    assert sum(page.outcome == "fetched" for page in pages) <= BUDGET
    assert len(crawled.web.paths(hit.site)) <= attack.at_most
    assert attack.asks is None or crawled.asked(hit.site) == attack.asks


def test_another_port_is_not_reached(crawled: Crawled) -> None:
    """No redirect leads to a port that the hits do not name."""
    assert [s.path for s in crawled.web.seen if s.port == crawled.web.other_port] == []
