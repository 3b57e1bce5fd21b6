"""CRAWL alone, in processes that tests start, watch and kill (`main`).

It imports only what CRAWL needs, so that a start takes well under a second. `Crawl` is the test's side.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from crawler.frontier.report import frontier_left
from crawler.frontier.rows import Totals
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from farmwatch.daemon import page_inspector
from stream.log.contract import Log, Output, partition_of
from stream.opening import open_log
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Hit, Page, decode, encode
from stream.schema.topics import HITS, PAGES, all_topics
from tests.support.paths import ROOT
from tests.support.web.crawl_driver import crawl_settings, whole

PARTITIONS = 4
FIRST = "crawl-1"  # the default process
_SETTINGS = "crawl.json"
_INSPECTOR = "FARMWATCH_TEST_INSPECTOR"
INSPECTS = {_INSPECTOR: "1"}  # environment of a crawl that inspects answers and probes sites


def options_of(url: str, folder: Path, state: str = "state") -> dict[str, Any]:
    """Further settings of the log at `url`. On a broker, each folder has its own topics."""
    if not url.startswith("kafka:"):
        return {}
    return {"state_folder": folder / state, "prefix": f"t{zlib.crc32(bytes(folder)):08x}."}


class Crawl:
    """One crawl over restarts, in `folder` on the log `url`; a context manager that ends its processes."""

    def __init__(self, folder: Path, url: str, settings: CrawlSettings, env: Mapping[str, str] | None = None) -> None:
        """Create the topics; nothing runs yet. `env` is added to the process's environment."""
        self.folder, self.url, self.settings = folder, url, settings
        folder.mkdir(exist_ok=True)
        (folder / _SETTINGS).write_bytes(msgspec.json.encode(whole(settings)))
        self._env = dict(env or {})
        self._processes: dict[str, subprocess.Popen[bytes]] = {}  # by the name of the member
        self.log: Log = open_log(url, **options_of(url, folder, "seen"))
        self.log.create(all_topics(PARTITIONS, "none"))

    def __enter__(self) -> Crawl:
        return self

    def __exit__(self, *_: object) -> None:
        for member in list(self._processes):
            self.kill(member)
        self.log.close()

    def hits(self, hits: Sequence[Hit]) -> None:
        self.log.append([Output(HITS, partition_of(h.site, PARTITIONS), h.site.encode(), encode(h)) for h in hits])

    def start(self, member: str = FIRST) -> None:
        """Start a process. It shares the partitions with running processes of other names."""
        command = [sys.executable, "-m", "tests.support.web.crawl_process", self.url, str(self.folder), member]
        with self._output(member).open("ab") as output:
            self._processes[member] = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=ROOT, env={**os.environ, **self._env}
            )

    def kill(self, member: str = FIRST) -> None:
        if process := self._processes.pop(member, None):
            process.kill()
            process.wait()

    def stop(self, member: str = FIRST, timeout_s: float = 60) -> None:
        """Send SIGTERM and wait for the drain."""
        process = self._processes[member]
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout_s)
        assert code in (0, -signal.SIGTERM), f"exit code {code}\n{self.output()}"  # the latter while it is starting
        del self._processes[member]

    @property
    def running(self) -> bool:
        return FIRST in self._processes and self._processes[FIRST].poll() is None

    def peak_mib(self) -> float:
        """The peak resident memory of the first process, MiB."""
        for line in Path(f"/proc/{self._processes[FIRST].pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the kernel tells no VmHWM")

    def cpu_s(self) -> float:
        """The CPU time of the first process so far, seconds."""
        after_name = Path(f"/proc/{self._processes[FIRST].pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")

    def left(self) -> Totals:
        return frontier_left(self.log, PARTITIONS)

    def is_done(self) -> bool:
        committed, ends = self.log.committed("crawl", HITS), self.log.end(HITS)
        unread = any((known or 0) < end for known, end in zip(committed, ends, strict=True))
        return self._is_read(unread) and self.left().active == 0

    def _is_read(self, unread: bool) -> bool:
        if not unread or not self.url.startswith("kafka:"):
            return not unread
        return all(  # transaction markers take offsets too
            next(iter(self.log.read(HITS, p, self.log.committed("crawl", HITS)[p] or 0)), None) is None
            for p in range(PARTITIONS)
        )

    def finish(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while not self.is_done():
            assert self.running, f"the crawl's process ended\n{self.output()}"
            assert time.monotonic() < until, f"not at its end after {timeout_s} s: {self.left()}\n{self.output()}"
            time.sleep(1.0 if self.url.startswith("kafka:") else 0.2)  # a look at a broker costs both sides

    def pages(self) -> list[Page]:
        read = (message.value for p in range(PARTITIONS) for message in self.log.read(PAGES, p))
        return [decode(Page, value) for value in read if value is not None and value]

    def output(self, lines: int = 40) -> str:
        path = self._output(FIRST)
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def _output(self, member: str) -> Path:
        return self.folder / f"{member}.log"


def main(url: str, folder: Path, name: str) -> None:
    """Run CRAWL until SIGTERM."""
    if public := os.environ.get("FARMWATCH_TEST_INTERNET"):
        from tests.hostile.internet import be_public

        be_public(public)
    settings = crawl_settings(**msgspec.json.decode((folder / _SETTINGS).read_bytes()))
    contact = f"{settings.contact}#{name}"  # for the server's log
    settings = msgspec.convert({**msgspec.structs.asdict(settings), "contact": contact}, type(settings))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    log = open_log(url, **options_of(url, folder))
    metrics = Metrics()
    inspector = page_inspector if os.environ.get(_INSPECTOR) else None
    stage = CrawlStage(settings, metrics, partitions=PARTITIONS, inspector=inspector)
    member = log.join(stage.name, list(stage.inputs), member=name, store=stage.store)
    StageLoop(stage, member, metrics=metrics).run(stop)
    log.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
