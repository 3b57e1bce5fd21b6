"""CRAWL on a real broker: the frontier survives a loss of local files, and moves when a second process joins."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp.web import Request, Response, StreamResponse

from crawler.frontier.rows import SiteRow, site_key, unpack
from stream.log.contract import partition_of
from stream.schema.topics import FRONTIER_STORE
from tests.support.kafka_broker import broker
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import hits_of, settings_for
from tests.support.web.crawl_process import FIRST, PARTITIONS, Crawl
from tests.support.web.loopback import Web, page

pytestmark = pytest.mark.kafka

PATIENCE_S = 60.0
PARK_S = 8  # longer than a process is absent
DELAY_S = 0.3
SECOND = "crawl-2"
SITES = [f"site{n}.test" for n in range(8)]
HITS = hits_of("http://busy.test/x", *(f"http://{site}/{n}" for n in range(5) for site in SITES))


@pytest.fixture
def web() -> Iterator[Web]:
    """Eight sites of five pages; one of them is busy at its first request."""
    with Web() as web:
        web.routes |= {f"{site}/{n}": page("page") for site in SITES for n in range(5)}

        async def busy(request: Request) -> StreamResponse:
            if web.paths("busy.test").count("/x") == 1:
                return Response(status=429, headers={"Retry-After": str(PARK_S)})
            return Response(text="<p>at last", content_type="text/html")

        web.routes["busy.test/x"] = busy
        yield web


@pytest.fixture
def crawl(tmp_path: Path, web: Web) -> Iterator[Crawl]:
    """A crawl of them, not yet begun."""
    settings = settings_for(web.target, delay_s=DELAY_S, use_sitemaps=False, retry_s=0.5)
    with Crawl(tmp_path / "crawl", f"kafka:{broker()}", settings) as crawl:
        crawl.hits(HITS)
        yield crawl


def wait_for_pages(crawl: Crawl, count: int) -> None:
    """Wait until this many pages are on the log and the busy site's answer is committed."""

    def are_there() -> bool:
        assert crawl.running, crawl.output()
        rows = crawl.log.scan_state(FRONTIER_STORE, partition_of("busy.test", PARTITIONS))
        row = next((unpack(SiteRow, value) for key, value in rows if key == site_key("busy.test")), None)
        return len(crawl.pages()) >= count and row is not None and row.park_level + row.fetched > 0

    wait_until(are_there, f"{count} pages", PATIENCE_S)


def check(crawl: Crawl, web: Web) -> None:
    """Each hit has one page, no site had two requests at once, and the busy site got the wait it asked for."""
    pages = crawl.pages()
    assert Counter(p.url for p in pages) == Counter(hit.url for hit in HITS)
    assert len({p.id for p in pages}) == len(pages)
    for site in SITES:
        assert not web.overlaps(site)
        assert min(web.gaps(site)) > DELAY_S * 0.8  # connecting takes a varying time
    busy = [seen.began for seen in web.seen if seen.path == "/x"]
    assert len(busy) == 2 and busy[1] - busy[0] > PARK_S - 0.2


def test_the_frontier_outlives_its_local_files(crawl: Crawl, web: Web) -> None:
    """A process is killed and loses its state folder: another one resumes from the log and keeps all waits."""
    crawl.start()
    wait_for_pages(crawl, 8)
    crawl.kill()
    assert len(crawl.pages()) < len(HITS)
    shutil.rmtree(crawl.folder / "state")
    crawl.start()
    crawl.finish(PATIENCE_S)
    check(crawl, web)


def test_a_second_process_takes_its_share(crawl: Crawl, web: Web) -> None:
    """A process that joins takes half of the partitions with their sites, and both crawl everything once."""
    crawl.start()
    wait_for_pages(crawl, 4)
    crawl.start(SECOND)
    crawl.finish(PATIENCE_S)
    check(crawl, web)
    assert {seen.headers["User-Agent"].rpartition("#")[2].rstrip(")") for seen in web.seen} == {FIRST, SECOND}
