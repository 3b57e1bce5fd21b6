"""A forgotten host leaves no trace in the log and its archives; everything else stays as it was."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from crawler.frontier.report import frontier_left
from crawler.stages.crawl import CrawlStage
from crawler.stages.orders import CrawlOrders
from farmwatch.audit.audit import audit
from farmwatch.config.config import Config
from farmwatch.config.opening import as_read
from farmwatch.upkeep.forgetting import ForgetReport, Forgetting, known_hosts
from replay.rows.site_table import read_sites
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output, partition_of
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.forgotten import Forgotten
from stream.schema.panel import read_panels
from stream.schema.records import Hit, encode
from stream.schema.topics import HITS, PAGES, TEMPLATES, all_topics
from tests.support.logs.forgettable import HOST, OTHERS, PARTITIONS, make_log, serve, settings, traces
from tests.support.torn_writes import tear_writes
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import hits_of
from tests.support.web.loopback import Web


class Place:
    """A log in a folder, its archive, and the web behind them."""

    def __init__(self, folder: Path, web: Web) -> None:
        self.log_folder, self.archive, self.web = folder / "log", folder / "archive", web
        self.crawl_settings = settings(web, self.archive)
        log = replace(Config().log, url=f"sqlite:{self.log_folder}", partitions=PARTITIONS)
        self.config = replace(Config(), log=log, crawl=self.crawl_settings)

    def forget(self, *hosts: str) -> ForgetReport:
        with closing(EmbeddedLog(self.log_folder)) as log:
            return Forgetting(log, as_read(log, self.config), self.archive, sleep=lambda _: None).run(hosts or [HOST])

    def traces(self) -> list[str]:
        return traces(self.log_folder, self.archive)

    def copy(self, folder: Path) -> Place:
        shutil.copytree(self.log_folder, folder / "log")
        shutil.copytree(self.archive, folder / "archive")
        return Place(folder, self.web)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A log in which all stages have worked on three hosts; tests copy it."""
    with Web() as web:
        serve(web)
        place = Place(tmp_path_factory.mktemp("made"), web)
        make_log(place.log_folder, web, place.archive)
        yield place


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Place:
    return made.copy(tmp_path)


def other_records(place: Place) -> list[tuple[str, int, bytes, bytes | None]]:
    """The records of the other hosts."""
    with closing(EmbeddedLog(place.log_folder, read_only=True)) as log:
        return [
            (topic, message.offset, message.key, message.value)
            for topic, partitions in log.topics().items()
            for partition in range(partitions)
            for message in log.read(topic, partition)
            if message.key.partition(b" ")[0].decode() in OTHERS
        ]


def warc_records(place: Place) -> list[tuple[str, bytes]]:
    """URL and block of each record of the archives, as another program reads them."""
    found = []
    for path in sorted(place.archive.iterdir()):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                url = record.rec_headers.get_header("WARC-Target-URI") or ""
                found.append((url, record.raw_stream.read()))
    return found


def test_nothing_of_a_forgotten_host_is_found(place: Place) -> None:
    """All records, state, segments, database, WAL and archives are searched, where name and text are before."""
    before = " ".join(place.traces())
    for where in ("log.sqlite", ".segment", ".warc.gz", "pages/", "features/", "scores/", "sites/", "dead-letters/"):
        assert where in before, where
    for where in ("hits/", "state.frontier/", "state.tally/", "state.site-memory", "control/", "inflated"):
        assert where in before, where
    others, archived = other_records(place), warc_records(place)
    assert TEMPLATES in {topic for topic, *_ in others}
    report = place.forget()
    assert place.traces() == []
    assert other_records(place) == others and report.records > 20 and report.warc_records > 5
    theirs = [record for record in archived if HOST not in record[0]]
    assert [record for record in warc_records(place) if record[0]] == [record for record in theirs if record[0]]
    with closing(EmbeddedLog(place.log_folder, read_only=True)) as log:
        assert {row.site for row in read_sites(as_read(log, place.config))} == set(OTHERS)
        assert {version: panel.sites for version, panel in read_panels(log).items()} == {1: sorted(OTHERS)}


