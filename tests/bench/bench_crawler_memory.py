"""Resident memory during a crawl: the whole stage on the embedded log, 64 requests in flight, in one process.

    python -m tests.bench.bench_crawler_memory [pages, default 100000]

Sites have 40 pages each, links are followed, and the server is another process. The figures include Python with its
modules, the fetches, the stage, the metrics and the embedded log with its caches. `anonymous` is the memory that the
process has written; the rest is mapped files (modules, and the database's index of its write-ahead log).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from stream.embedded.database import DATABASE
from stream.processing.metrics import Metrics
from tests.bench.peers.crawler_contenders import IN_FLIGHT, await_pages, crawling
from tests.bench.peers.crawler_server import PER_SITE, Server
from tests.bench.timing import argument, memory_mib

_STEPS = 10
_GOAL_MIB = 200
_CACHE_MIB = 16  # per connection to the database, at most (stream/embedded/database.py)


def main() -> None:
    sites = argument(1, 100_000) // PER_SITE
    pages = sites * PER_SITE
    print(f"{pages} pages of {sites} sites, {IN_FLIGHT} in flight; goal: less than {_GOAL_MIB} MiB, and flat")
    print(f"{'pages':>8} {'resident':>9} {'anonymous':>10} {'peak':>6} MiB")
    with Server(0) as server, tempfile.TemporaryDirectory() as folder:
        _print_memory(0)
        with crawling(Path(folder), server.target, sites, Metrics()) as log:
            for step in range(1, _STEPS + 1):
                await_pages(log, pages * step // _STEPS)
                _print_memory(pages * step // _STEPS)
            links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
            connections = links.count(str(Path(folder) / DATABASE))
    print(f"the log's share: up to {_CACHE_MIB} MiB of cached database for each of its {connections} connections")


def _print_memory(pages: int) -> None:
    resident, anonymous, peak = (memory_mib(field) for field in ("VmRSS", "RssAnon", "VmHWM"))
    print(f"{pages:8} {resident:9.0f} {anonymous:10.0f} {peak:6.0f}", flush=True)


if __name__ == "__main__":
    main()
