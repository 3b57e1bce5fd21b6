"""CRAWL on a real broker: its frontier outlives the loss of local files, and moves when a second process joins."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp.web import Request, Response, StreamResponse

from crawler.crawl_stage import CrawlStage, frontier_left
from crawler.frontier.rows import SiteRow, site_key, unpack
from crawler.settings import CrawlSettings
from stream.kafka.settings import KafkaSettings
from stream.log.contract import Output, partition_of
from stream.log.errors import StreamError
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Page, decode, encode
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES, all_topics
from tests.support.crawl_driver import hits_of, settings_for
from tests.support.loopback import Web, page
from tests.support.waiting import wait_until
from tests.support.worlds import KafkaWorld

pytestmark = pytest.mark.kafka

PARTITIONS = 4
PATIENCE_S = 60.0
PARK_S = 8  # longer than a process is away
DELAY_S = 0.3
QUICK = KafkaSettings(session_timeout_s=6, heartbeat_s=0.2, max_poll_interval_s=5)
SITES = [f"site{n}.test" for n in range(8)]
HITS_ = hits_of("http://busy.test/x", *(f"http://{site}/{n}" for n in range(5) for site in SITES))


class Crawl:
    """A crawl on a log of its own, by processes that are threads here, each with its own local files."""

    def __init__(self, world: KafkaWorld, web: Web) -> None:
        self.world = world
        self.web = web
        self.settings: CrawlSettings = settings_for(web.target, delay_s=DELAY_S, use_sitemaps=False, retry_s=0.5)
        self.owned: dict[str, int] = {}  # most partitions that a process had at once
        self.running: list[tuple[threading.Event, threading.Thread]] = []
        self.log = world.log
        self.log.create(all_topics(PARTITIONS, "none"))
        self.log.append([Output(HITS, partition_of(h.site, PARTITIONS), h.site.encode(), encode(h)) for h in HITS_])

    def start(self, name: str) -> threading.Event:
        """Start a process without local files; setting the event makes it vanish: nothing is drained."""
        gone = threading.Event()
        thread = threading.Thread(target=self._work, args=(name, gone), name=name)
        self.running.append((gone, thread))
        thread.start()
        return gone

    def _work(self, name: str, gone: threading.Event) -> None:
        metrics = Metrics()
        stage = CrawlStage(self.settings, metrics, partitions=PARTITIONS)
        try:
            member = self.world.again().join("crawl", list(stage.inputs), member=name, store=stage.store)
            loop = StageLoop(stage, member, metrics=metrics)
            while not gone.is_set():
                loop.cycle(gone)
                self.owned[name] = max(self.owned.get(name, 0), len(member.assignment()))
        finally:
            stage.close()

    def vanish(self) -> None:
        for gone, thread in self.running:
            gone.set()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        self.running.clear()

    def pages(self) -> list[Page]:
        values = (message.value for p in range(PARTITIONS) for message in self.log.read(PAGES, p))
        return [decode(Page, value) for value in values if value]

    def wait(self, pages: int) -> None:
        """Until so many pages are on the log, and the busy site has said that it is."""

        def are_there() -> bool:
            assert all(thread.is_alive() for _, thread in self.running), "a process has ended"
            return len(self.pages()) >= pages and self.knows_busy()

        wait_until(are_there, f"{pages} pages", PATIENCE_S, every_s=0.1)

    def knows_busy(self) -> bool:
        """Whether the word of the busy site is committed."""
        rows = self.log.scan_state(FRONTIER_STORE, partition_of("busy.test", PARTITIONS))
        row = next((unpack(SiteRow, value) for key, value in rows if key == site_key("busy.test")), None)
        return row is not None and row.park_level + row.fetched > 0

    def finish(self) -> None:
        self.wait(len(HITS_))
        wait_until(lambda: not frontier_left(self.log, PARTITIONS).active, "the end", PATIENCE_S, every_s=0.1)

    def check(self) -> None:
        """Each hit has one page, no site saw two requests at once, and the busy one was left alone as it asked."""
        pages = self.pages()
        assert Counter(p.url for p in pages) == Counter(hit.url for hit in HITS_)
        assert len({p.id for p in pages}) == len(pages)
        for site in SITES:
            assert not self.web.overlaps(site)
            assert min(self.web.gaps(site)) > DELAY_S * 0.8  # connecting takes its time, now less, now more
        busy = [seen.began for seen in self.web.seen if seen.path == "/x"]
        assert len(busy) == 2 and busy[1] - busy[0] > PARK_S - 0.2


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    """Eight sites of five pages, and one that is busy when it is asked first."""
    with Web() as web:
        web.routes |= {f"{site}/{n}": page("page") for site in SITES for n in range(5)}

        async def busy(request: Request) -> StreamResponse:
            if web.paths("busy.test").count("/x") == 1:
                return Response(status=429, headers={"Retry-After": str(PARK_S)})
            return Response(text="<p>at last", content_type="text/html")

        web.routes["busy.test/x"] = busy
        world = KafkaWorld(tmp_path, QUICK)
        begun = Crawl(world, web)
        yield begun
        begun.vanish()
        with contextlib.suppress(StreamError):  # a member that vanished is fenced by then
            world.close()


def test_the_frontier_outlives_its_local_files(crawl: Crawl) -> None:
    """A process vanishes and its state folder with it: another one crawls on from the log, and keeps every word."""
    crawl.start("one")
    crawl.wait(pages=8)
    crawl.vanish()
    assert len(crawl.pages()) < len(HITS_)
    crawl.start("one")
    crawl.finish()
    crawl.check()


def test_a_second_process_takes_its_share(crawl: Crawl) -> None:
    """A process that joins takes half of the partitions with their sites, and both crawl to the end as one would."""
    crawl.start("one")
    crawl.wait(pages=4)
    crawl.start("two")
    crawl.finish()
    crawl.check()
    assert {name for name, owned in crawl.owned.items() if owned} == {"one", "two"}
