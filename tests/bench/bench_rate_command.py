"""The cost of `farmwatch rate` on a large log, and of maintaining its cached answers in TALLY's process.

Run by `python -m tests.bench.bench_rate_command [SITES]`. Sites are of 4 sources, 500 queries and 30 ranks; 70 % have a
scored article. A tenth of the sites are in a term that has no verdict yet, so that their rows hold the row of the term
before. Each line is a separate process on an embedded log of 24 partitions.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from farmwatch.config.config import load
from farmwatch.share.live_share import LiveShare
from filters.rules.ruleset import load_ruleset
from replay.runs.run_rules import RunRules
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.processing.metrics import Metrics
from stream.schema.records import SiteState, encode
from stream.schema.runs import Run
from stream.schema.topics import SITES, all_topics
from tests.bench.timing import apart, argument, cpu_s, memory_mib

PARTITIONS = 24
TERM_MS = 90 * 86_400_000
DETECTOR = "x/1"
METHOD = ("sprt", "0123abcd")
RULES = load_ruleset("default")
NO_ANSWER = ("--set", "rate.series_s=7200")  # other settings, so that the rows are read
COMMANDS = (
    ("the kept answer", ()),
    ("rows read", NO_ANSWER),
    ("--by source", ("--by", "source")),
    ("--by source, rows read", ("--by", "source", *NO_ANSWER)),
    ("--by week", ("--by", "week")),
)


def main() -> None:
    sites = argument(1, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{folder}/log"
        apart(_write, url, sites)
        first, look, series, memory = apart(_look, url)
        print(f"{sites:,} sites; TALLY's process: first look {first:.1f} s of CPU, a look {look:.1f} s,", end=" ")
        print(f"points of the series with the kept splits {series:.1f} s, largest memory {memory:.0f} MiB", flush=True)
        for name, words in COMMANDS:
            wall, cpu, most = _command(("rate", "--log", url, *words))
            print(f"  rate: {name:24} {wall:6.2f} s, {cpu:6.2f} s of CPU, largest memory {most:5.0f} MiB", flush=True)


def _write(url: str, sites: int) -> None:
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, "e"))
        left = _rows(sites)
        while rows := list(islice(left, 10_000)):
            log.append([Output(SITES, partition_of(r.site, PARTITIONS), r.site.encode(), encode(r)) for r in rows])


def _rows(sites: int) -> Iterator[SiteState]:
    rng = np.random.default_rng(3)
    scored = np.where(rng.random(sites) < 0.7, np.minimum(rng.geometric(0.25, sites), 20), 0)
    flagged = rng.binomial(scored, np.where(rng.random(sites) < 0.15, 0.8, 0.05))
    now_ms = int(time.time() * 1000)
    for n, (of, k) in enumerate(zip(scored.tolist(), flagged.tolist(), strict=True)):
        name, start = f"s{n}.d{n // 2}.example", now_ms - n % TERM_MS
        of_search: dict[str, Any] = {
            "sources": [f"source{n % 4}"],
            "queries": [f"q{n % 500}"],
            "best_rank": 1 + n % 30,
            "days": [20_000 + n % 90],
        }
        row = SiteState(
            id=name,
            site=name,
            verdict="undecided" if of else "unclassifiable",
            detector=DETECTOR,
            ruleset=RULES.name,
            digest=RULES.digest,
            method=METHOD[0],
            method_digest=METHOD[1],
            pages=of + 1,
            articles=of,
            scored=of,
            flagged=k,
            llr=round(k - of / 7, 9),
            updated_at=start + of,
            term_start=start,
            term_end=start + TERM_MS,
            epoch="e",
        )
        if n % 10 or not of:
            yield msgspec.structs.replace(row, **of_search)
        else:
            before = msgspec.structs.replace(row, term_start=start - TERM_MS, term_end=start)
            empty = {"verdict": "unclassifiable", "articles": 0, "scored": 0, "flagged": 0, "llr": 0.0}
            yield msgspec.structs.replace(row, **of_search, **empty, pages=1, term=1, former=before)


def _look(url: str) -> tuple[float, float, float, float]:
    live = RunRules(
        Run(name="live", ruleset=RULES.name, digest=RULES.digest, detector=DETECTOR, epoch="e"), RULES.source
    )
    config = load(None, [], {}).config
    with closing(open_log(url)) as log:
        share = LiveShare(log, config.rate, Metrics(), live, METHOD)
        first, look = cpu_s(share.update_gauges), cpu_s(share.update_gauges)
        series = cpu_s(lambda: share.append_points(time.time()))
        return first, look, series, memory_mib("VmHWM")


def _command(words: tuple[str, ...]) -> tuple[float, float, float]:
    """Seconds of wall clock and CPU, and the largest memory in MiB."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "farmwatch", *words]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=Path.cwd())
    said = running.stderr.read() if running.stderr else b""
    _, status, used = os.wait4(running.pid, 0)
    if status:
        sys.exit(said.decode())
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
