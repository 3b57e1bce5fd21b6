"""kill -9 at random moments of a crawl: no URL is lost or published twice, and few requests are repeated.

Only the crawler's process is killed; the web server records its requests. In flight at a kill are the requests that the
server saw and the log does not have; no other request may be repeated.
"""

from __future__ import annotations

import asyncio
import bisect
import shutil
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawler.settings import CrawlSettings
from crawler.web.hits_file import make_hit
from farmwatch.audit.audit import audit
from tests.support.kafka_broker import own_broker
from tests.support.sizes import LONG, kill_chance
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import patient_settings
from tests.support.web.crawl_process import INSPECTS, Crawl
from tests.support.web.raw_web import RawWeb, Seen, Visit, reply

KILLS = 12 if LONG else 4
FEWER_KILLS = 5 if LONG else 2  # where each costs more
SITES = [f"kill{n}.site{n}.test" for n in range(12 if LONG else 5)]
PAGES = 36 if LONG else 15  # per site
MAPPED = PAGES // 3  # of them, in its sitemap; the others are found one by one
ANSWER_S = 0.2  # at most; pages take different times, so that sites fall out of step
WAY_THERE = ("/robots.txt", "/sitemap.xml")

pytestmark = [pytest.mark.kill]


@dataclass(frozen=True)
class Kill:
    """A moment between two processes, when nothing runs."""

    restarted_at: float  # monotonic; the server sees no request of the old process after it
    recorded: frozenset[str]  # URLs with a page record


async def answer(visit: Visit) -> None:
    """Slow sites whose pages link from one to the next; hits name pages 0 to 2."""
    await asyncio.sleep(ANSWER_S * (zlib.crc32(f"{visit.host}{visit.path}".encode()) % 100) / 100)
    here = f"http://{visit.host}:{visit.port}"
    if visit.path == "/sitemap.xml":
        places = "".join(f"<url><loc>{here}/p/{n}</loc></url>" for n in range(3, 3 + MAPPED))
        await reply(f"<urlset>{places}</urlset>", content_type="application/xml")(visit)
    elif visit.path.startswith("/p/"):
        number = int(visit.path.removeprefix("/p/"))
        links = "".join(f'<a href="/p/{n}">on</a>' for n in range(number + 1, min(number + 3, PAGES)))
        await reply(f"<!doctype html><p>page {number} of {visit.host}</p>{links}")(visit)
    else:
        await reply("", "404 None")(visit)


def settings(web: RawWeb, **changes: object) -> CrawlSettings:
    """Fast, and with room for every page of a site."""
    quick = {"delay_s": 0.25, "delay_per_second": 0.0, "retry_s": 0.1}
    room = {"page_budget": PAGES + 10, "link_depth": PAGES}
    return patient_settings(f"127.0.0.1:{web.port}", **(quick | room | changes))


def kill_often(
    crawl: Crawl, web: RawWeb, kills: int, most_s: float, killed: Callable[[], None] = lambda: None
) -> list[Kill]:
    """Run the crawl to its end, with this many kills; `killed` is called after each."""
    chance = kill_chance()
    crawl.hits([make_hit({"url": f"http://{site}:{web.port}/p/{n}"}) for site in SITES for n in range(3)])
    done: list[Kill] = []
    crawl.start()
    while len(done) < kills:
        is_through = bool(done) and len(done[-1].recorded) == len(SITES) * PAGES  # it makes no more requests
        patience_s = 60 if chance.random() < 0.9 and not is_through else chance.random()
        seen, until = len(web.seen), time.monotonic() + patience_s
        while len(web.seen) == seen and time.monotonic() < until:
            time.sleep(0.02)  # sometimes it dies before its first request
        if len(done) % 2 and not is_through:
            known = len(done[-1].recorded)
            wait_until(lambda known=known: len(crawl.pages()) > known, "a page of this process", every_s=0.1)
        time.sleep(chance.uniform(0.0, most_s))
        crawl.kill()
        killed()
        recorded = frozenset(page.url for page in crawl.pages())
        time.sleep(0.05)  # requests of the old process may still arrive
        done.append(Kill(time.monotonic(), recorded))
        crawl.start()
    crawl.finish(180)
    crawl.stop()
    return done


