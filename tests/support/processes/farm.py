"""`farmwatch up` as real processes over a web on loopback, on either log."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from farmwatch.audit.audit import audit
from farmwatch.audit.report import AuditReport
from farmwatch.config.config import Config, load
from farmwatch.config.opening import open_configured
from farmwatch.crawl.append_hits import append_files
from farmwatch.daemon.quiescence import NotQuiescent, wait_until_quiescent
from farmwatch.demo.server import LoopbackWeb
from stream.log.contract import Log
from stream.processing.heartbeat import is_heartbeat
from stream.processing.metrics import Metrics
from stream.schema.records import Record, Score, SiteState, Verdict, decode
from stream.schema.roles import Role
from stream.schema.topics import SCORES, SITES, VERDICTS
from tests.support.pages.extraction_here import extract_here
from tests.support.paths import ROOT
from tests.support.processes.roles_here import roles_at_work
from tests.support.web.webs import Web

R = TypeVar("R", bound=Record)
QUICK = "tests.support.processes.quick_farmwatch"
ROLES = ("crawl", "measure", "judge", "score", "tally")
PARTITIONS = 4
# Without stop_when_decided, the pages of a site are the same in every run: the time of a decision varies.
REPRODUCIBLE = {
    "crawl.contact": "https://operator.example/crawler",
    "crawl.allow_private": "true",
    "crawl.delay_s": "0.02",
    "crawl.domain_delay_s": "0",
    "crawl.address_delay_s": "0",  # all sites share one address
    "crawl.ask_tdmrep": "false",
    "crawl.delay_per_second": "0",  # a busy machine answers slowly
    "crawl.retry_s": "0.05",
    "crawl.stop_when_decided": "false",
    "measure.time_limit_s": "60",
    "measure.workers": "1",
    "log.partitions": str(PARTITIONS),
    "metrics.port": "0",
    "console.port": "0",
}


class Farm:
    """`farmwatch up` in `folder` on the log `url`, its crawler sent to `web`. Use as a context manager."""

    def __init__(self, folder: Path, url: str, web: LoopbackWeb, settings: Mapping[str, str] | None = None) -> None:
        """Prepare; `settings` are further `path -> value`."""
        self._folder = folder
        chosen = {
            **REPRODUCIBLE,
            "log.url": url,
            "log.state_folder": str(folder / "state"),
            "crawl.resolve_to": f'{{"*" = "{web.address}"}}',
            **(settings or {}),
        }
        self.flags = [f"{path}={value}" for path, value in chosen.items()]
        self.config: Config = load(None, self.flags, {}).config
        self._process: subprocess.Popen[bytes] | None = None
        self.output = folder / "farmwatch.log"

    def start(self, hits: Path | None = None, *, console: bool = False) -> None:
        """Start the supervisor and its roles, by default without the console; `hits` are appended first."""
        command = [sys.executable, "-m", QUICK, "up", *(f for s in self.flags for f in ("--set", s))]
        if not console:
            command += ["--role", ",".join(ROLES)]
        if hits is not None:
            command += ["--hits", str(hits)]
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self._folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )

    def work_here(
        self, hits: Path, timeout_s: float, *, meanwhile: Callable[[Log], None] | None = None, skipped: int = 0
    ) -> None:
        """Run the roles as threads of this process until all is processed; the result is that of processes.

        MEASURE extracts here, too. `skipped`: unusable lines of `hits`.
        """
        assert [summary.skipped for _, summary in append_files(self.config, [hits])] == [skipped]
        with pytest.MonkeyPatch.context() as patch, ExitStack() as working:
            extract_here(patch)
            working.enter_context(roles_at_work(self.config, {Role(role): Metrics() for role in ROLES}))
            if meanwhile is not None:
                with self.log() as log:
                    meanwhile(log)
            self.settle(timeout_s)

    def settle(self, timeout_s: float) -> None:
        """Wait until the crawl has ended and every stage has processed its input."""
        with self.log() as log:
            try:
                wait_until_quiescent(log, PARTITIONS, timeout_s)
            except NotQuiescent as error:
                raise NotQuiescent(f"{error}\n{self.tail()}") from error

    def stop(self, timeout_s: float = 60) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout_s)

    def kill_one(self, chance: random.Random, role: str = "") -> str:
        """kill -9 the process of this role, or of a random one; returns its role, "" if none runs."""
        running = {name: pid for name, pid in self.roles().items() if role in ("", name)}
        if not running:
            return ""
        role, pid = chance.choice(sorted(running.items()))
        os.kill(pid, signal.SIGKILL)
        return role

    def roles(self) -> dict[str, int]:
        assert self._process is not None
        found = {}
        for child in Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split():
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--role" in words:
                found[words[words.index(b"--role") + 1].decode()] = int(child)
        return found

    def kill_all(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def log(self) -> AbstractContextManager[Log]:
        return closing(open_configured(self.config))

    def audit(self) -> AuditReport:
        with self.log() as log:
            return audit(log)

    def outcome(self) -> Outcome:
        with self.log() as log:
            return outcome(log)

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-4000:] if self.output.exists() else ""

    def __enter__(self) -> Farm:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()


@dataclass
class Outcome:
    """The result of a run without times, comparable between runs."""

    verdicts: dict[str, Any]
    scores: dict[str, Any]
    sites: dict[str, Any]


def outcome(log: Log) -> Outcome:
    def records(topic: str, kind: type[R], *times: str) -> list[R]:
        found = (message for partition in range(log.topics()[topic]) for message in log.read(topic, partition))
        read = (decode(kind, message.value) for message in found if message.value and not is_heartbeat(message))
        return [msgspec.structs.replace(record, **dict.fromkeys(times, 0)) for record in read]

    verdicts = records(VERDICTS, Verdict, "fetched_at", "judged_at", "first_at")
    scores = records(SCORES, Score, "fetched_at", "scored_at")
    sites = records(SITES, SiteState, "updated_at", "decided_at", "term_start", "term_end")
    return Outcome(
        {verdict.id: verdict for verdict in verdicts},
        {f"{score.fetch_id} {score.detector}": score for score in scores},
        {row.site: row for row in sites},
    )


def write_hits(folder: Path, web: Web) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "hits.jsonl"
    path.write_text("\n".join(web.hits) + "\n", encoding="utf-8")
    return path
