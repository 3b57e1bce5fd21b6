"""A log with a host to forget, and the search for what is left of it: in records, state, bytes of files, archives."""

from __future__ import annotations

import gzip
import io
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import zstandard

from crawler.frontier.report import frontier_left
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from filters.measure.epoch import feature_epoch
from filters.settings import MeasureSettings
from scoring.lite_ngram.detector import LiteNgram
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Log, Message, partition_of
from stream.processing.dead_letters import dead_letter
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.processing.topic_reader import records_of
from stream.schema.orders import Order, OrderChange, exclusion, output_of
from stream.schema.panel import SitePanel, write_panel
from stream.schema.records import Page
from stream.schema.topics import HITS, PAGES, all_topics
from tests.support.logs.stage_work import put, work_all
from tests.support.web.article_head import ARTICLE_HEAD
from tests.support.web.crawl_driver import hits_of, settings_for
from tests.support.web.loopback import Reply, Web

HOST, OTHERS = "gone.site.test", ("kept.site.test", "other.test")
MARK = "zebrafish"  # in each text of the host, and nowhere else
PARTITIONS = 2
MEASURE = MeasureSettings(workers=1)
PAGES_EACH = 4


def article(host: str, number: int) -> Reply:
    """An article of several sentences, the host's with the mark, that links to the next one."""
    animal = MARK if host == HOST else "trout"
    text = " ".join(
        f"On day {day} of page {number} the river rose, and the keeper of the {animal} moved {day * number + day} of"
        f" them to the higher pond near {host}."
        for day in range(1, 15)
    )
    link = f'<a href="/p/{number + 1}">next</a>'
    frame = "<nav><ul><li><a>Home</a></li></ul></nav>"
    article = f"{frame}<main><article><h1>Page {number}</h1><p>{text}</p>{link}</article></main>"
    html = f"<!doctype html><html>{ARTICLE_HEAD}<body>{article}</body></html>"
    return Reply(html.encode())


def serve(web: Web) -> None:
    """Let a web on loopback have the hosts."""
    for host in (HOST, *OTHERS):
        web.routes |= {f"{host}/p/{n}": article(host, n) for n in range(PAGES_EACH)}
        web.routes[f"{host}/robots.txt"] = Reply(b"User-agent: *\nDisallow: /secret\n")


def settings(web: Web, archive: Path) -> CrawlSettings:
    return settings_for(web.target, warc_folder=str(archive), use_sitemaps=False)


def make_log(folder: Path, web: Web, archive: Path) -> None:
    """Crawl, measure, judge, score and tally all hosts; a dead letter and an exclusion name the host, too."""
    with closing(EmbeddedLog(folder)) as log:
        log.create(all_topics(PARTITIONS, feature_epoch(MEASURE)))
        hosts = (HOST, *OTHERS)
        put(log, HITS, *hits_of(*(f"http://{host}/p/{n}" for n in (0, 1) for host in hosts)))  # type: ignore[arg-type]
        with closing(CrawlStage(settings(web, archive))) as stage:
            crawl(log, stage)
        work_all(log, MEASURE, "default", LiteNgram.load())  # type: ignore[arg-type]
        place = partition_of(HOST, PARTITIONS)
        pages = records_of(Page, log.read(PAGES, place))
        letter = next(message for message, page in pages if page.url == f"http://{HOST}/p/0")
        log.append([dead_letter(letter, "measure", ValueError(f"of {HOST}"), 1)])
        order = Order().changed(OrderChange(True, 1, "ann@desk", f"asked by {HOST}"))
        log.append([output_of(exclusion(HOST), order)])
        write_panel(log, SitePanel(version=1, made_at=1, seed=1, drawn_from=3, sites=sorted((HOST, *OTHERS))))


def crawl(log: Log, stage: CrawlStage) -> None:
    """Let CRAWL work until nothing is left."""
    member = log.join("crawl", list(stage.inputs), member="one", store=stage.store)
    loop, stop = StageLoop(stage, member, metrics=Metrics()), threading.Event()
    for _ in range(2000):
        loop.cycle(stop)
        if not stage.in_flight and frontier_left(log, PARTITIONS).sites and not frontier_left(log, PARTITIONS).active:
            break
    member.close()


def traces(folder: Path, archive: Path) -> list[str]:
    """Where the host's name or text is still found: raw bytes of every file, decoded records, state, archives."""
    wanted = (HOST.encode(), MARK.encode())
    found = [
        str(path)
        for root in (folder, archive)
        for path in sorted(root.rglob("*"))
        if path.is_file() and any(word in path.read_bytes() for word in wanted)
    ]
    with closing(EmbeddedLog(folder, read_only=True)) as log:
        for place, content in _decoded(log):
            if any(word in content for word in wanted):
                found.append(place)
    for path in sorted(archive.glob("*")):
        if any(word in gzip.decompress(path.read_bytes()) for word in wanted):
            found.append(f"{path}, inflated")
    return found


def _decoded(log: Log) -> Iterator[tuple[str, bytes]]:
    """Place and content of all records and rows of state, compressed parts inflated."""
    for topic, partitions in log.topics().items():
        for partition in range(partitions):
            for message in log.read(topic, partition):
                assert not message.damage, message
                yield f"{topic}/{partition} offset {message.offset}", _content(message)
            if topic.startswith("state."):
                for key, value in log.scan_state(topic.removeprefix("state."), partition):
                    yield f"{topic}/{partition} row", key + value


def _content(message: Message) -> bytes:
    value = message.value or b""
    parts = [message.key, value, repr(dict(message.headers)).encode()]
    at = 0
    while (at := value.find(b"\x28\xb5\x2f\xfd", at)) >= 0:  # zstd inside of a record
        with suppress(zstandard.ZstdError), io.BytesIO(value[at:]) as packed:
            parts.append(zstandard.ZstdDecompressor().stream_reader(packed).read(1 << 20))
        at += 4
    return b"\n".join(parts)