def is_probe(seen: Seen) -> bool:
    return len(seen.path) == 33


def check_probes(web: RawWeb, kills: list[Kill]) -> None:
    """Each site has one probe, before its first page; it is repeated only if it was in flight at a kill."""
    starts = [kill.restarted_at for kill in kills]
    for site in SITES:
        seen = [seen for seen in web.seen if seen.host == site and seen.path not in WAY_THERE]
        probes = [place for place, one in enumerate(seen) if is_probe(one)]
        assert probes == list(range(len(probes))) and probes and len({seen[place].path for place in probes}) == 1
        lives = [bisect.bisect(starts, seen[place].began) for place in probes]
        assert len(set(lives)) == len(lives), "asked twice by one process"


def check(crawl: Crawl, web: RawWeb, kills: list[Kill]) -> None:
    """Nothing is lost or doubled, and only requests in flight at a kill were repeated."""
    pages = crawl.pages()
    wanted = {f"http://{site}:{web.port}/p/{n}" for site in SITES for n in range(PAGES)}
    assert Counter(page.url for page in pages) == Counter(wanted)
    assert {(page.outcome, page.reason) for page in pages} == {("fetched", "")}
    assert max(Counter(page.id for page in pages).values()) == 1
    check_probes(web, kills)
    others = (seen for seen in web.seen if seen.path not in WAY_THERE and not is_probe(seen))
    asked = [(f"http://{s.host}:{web.port}{s.path}", s.host, s.began) for s in others]
    under_way: Counter[str] = Counter()
    life_began = 0.0
    for kill in kills:
        this_life = [(host, url) for url, host, began in asked if life_began <= began < kill.restarted_at]
        open_urls = {(host, url) for host, url in this_life if url not in kill.recorded}
        life_began = kill.restarted_at
        assert len(open_urls) == len({host for host, _ in open_urls}), "two requests to a site were under way at once"
        under_way.update(url for _, url in open_urls)
    again = {url: n - 1 for url, n in Counter(url for url, _, _ in asked).items() if n > 1}
    mid_way = sum(0 < len(kill.recorded) < len(wanted) for kill in kills)
    print(f"{len(kills)} kills, {mid_way} of them on the way: {sum(under_way.values())} pages were under way,")
    print(f"{sum(again.values())} were asked for again")
    assert {url: n for url, n in again.items() if n > under_way[url]} == {}
    report = audit(crawl.log)
    assert report.ok, report.broken[:5]
    assert report.steps["hits -> pages"].waiting == 0
    assert mid_way >= max(1, len(kills) // 3), "the crawl was over too soon to be killed"


def test_kills_on_the_embedded_log(tmp_path: Path) -> None:
    """Each URL has one record, only requests in flight are repeated, and each page is in a sound archive file."""
    folder = tmp_path / "warc"
    with RawWeb(answer) as web:
        chosen = settings(web, warc_folder=str(folder), warc_bytes=100_000)
        with Crawl(tmp_path / "crawl", f"sqlite:{tmp_path / 'log'}", chosen, INSPECTS) as crawl:
            check(crawl, web, kill_often(crawl, web, KILLS, 1.0))
            pages = {page.url for page in crawl.pages()}
    files = sorted(folder.iterdir())
    assert files and all(path.name.endswith(".warc.gz") for path in files)
    archived = set()
    names = [str(path) for path in files]
    done = subprocess.run([sys.executable, "-m", "warcio.cli", "check", *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in files:
        with path.open("rb") as stream:
            records = [r for r in ArchiveIterator(stream) if r.rec_type == "response"]
            archived |= {record.rec_headers.get_header("WARC-Target-URI") for record in records}
    assert pages <= archived


@pytest.mark.kafka
def test_kills_on_kafka(tmp_path: Path) -> None:
    """The same holds on Kafka, where the frontier is restored from its changelog, without any local file."""
    url = f"kafka:{own_broker().address}"
    with RawWeb(answer) as web, Crawl(tmp_path / "crawl", url, settings(web), INSPECTS) as crawl:
        check(
            crawl,
            web,
            kill_often(crawl, web, FEWER_KILLS, 2.0, lambda: shutil.rmtree(crawl.folder / "state", ignore_errors=True)),
        )
