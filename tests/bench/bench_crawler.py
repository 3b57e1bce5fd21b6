"""Pages per CPU-second of the crawler and its peers: the same pages, the same server in another process, one run.

    python -m tests.bench.bench_crawler [sites] [rounds] [own]

Each contender is a separate process, and only its CPU time counts (user and system, all threads and children), from
loading its modules to the end of its work: 40 pages from each of SITES hosts, 64 requests in flight, one at a time per
host. The rounds are interleaved. The server checks that each contender fetched the 40 different pages of every site.
Rows: raw aiohttp (get and read), our fetch path (guard, DNS, gate, redirects, inflating, charset, zstd, envelope), our
whole stage on the embedded log (frontier, robots.txt, links, commits), Scrapy and Crawlee with links followed; the
frugal Scrapy requests robots.txt, and extracts no more links of a site than it needs pages. `own` leaves the last two
out. The inspection of fetched pages, which the stage of this bench does without, is measured on labelled pages.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import yarl
import zstandard

from crawler.fetch.address_guard import FixedResolver
from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import Job, RequestKind
from crawler.frontier.report import frontier_left
from crawler.robots.rules import RobotsRules
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from crawler.web.hits_file import make_hit
from crawler.web.urls import fetch_id, page_id_of_normal
from filters.no_page.inspector import inspect
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output, partition_of
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Page, encode
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, PAGES, all_topics
from stream.schema.vocabulary import FetchOutcome
from tests.bench.peers.crawler_peers import PEERS, crawlee, missing_peers, scrapy, version
from tests.bench.peers.crawler_server import PER_SITE, Server, page
from tests.bench.timing import apart, argument, cpu_s, labelled_pages_folder, memory_mib
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import patient_settings

IN_FLIGHT = 64
PARTITIONS = 4
LIMIT_S = 600  # per contender
_DELAY_S = 0.0005  # without delays: only work is measured
GOALS = (
    ("our fetch path", "raw aiohttp", 0.6),
    ("our whole stage", "raw aiohttp", 0.25),
    ("our whole stage", "Scrapy", 2.0),
    ("our whole stage", "Scrapy, robots.txt", 2.0),
    ("our whole stage", "Scrapy, frugal", 2.0),
    ("our whole stage", "Crawlee, robots.txt", 2.0),
)


def main() -> None:
    sites, rounds = argument(1, 80), argument(2, 3)
    own = sys.argv[3:] == ["own"]
    contenders = list(CONTENDERS)[:OWN] if own else list(CONTENDERS)
    missing = missing_peers()
    if missing and not own:
        sys.exit(f"{' and '.join(missing)} not installed: make bench installs them")
    costs: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    with Server(sites) as server:
        for _ in range(rounds):
            for name in contenders:
                costs[name].append(_run(server, name, sites))
    count = sites * PER_SITE
    rates = {name: statistics.median(count / run["cpu_s"] for run in runs) for name, runs in costs.items()}
    print(f"{count} pages of {len(page())} bytes on {sites} sites, {IN_FLIGHT} in flight, medians of {rounds} rounds")
    print(", ".join(f"{peer} {version(peer)}" for peer in ("aiohttp", *(() if own else PEERS))))
    print(f"{'':20} {'pages/CPU-s':>12} {'of raw':>7} {'largest RSS, MiB':>17}")
    for name, rate in rates.items():
        largest = max(run["rss_mib"] for run in costs[name])
        print(f"{name:20} {rate:12.0f} {rate / rates['raw aiohttp']:7.2f} {largest:17.0f}")
    for ours, theirs, goal in GOALS:
        if theirs in rates:
            print(f"{ours} / {theirs}: {rates[ours] / rates[theirs]:.2f} (goal {goal:.2f})")
    print(f"inspection of a labelled page: {1000 * inspection_s():.2f} ms of CPU, without an outline")


def _run(server: Server, name: str, sites: int) -> dict[str, float]:
    cost: dict[str, float] = apart(contend, name, server.target, sites)
    counts = server.counts()
    wrong = {host: found for host, found in counts.items() if found != (PER_SITE, PER_SITE)}
    assert len(counts) == sites and not wrong, f"{name}: {len(counts)} of {sites} sites, not as expected: {wrong}"
    return cost


def settings_for(target: str) -> CrawlSettings:
    """Settings of a user, but without delays and without the files that the server lacks."""
    pace = {"delay_s": _DELAY_S, "delay_per_second": 0.0, "refetch_fetched_s": CrawlSettings().refetch_fetched_s}
    return patient_settings(target, **pace, max_in_flight=IN_FLIGHT, page_budget=PER_SITE, use_sitemaps=False)


async def side_by_side(sites: int, one: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Fetch all pages of all sites, one at a time per site, IN_FLIGHT sites at once."""
    waiting = list(range(sites))

    async def work() -> None:
        while waiting:
            site = waiting.pop()
            for number in range(PER_SITE):
                await one(f"http://site{site}.test/p/{number}")

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def raw(target: str, sites: int) -> None:
    """aiohttp alone: get and read."""
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT, resolver=FixedResolver({"*": target}))
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def one(url: str) -> None:
            async with session.get(yarl.URL(url, encoded=True)) as response:
                await response.read()

        await side_by_side(sites, one)


