"""MEASURE in 2, 4 and 8 processes of one group on one Kafka broker, then a cold start in which the broker is lost.

    python -m tests.bench.bench_scale_kafka [PAGES, default 600]

Each run has a log of 8 partitions; JUDGE, SCORE and TALLY have a process each. The members of MEASURE start one after
the other, so that the group rebalances. The first page of each site warms the processes up; CPU counts the rest, until
all stages are at rest, and pages a second are those from then to the last features. Then all are idle for IDLE_S.

In the last run four members measure the first half of the pages and end. Their local state is removed, the other half
is appended, and four members come back one after the other: each restores its partitions while the next joins. Then the
broker is killed and restarted, a member of MEASURE likewise, and another one is killed for good. Every page must have
one features record, equal to that of the first run, as must verdicts, scores and rows, and the audit must be clean.
Needs the labelled pages and the test broker (tests/broker/install.sh).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import xxhash
import zstandard

from crawler.web.urls import fetch_id, page_id
from farmwatch.audit.audit import audit
from farmwatch.config.config import load
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from farmwatch.daemon.maintenance import pass_for_crawl
from farmwatch.daemon.quiescence import wait_until_quiescent
from stream.log.contract import Log, Output, partition_of
from stream.processing.heartbeat import is_heartbeat
from stream.schema.records import Features, Hit, Page, decode, encode
from stream.schema.topics import FEATURES, HITS, PAGES
from tests.bench.bench_frontier import size_bytes
from tests.bench.timing import argument, processes_cpu_s
from tests.support.kafka_broker import Broker
from tests.support.paths import ROOT, data_root
from tests.support.processes.farm import Outcome, outcome
from tests.support.waiting import wait_until
from tests.support.web.webs import labelled_pages

PARTITIONS = 8
MEMBERS = (2, 4, 8)
OF_A_SITE = 6  # the last repeats the first, so that features depend on MEASURE's state
OTHERS = ("judge", "score", "tally")
IDLE_S = 10.0
_APART_S = 0.5  # between two starts
_DOWN_S = 2.0  # how long the broker is down
_LOOK_S = 1.0  # seldom, because looking costs CPU of the broker
_PATIENCE_S = 300.0
_AT_ONCE = 100
_ASSIGNED = re.compile(rb"\bassigned\b.*\bpartitions=(\d+)")

Found = tuple[dict[str, Features], Outcome]


class Cluster:
    """Processes of single roles on a log of their own. Use as a context manager."""

    def __init__(self, folder: Path, broker: Broker, name: str) -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self.state = self._folder / "state"
        settings = {
            "log.url": f"kafka:{broker.address}",
            "log.prefix": f"{name}.",
            "log.partitions": PARTITIONS,
            "log.state_folder": self.state,
            "measure.workers": 1,
            "measure.time_limit_s": 60,
            "metrics.port": 0,
        }
        self._flags = [f"{path}={value}" for path, value in settings.items()]
        self._config = load(None, self._flags, {}).config
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._began: dict[str, int] = {}  # where the output of a running process begins
        self.log: Log = open_configured(self._config)
        create_topics(self.log, self._config)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()
        self.log.close()

    def start(self, member: str) -> None:
        """Start the role before the hyphen as a process of this name."""
        command = [sys.executable, "-m", "farmwatch", "up", "--in-process", "--role", member.partition("-")[0]]
        command += ["--member", member, *(word for flag in self._flags for word in ("--set", flag))]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        with self._output(member).open("ab") as output:
            self._began[member] = output.tell()
            self._running[member] = subprocess.Popen(command, stdout=output, stderr=output, env=env, cwd=self._folder)

    def start_all(self, measuring: int) -> float:
        """Start every role, and wait until each partition has an owner; seconds from the last start."""
        for member in (*(f"{role}-1" for role in OTHERS), *(f"measure-{n + 1}" for n in range(measuring))):
            time.sleep(_APART_S if member.startswith("measure") else 0)
            self.start(member)
        began = time.monotonic()
        wait_until(lambda: self.owned() == dict.fromkeys(("measure", *OTHERS), PARTITIONS), self.tail, _PATIENCE_S)
        return time.monotonic() - began

    def kill(self, member: str) -> None:
        process = self._running.pop(member)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End all processes, which must drain."""
        for process in self._running.values():
            process.terminate()
        codes = {member: process.wait(60) for member, process in self._running.items()}
        assert not any(codes.values()), f"{codes}\n{self.tail()}"
        self._running.clear()

    def assigned(self, member: str, start: int = 0) -> list[int]:
        """The number of owned partitions after each rebalance of a member, in its output from `start` on."""
        return [int(found) for found in _ASSIGNED.findall(self._output(member).read_bytes()[start:])]

    def owned(self) -> Counter[str]:
        """Owned partitions of each role."""
        owned: Counter[str] = Counter()
        for member in self._running:
            owned[member.partition("-")[0]] += (self.assigned(member, self._began[member]) or [0])[-1]
        return owned

    def rebalances(self) -> int:
        """Changes of assignment of the members of MEASURE."""
        return sum(len(self.assigned(file.stem)) for file in self._folder.glob("measure-*.txt"))

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of each role so far."""
        spent = dict.fromkeys(("measure", *OTHERS), 0.0)
        for member, process in self._running.items():
            spent[member.partition("-")[0]] += processes_cpu_s(process.pid)
        return spent

    def settle(self) -> None:
        wait_until_quiescent(self.log, PARTITIONS, _PATIENCE_S, is_running=self._all_run, sleep=self._pause)

    def proved(self) -> Found:
        """The results, of which none is missing or written twice."""
        report = audit(self.log, config=self._config)
        assert report.ok, report.broken[:5]
        assert report.settled, report.waiting
        read = [m for p in range(PARTITIONS) for m in self.log.read(FEATURES, p) if m.value and not is_heartbeat(m)]
        features = [msgspec.structs.replace(decode(Features, m.value or b""), measured_at=0) for m in read]
        found = {each.id: each for each in features}
        assert len(found) == len(features), "a page was measured twice"
        return found, outcome(self.log)

    def memory_bytes(self) -> int:
        """The size of MEASURE's local state."""
        return sum(size_bytes(folder) for folder in self.state.glob("*.measure"))

    def measured_ms(self) -> int:
        """When the last features were written."""
        read = (m for p in range(PARTITIONS) for m in self.log.read(FEATURES, p) if not is_heartbeat(m))
        return max(m.timestamp_ms for m in read)

    def tail(self) -> str:
        return "\n".join(file.read_text(errors="replace")[-1500:] for file in sorted(self._folder.glob("*.txt")))

    def _pause(self, _: float) -> None:
        time.sleep(_LOOK_S)
        pass_for_crawl(self.log)

    def _all_run(self) -> bool:
        return all(process.poll() is None for process in self._running.values())

    def _output(self, member: str) -> Path:
        return self._folder / f"{member}.txt"