def test_the_audit_is_clean_afterwards(place: Place) -> None:
    """Offsets have no gap that reads as lost, the frontier's totals count the other sites, and nothing is broken."""
    place.forget()
    with closing(EmbeddedLog(place.log_folder)) as log:
        seen = as_read(log, place.config)
        report = audit(seen, config=place.config)
        assert report.ok and not report.lost and not +report.waiting, report
        totals = frontier_left(seen, PARTITIONS)
        assert (totals.sites, totals.active) == (len(OTHERS), 0)


def test_the_ledger_holds_a_keyed_digest(place: Place) -> None:
    """It knows the host, cannot be searched without its secret, and keeps the day; new hits of the host are dropped."""
    place.forget()
    with closing(EmbeddedLog(place.log_folder)) as log:
        ledger = Forgotten(log)
        assert ledger.covers(HOST) and not any(ledger.covers(other) for other in OTHERS)
        entry = ledger.entry(HOST)
        assert entry is not None and entry.done_at >= entry.at > 1_700_000_000_000
        seen, before = as_read(log, place.config), log.end(HITS)
        seen.append([Output(HITS, partition_of(HOST, PARTITIONS), HOST.encode(), b"")])
        assert log.end(HITS) == before
        assert known_hosts(log, [HOST, OTHERS[0], "unknown.test"]) == {HOST, OTHERS[0]}
    assert place.forget().records == 0  # again: nothing is left to do


def test_an_interrupted_removal_is_completed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write fails, running it again removes the rest; readers see nothing of the host from the first on."""
    for allowed in (0, 1, 3, 9, 27, 40):
        tear_writes(monkeypatch, allowed)
        try:
            place.forget()
        except KeyboardInterrupt:
            with closing(EmbeddedLog(place.log_folder)) as log:
                seen = as_read(log, place.config)
                assert not any(m.key == HOST.encode() for p in range(PARTITIONS) for m in seen.read(PAGES, p))
                assert audit(seen, config=place.config).ok
    monkeypatch.undo()
    place.forget()
    assert place.traces() == []


def test_a_host_is_forgotten_while_it_is_crawled(made: Place, tmp_path: Path) -> None:
    """CRAWL runs on: its request is given up, no other one comes, no page is written later, and other hosts go on."""
    web = made.web
    place = Place(tmp_path, web)
    hosts = (HOST, *OTHERS)
    with closing(EmbeddedLog(place.log_folder)) as log:
        log.create(all_topics(PARTITIONS, "e"))
        seen = as_read(log, place.config)
        hits = hits_of(*(f"http://{host}/p/{n}" for n in range(4) for host in hosts))
        hits += hits_of(*(f"http://{host}/late/{n}" for n in range(40) for host in hosts))

        def append(some: list[Hit]) -> None:
            seen.append([Output(HITS, partition_of(h.site, PARTITIONS), h.site.encode(), encode(h)) for h in some])

        append(hits)
        orders = CrawlOrders(seen, {}, 0)
        stage, stop = CrawlStage(place.crawl_settings, orders=orders), threading.Event()
        member = seen.join("crawl", list(stage.inputs), member="one", store=stage.store)
        loop = StageLoop(stage, member, metrics=Metrics())
        thread = threading.Thread(target=loop.run, args=(stop,))
        before = len(web.seen)
        thread.start()
        try:
            wait_until(lambda: any(s.path == "/late/2" and s.host == HOST for s in web.seen[before:]), "the crawl")
            report = Forgetting(log, seen, place.archive).run([HOST])
            asked = sum(s.host == HOST for s in web.seen[before:])
            append(hits_of(f"http://{HOST}/again"))
            wait_until(lambda: frontier_left(log, PARTITIONS).active == 0, "the other hosts", 60)
            assert sum(s.host == HOST for s in web.seen[before:]) == asked < 40
        finally:
            stop.set()
            thread.join()
        assert report.records > 0
        pages = [m for p in range(PARTITIONS) for m in log.read(PAGES, p) if m.value]
        assert {m.key.decode() for m in pages} == set(OTHERS) and len(pages) == 44 * len(OTHERS)
    assert place.traces() == []
