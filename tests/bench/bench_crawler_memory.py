"""Resident memory of a crawl as it goes on: the whole stage on the embedded log, 64 requests in flight, in one process.

    python -m tests.bench.bench_crawler_memory [pages, default 100000]

Sites of 40 pages each, links followed, from a server in another process. The figures are of everything: Python with its
modules, the fetches, the stage, the metrics and the embedded log with its caches. `anonymous` is what the process has
written; the rest is files that are mapped (modules, and the database's index of its write-ahead log).
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from crawler.crawl_stage import CrawlStage, frontier_left
from crawler.web.hits_file import make_hit
from stream.embedded.database import DATABASE
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output, partition_of
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import encode
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS, PAGES, all_topics
from tests.bench.crawler_contenders import IN_FLIGHT, PARTITIONS, settings_for
from tests.bench.crawler_server import PER_SITE, Server

_STEPS = 10
_GOAL_MIB = 200
_CACHE_MIB = 16  # of a connection to the database, at most (stream/embedded/database.py)


def main() -> None:
    """Crawl, and print the memory at every tenth of the way."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with Server(0) as server, tempfile.TemporaryDirectory() as folder:
        log = EmbeddedLog(Path(folder))
        _crawl(log, Path(folder), server.target, pages // PER_SITE)
        log.close()


def _crawl(log: EmbeddedLog, folder: Path, target: str, sites: int) -> None:
    log.create(all_topics(PARTITIONS, "bench"))
    for number in range(sites):
        hit = make_hit({"url": f"http://site{number}.test/p/0"})
        log.append([Output(HITS, partition_of(hit.site, PARTITIONS), hit.site.encode(), encode(hit))])
    print(
        f"{sites * PER_SITE} pages of {sites} sites, {IN_FLIGHT} in flight; goal: less than {_GOAL_MIB} MiB, and flat"
    )
    print(f"{'pages':>8} {'resident':>9} {'anonymous':>10} {'peak':>6} MiB")
    metrics = Metrics()
    member = log.join("crawl", [HITS, DECISIONS], member="bench", store=FRONTIER_STORE)
    loop = StageLoop(CrawlStage(settings_for(target), metrics), member, metrics=metrics)
    stop = threading.Event()
    thread = threading.Thread(target=loop.run, args=(stop,))
    _tell(0)
    thread.start()
    total = sites * PER_SITE
    for step in range(1, _STEPS + 1):
        while sum(log.end(PAGES)) < total * step // _STEPS:
            assert thread.is_alive(), "the stage has ended"
            time.sleep(0.2)
        _tell(sum(log.end(PAGES)))
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    connections = links.count(str(folder / DATABASE))
    stop.set()
    thread.join()
    assert frontier_left(log, PARTITIONS).fetched == total
    print(f"the log's share: up to {_CACHE_MIB} MiB of cached database for each of its {connections} connections")


def _tell(pages: int) -> None:
    with Path("/proc/self/status").open() as status:
        told = dict(line.split(":", 1) for line in status)
    resident, anonymous, peak = (int(told[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "VmHWM"))
    print(f"{pages:8} {resident:9.0f} {anonymous:10.0f} {peak:6.0f}", flush=True)


if __name__ == "__main__":
    main()