def main() -> None:
    began = time.monotonic()
    records = list(imported(argument(1, 600)))
    print(f"{len(records)} labelled pages as {len({page.site for _, page in records})} sites, 8 partitions, one broker")
    with tempfile.TemporaryDirectory() as folder, closing(Broker().start()) as broker:
        first: Found | None = None
        for members in MEMBERS:
            with Cluster(Path(folder), broker, f"members{members}") as cluster:
                found = _undisturbed(cluster, broker, records, members)
            first = first or found
            _compare(found, first)
        assert first is not None
        with Cluster(Path(folder), broker, "disturbed") as cluster:
            _compare(_disturbed(cluster, broker, records), first)
    print(
        f"All audits are clean, and all results equal those of the first run. {time.monotonic() - began:.0f} s in all."
    )


def imported(count: int) -> Iterator[tuple[Hit, Page]]:
    """Labelled pages as pages of an archive, in order, OF_A_SITE of a site; the last repeats the first."""
    hosts = labelled_pages(data_root()).hosts.values()
    bodies = [answer.body for answers in hosts for answer in answers.values()][:count]
    sites = max(1, len(bodies) // OF_A_SITE)
    now_ms = int(time.time() * 1000)
    for number, body in enumerate(bodies):
        turn, of = divmod(number, sites)
        if turn == OF_A_SITE - 1:
            body = bodies[of]
        site = f"site-{of:05}.example"
        url = f"http://{site}/pages/{turn}"
        hit = Hit(id=xxhash.xxh3_128_hexdigest(url.encode()), site=site, url=url, fetched_at=now_ms, imported=True)
        packed = zstandard.compress(body)
        page = Page(id=fetch_id(url, 0), site=site, page_id=page_id(url), url=url, visit=0, body=packed, hits=[hit.id])
        what = {"status": 200, "content_type": "text/html", "encoding": "utf-8", "body_bytes": len(body)}
        yield hit, msgspec.structs.replace(page, found_by="import", fetched_at=now_ms, **what)


def append(log: Log, records: Sequence[tuple[Hit, Page]]) -> None:
    for start in range(0, len(records), _AT_ONCE):
        log.append(
            [
                Output(topic, partition_of(record.site, PARTITIONS), record.site.encode(), encode(record))
                for both in records[start : start + _AT_ONCE]
                for topic, record in zip((HITS, PAGES), both, strict=True)
            ]
        )


def _undisturbed(cluster: Cluster, broker: Broker, records: Sequence[tuple[Hit, Page]], members: int) -> Found:
    start_s = cluster.start_all(members)
    first = len(records) // OF_A_SITE
    append(cluster.log, records[:first])
    cluster.settle()
    since_ms = int(time.time() * 1000)
    with _spent(cluster, broker) as spent:
        append(cluster.log, records[first:])
        cluster.settle()
    with _spent(cluster, broker) as idle:
        time.sleep(IDLE_S)
    rebalances = cluster.rebalances()
    cluster.stop()
    found = cluster.proved()
    pages, whole_s, span_ms = len(records) - first, sum(spent.values()), cluster.measured_ms() - since_ms
    shares = ", ".join(f"{role} {cpu_s / whole_s:.1%}" for role, cpu_s in sorted(spent.items()))
    idle_member, idle_broker = (idle[role] / IDLE_S for role in ("measure", "broker"))
    print(
        f"{members} members: {1000 * pages / span_ms:.0f} pages/s, {whole_s / pages * 1000:.1f} ms of CPU a page"
        f" ({shares}); {rebalances} changes of assignment, all partitions owned {start_s:.1f} s after the last start;"
        f" idle: of a core {idle_member / members:.1%} a member, the broker {idle_broker:.1%};"
        f" {len(found[0])} features records of {len(records)} pages, {len(found[1].scores)} scores;"
        f" MEASURE's local state {cluster.memory_bytes() / len(records):.0f} bytes a page",
        flush=True,
    )
    return found


@contextmanager
def _spent(cluster: Cluster, broker: Broker) -> Iterator[dict[str, float]]:
    """CPU seconds of each role and of the broker in the block, filled in at its end."""

    def so_far() -> dict[str, float]:
        return {**cluster.cpu_s(), "broker": sum(map(processes_cpu_s, broker.pids))}

    before: dict[str, float] = so_far()
    spent: dict[str, float] = {}
    yield spent
    spent.update({name: cpu_s - before[name] for name, cpu_s in so_far().items()})


def _disturbed(cluster: Cluster, broker: Broker, records: Sequence[tuple[Hit, Page]]) -> Found:
    half = len(records) // 2
    cluster.start_all(4)
    append(cluster.log, records[:half])
    cluster.settle()
    cluster.stop()
    shutil.rmtree(cluster.state)
    before, rebalances = sum(cluster.log.end(FEATURES)), cluster.rebalances()
    append(cluster.log, records[half:])
    start_s = cluster.start_all(4)
    wait_until(lambda: sum(cluster.log.end(FEATURES)) > before, cluster.tail, _PATIENCE_S)
    broker.kill()
    time.sleep(_DOWN_S)
    broker.start()
    back = time.monotonic()
    at_kill = sum(cluster.log.end(FEATURES))
    wait_until(lambda: sum(cluster.log.end(FEATURES)) > at_kill, cluster.tail, _PATIENCE_S)
    resumed_s = time.monotonic() - back
    for member in ("measure-2", "measure-4"):
        cluster.kill(member)
    cluster.start("measure-2")
    gone = time.monotonic()
    wait_until(lambda: cluster.owned()["measure"] == PARTITIONS, cluster.tail, _PATIENCE_S)
    taken_s = time.monotonic() - gone
    cluster.settle()
    rebalances = cluster.rebalances() - rebalances
    cluster.stop()
    found = cluster.proved()
    print(
        f"cold start of 4 members: all partitions owned and restored {start_s:.1f} s after the last start; broker lost"
        f" for {_DOWN_S:.0f} s and started: next features {resumed_s:.1f} s later; a member killed and restarted,"
        f" and one killed for good, whose partitions the others own {taken_s:.0f} s later;"
        f" {rebalances} changes of assignment; {len(found[0])} features records of {len(records)} pages",
        flush=True,
    )
    return found


def _compare(found: Found, expected: Found) -> None:
    pairs = [("features", found[0], expected[0])]
    pairs += [(kind, getattr(found[1], kind), getattr(expected[1], kind)) for kind in ("verdicts", "scores", "sites")]
    for kind, mine, theirs in pairs:
        assert mine.keys() == theirs.keys(), f"{kind}: {sorted(mine.keys() ^ theirs.keys())[:5]}"
        assert [key for key in mine if mine[key] != theirs[key]] == [], kind


if __name__ == "__main__":
    main()
