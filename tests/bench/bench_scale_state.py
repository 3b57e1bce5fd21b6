"""The state that the stages keep of sites with 20 pages, on a real broker: bytes, CPU, memory, time of a restore.

    python -m tests.bench.bench_scale_state [SITES of CRAWL, default 41667 [of TALLY, 10000 [of MEASURE, 2000]]]

41,667 sites are a partition of 24 of a million. CRAWL's state is that of sites with 20 known URLs, a third of them
fetched. TALLY is given a hit, 20 verdicts and 12 scores of each site, in the order of a crawl that visits all in turn.
MEASURE's state is a row a page, of as many bytes as a labelled page has, random because it consists of digests. All
write through the commit of the Kafka log; then the local copies are removed, and a new member reads them back.
`changelog` is what the broker holds before it compacts, the most that a restore reads. Needs the
test broker (tests/broker/install.sh).
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

from crawler.settings import CrawlSettings
from scoring.stages.tally import TallyStage
from stream.kafka.log import KafkaLog
from stream.log.contract import Commit, Output, StateChange, StateReader, partition_of
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Hit, Record, Score, Verdict
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, SCORES, TALLY_STORE, VERDICTS, all_topics, site_memory
from stream.schema.topics import PAGES as PAGES_TOPIC
from tests.bench.bench_frontier import PARTITIONS, build, size_bytes
from tests.bench.timing import apart, argument, memory_mib, wall_and_cpu_s
from tests.support.kafka_broker import Broker

PAGES, ARTICLES = 20, 12  # of a site
_BATCH = 1000
_DAY_MS = 86_400_000
_ROW_BYTES = 6700  # of a page in MEASURE's state: the mean of 300 labelled pages, 6 of a site
MEMORY = site_memory("bench")
_GROUPS = {
    FRONTIER_STORE: ("crawl", (HITS, DECISIONS)),
    TALLY_STORE: ("tally", (HITS, VERDICTS, SCORES)),
    MEMORY: ("measure", (PAGES_TOPIC,)),
}


class Shelf:
    """A store on Kafka, with the member that owns all of its partitions."""

    def __init__(self, address: str, folder: Path, store: str) -> None:
        self.log = KafkaLog(address, prefix="scale.", state_folder=folder)
        self.log.create(all_topics(PARTITIONS, "bench"))
        group, topics = _GROUPS[store]
        self._member = self.log.join(group, topics, member="bench", store=store)
        while len(self._member.assignment()) < PARTITIONS:
            self._member.poll(0.05, 1, 1)

    def reader(self, partition: int) -> StateReader:
        return self._member.state(partition)

    def write(self, changes: Mapping[int, Sequence[StateChange]], now_ms: int) -> None:
        self.commit(Commit(state=dict(changes)))

    def commit(self, commit: Commit) -> None:
        self._member.poll(0, 1, 1)
        self._member.commit(commit)

    def close(self) -> None:
        self._member.close()
        self.log.close()


def main() -> None:
    stores = ((FRONTIER_STORE, argument(1, 41_667)), (TALLY_STORE, argument(2, 10_000)), (MEMORY, argument(3, 2000)))
    with closing(Broker().start()) as broker, tempfile.TemporaryDirectory() as folder:
        for store, sites in stores:
            place = Path(folder) / store
            cpu_s, least, most = apart(_fill, broker.address, place, store, sites)
            local = size_bytes(place)
            shutil.rmtree(place)
            wall_s, restore_s, records, changelog = apart(_restore, broker.address, place, store)
            print(
                f"{store}: {sites} sites, {local / sites:.0f} bytes a site on disk, {cpu_s / sites * 1e3:.2f} ms of CPU"
                f" a site, memory {least:.0f} to {most:.0f} MiB; changelog {changelog / sites:.0f} bytes a site in"
                f" {records / sites:.1f} records; restored in {wall_s:.1f} s, {restore_s:.1f} s of CPU:"
                f" {records / restore_s:,.0f} records/s, {changelog / restore_s / 1e6:.1f} MB/s of the changelog",
                flush=True,
            )


def _fill(address: str, folder: Path, store: str, sites: int) -> tuple[float, float, float]:
    """CPU seconds, memory before, and the largest."""
    now_ms = int(time.time() * 1000)
    with closing(Shelf(address, folder, store)) as shelf:
        least = memory_mib()
        if store == FRONTIER_STORE:
            settings = CrawlSettings(contact="https://crawler.example/about")
            _, cpu_s = wall_and_cpu_s(lambda: build(shelf, PAGES * sites, settings, now_ms, (PAGES,)))
        elif store == TALLY_STORE:
            _, cpu_s = wall_and_cpu_s(lambda: _tally(shelf, sites, now_ms))
        else:
            _, cpu_s = wall_and_cpu_s(lambda: _remember(shelf, sites))
        return cpu_s, least, memory_mib("VmHWM")


def _remember(shelf: Shelf, sites: int) -> None:
    """A row of each page."""
    chance = random.Random(1)
    for number in range(sites):
        site = f"site-{number:08}.example"
        keys = (f"{site}\0{chance.getrandbits(128):032x}".encode() for _ in range(PAGES))
        changes = [StateChange(key, chance.randbytes(_ROW_BYTES)) for key in keys]
        shelf.commit(Commit(state={partition_of(site, PARTITIONS): changes}))


def _tally(shelf: Shelf, sites: int, now_ms: int) -> None:
    stage = TallyStage("bench/1")
    left = _records(sites, now_ms)
    while batch := list(islice(left, _BATCH)):
        states = {partition: KeyedState(shelf.reader(partition)) for partition in range(PARTITIONS)}
        contexts = {partition: Context(partition, state, Meter(), now_ms) for partition, state in states.items()}
        for record in batch:
            stage.process(record, None, contexts[partition_of(record.site, PARTITIONS)])
        stage.tick(contexts)
        outputs: list[Output] = list(chain.from_iterable(context.outputs for context in contexts.values()))
        shelf.commit(Commit(outputs, state={partition: state.changes() for partition, state in states.items()}))
        stage.committed()


def _records(sites: int, now_ms: int) -> Iterator[Record]:
    """A hit of each site; then a page of each site in turn, and its score."""
    names = [f"site-{number:08}.example" for number in range(sites)]
    for number, site in enumerate(names):
        url = f"https://{site}/articles/0"
        yield Hit(id=f"{number:032x}", site=site, url=url, query_id=f"q{number % 500}", rank=1, fetched_at=now_ms)
    for turn in range(PAGES):
        for number, site in enumerate(names):
            name = f"{number:020x}{turn:012x}"
            yield Verdict(
                id=name,
                site=site,
                page_id=name[::-1],
                url=f"https://{site}/articles/{turn}",
                verdict="article" if turn < ARTICLES else "dropped",
                first_failed="" if turn < ARTICLES else "short_text",
                ruleset="default",
                digest="0123abcd",
                epoch="bench",
                text_digest=name,
                fetched_at=now_ms + 5000 * turn,
                first_at=now_ms,
            )
            if turn < ARTICLES:
                flag = (number + turn) % 7 == 0
                about: dict[str, Any] = {"site": site, "page_id": name[::-1], "fetch_id": name, "text_digest": name}
                yield Score(id=f"{name}:b", detector="bench/1", flag=flag, score=0.123456 + flag, **about)


def _restore(address: str, folder: Path, store: str) -> tuple[float, float, int, int]:
    """Seconds of wall and CPU, records and bytes of the changelog."""
    shelves = []
    wall_s, cpu_s = wall_and_cpu_s(lambda: shelves.append(Shelf(address, folder, store)))
    with closing(shelves[0]) as shelf:
        size = shelf.log.sizes([f"state.{store}"])[f"state.{store}"]
        return wall_s, cpu_s, size.records, size.bytes


if __name__ == "__main__":
    main()