async def fetch_path(target: str, sites: int) -> None:
    """The fetcher (guard, DNS, gate, redirects, inflating, charset, zstd) and the page record, without a frontier."""
    rules = RobotsRules(b"", "farmwatch")
    async with Fetcher(settings_for(target)) as fetching:

        async def one(url: str) -> None:
            site = url.split("/")[2]
            answer = await fetching.fetch(Job(RequestKind.PAGE, site, url, _DELAY_S, rules), wait=False)
            assert answer.outcome is FetchOutcome.FETCHED, answer.reason
            encode(Page(id=fetch_id(url, 1), site=site, page_id=page_id_of_normal(url), url=url, body=answer.packed))

        await side_by_side(sites, one)


@contextmanager
def crawling(folder: Path, target: str, sites: int, metrics: Metrics) -> Iterator[EmbeddedLog]:
    """CRAWL on an embedded log in a thread, from one hit per site; at the end all pages must be there."""
    log = EmbeddedLog(folder)
    log.create(all_topics(PARTITIONS, "bench"))
    hits = [make_hit({"url": f"http://site{n}.test/p/0"}) for n in range(sites)]
    log.append([Output(HITS, partition_of(h.site, PARTITIONS), h.site.encode(), encode(h)) for h in hits])
    member = log.join("crawl", [HITS, DECISIONS], member="bench", store=FRONTIER_STORE)
    loop = StageLoop(CrawlStage(settings_for(target), metrics), member, metrics=metrics)
    stop = threading.Event()
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    try:
        yield log
    finally:
        stop.set()
        thread.join()
    left = frontier_left(log, PARTITIONS)
    assert left.fetched == sites * PER_SITE == sum(log.end(PAGES)), left
    log.close()


def whole_stage(target: str, sites: int) -> None:
    """CRAWL on the embedded log, from hits to committed pages, links followed."""
    with tempfile.TemporaryDirectory() as folder, crawling(Path(folder), target, sites, Metrics()) as log:
        wait_until(lambda: sum(log.end(PAGES)) >= sites * PER_SITE, "all pages", LIMIT_S, every_s=0.1)


def inspection_s() -> float:
    """CPU seconds of the inspection of a labelled page: the mean over every seventh, of each the best of five."""
    files = sorted(labelled_pages_folder().glob("*/html/*.zst"))[::7]
    pages = [zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 26) for file in files]
    headers = {"content-type": "text/html; charset=utf-8"}

    def once(page: bytes) -> float:
        return cpu_s(lambda: inspect("https://x.example/a", 200, headers, page, "utf-8", has_outline=False))

    return statistics.fmean(min(once(page) for _ in range(5)) for page in pages)


Work = Callable[[], None]
CONTENDERS: dict[str, Callable[[str, int], Work]] = {  # each loads its modules, and returns the work
    "raw aiohttp": lambda target, sites: lambda: asyncio.run(raw(target, sites)),
    "our fetch path": lambda target, sites: lambda: asyncio.run(fetch_path(target, sites)),
    "our whole stage": lambda target, sites: lambda: whole_stage(target, sites),
    "Scrapy": scrapy,
    "Scrapy, robots.txt": partial(scrapy, robots=True),
    "Scrapy, frugal": partial(scrapy, robots=True, frugal=True),
    "Crawlee, robots.txt": crawlee,
}
OWN = 3  # of them, without peers


def spent_s() -> float:
    """CPU time of this process so far, and of its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def contend(name: str, target: str, sites: int) -> dict[str, float]:
    """Be the contender, in a process that does nothing else; returns its cost."""
    work = CONTENDERS[name](target, sites)
    began = spent_s()
    work()
    return {"cpu_s": spent_s() - began, "rss_mib": memory_mib("VmHWM")}


if __name__ == "__main__":
    main()
