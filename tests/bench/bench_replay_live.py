"""The cost of a replay to live pages: a crawl with and without a replay, in alternating stretches.

    python -m tests.bench.bench_replay_live [RECORDS, default 100000] [ROUNDS, default 4]

`farmwatch up` crawls sites on loopback at a steady pace on an embedded log that has RECORDS features of other pages,
which only the replays read. In each round a replay runs to its end, followed by an equal time without one. The latency
is the time from a page's fetch to its verdict, and to the score of its article, by the log's timestamps; it counts
pages fetched during the replay and shortly after. The goal: a replay raises the latency by less than half. The counters
of the live processes and the records that live has written are printed too.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from farmwatch.demo.server import LoopbackWeb, Response
from replay.runs.configured import tally_identity
from stream.log.contract import Log, Message
from stream.processing.heartbeat import is_heartbeat
from stream.schema.records import Score, Verdict, decode
from stream.schema.runs import names_of
from stream.schema.topics import DECISIONS, FEATURES, HITS, SCORES, VERDICTS
from tests.bench.bench_replay import PARTITIONS, fill, generated
from tests.bench.timing import apart, argument
from tests.support.paths import data_root
from tests.support.processes.farm import Farm
from tests.support.web.webs import HTML_HEADERS, labelled_pages

SITES = 100
DELAYS_S = (8, 19)  # between two pages of a site; sites differ, so that pages come evenly, about 8 per second
RULESETS = ("notes", "c4")  # in turns
GOAL = 1.5
_WARM_S = 60.0  # until sites that begin together are apart
_CALM_S = 3.0  # between two windows
_TAIL_S = 2.0  # of a replay: pages fetched in it may be scored only after its end
_PAGES = 60  # per site: enough for twelve minutes


class Window(NamedTuple):
    """A stretch of time (ms) whose fetches are counted, and the replay that ran all the time."""

    start: int
    stop: int
    replay: str  # "" = none

    def title(self) -> str:
        what = f"{self.replay}, under way all the time" if self.replay else "no replay"
        return f"{what}, {(self.stop - self.start) / 1000:.0f} s"


class Counted(NamedTuple):
    """Counters that the live processes reported at a time (ms)."""

    at: int
    verdicts: dict[str, int]  # label `run` -> page_verdicts_total


def main() -> None:
    records, rounds = argument(1, 100_000), argument(2, 4)
    with tempfile.TemporaryDirectory(prefix="farmwatch-live-") as temporary:
        folder = Path(temporary)
        settings = {
            "log.partitions": str(PARTITIONS),
            "crawl.delay_s": "1",  # robots.txt requires more
            "crawl.use_links": "false",
            "crawl.use_sitemaps": "false",
            "crawl.page_budget": str(_PAGES),
        }
        with LoopbackWeb(_web()) as served, Farm(folder, f"sqlite:{folder / 'log'}", served, settings) as farm:
            apart(fill, "embedded", str(folder / "log"), records, tally_identity(farm.config))
            with farm.log() as log:
                _pass_over(log)
            farm.start(_hits(folder))
            time.sleep(_WARM_S)
            counted, windows = [_counted(farm)], []
            for number in range(rounds):
                ruleset = RULESETS[number % len(RULESETS)]
                windows.append(_replaying(farm, ruleset, f"{ruleset}-{number}"))
                time.sleep(_CALM_S)
                windows.append(_calm((windows[-1].stop - windows[-1].start) / 1000))
            counted.append(_counted(farm))
            farm.stop()
            with farm.log() as log:
                _print(log, windows, records)
                _print_counters(log, counted, [window.replay for window in windows if window.replay])


def _web() -> dict[str, dict[str, Response]]:
    """Real pages if the test data exists, each under several addresses."""
    rng = random.Random(3)
    if (data_root() / "data").is_dir():
        hosts = labelled_pages(data_root(), every=7).hosts
        bodies = [page.body for paths in hosts.values() for page in paths.values()]
    else:
        bodies = [generated(rng) for _ in range(300)]
    web = {}
    for site in range(SITES):
        robots = f"User-agent: *\nCrawl-delay: {rng.uniform(*DELAYS_S):.1f}\n".encode()
        web[f"site{site}.live.example"] = {
            "/robots.txt": Response(headers={"Content-Type": "text/plain"}, body=robots),
            **{f"/{page}": Response(headers=HTML_HEADERS, body=rng.choice(bodies)) for page in range(_PAGES)},
        }
    return web


def _hits(folder: Path) -> Path:
    path = folder / "hits.jsonl"
    urls = (f"http://site{site}.live.example/{page}" for page in range(_PAGES) for site in range(SITES))
    path.write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    return path


def _pass_over(log: Log) -> None:
    """Let the live stages begin behind the records that filled the log."""
    for group, topics in {"crawl": (HITS, DECISIONS), "judge": (FEATURES,), "tally": (HITS, VERDICTS, SCORES)}.items():
        for topic in topics:
            log.reset(group, topic, log.end(topic))


def _replaying(farm: Farm, ruleset: str, name: str) -> Window:
    """A replay from its begin to nearly its end. Raises RuntimeError if it fails."""
    flags = [part for flag in farm.flags for part in ("--set", flag)]
    command = [sys.executable, "-m", "farmwatch", "replay", "--ruleset", ruleset, "--name", name, *flags]
    with subprocess.Popen(
        command, cwd=farm.output.parent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said, start = [], time.time()
        for line in process.stderr:
            said.append(line)
            if line.startswith("metrics:"):  # the run has begun
                start = time.time()
                break
        said += list(process.stderr)
    stop = time.time() - _TAIL_S
    if process.returncode or stop <= start:
        raise RuntimeError(f"the replay ended with {process.returncode}, too soon or badly: {''.join(said)[-2000:]}")
    return Window(int(start * 1000), int(stop * 1000), name)


def _calm(seconds: float) -> Window:
    start = time.time()
    time.sleep(seconds)
    stop = time.time()
    time.sleep(_TAIL_S)
    return Window(int(start * 1000), int(stop * 1000), "")


def _counted(farm: Farm) -> Counted:
    """Counters of the live processes at this moment, by the run of their label."""
    at, found = int(time.time() * 1000), Counter[str]()
    for address in sorted(set(re.findall(r"http://127\.0\.0\.1:\d+", farm.output.read_text(errors="replace")))):
        with urllib.request.urlopen(f"{address}/metrics", timeout=10) as response:
            for family in text_string_to_metric_families(response.read().decode()):
                for sample in family.samples:
                    if sample.name == "farmwatch_page_verdicts_total":
                        found[sample.labels["run"]] += int(sample.value)
    return Counted(at, found)


def _print(log: Log, windows: list[Window], records: int) -> None:
    print(f"{records:,} stored features; {SITES} live sites; medians and 95th percentiles, ms")
    found: dict[bool, list[float]] = {False: [], True: []}
    for window in windows:
        verdicts, scores = list(_verdict_ms(log, window)), list(_score_ms(log, window))
        found[bool(window.replay)] += scores or verdicts
        print(
            f"  {window.title():42} {len(verdicts):5} pages to verdict {_spread(verdicts)}"
            f"   {len(scores):5} articles to score {_spread(scores)}"
        )
    ratio = statistics.median(found[True]) / statistics.median(found[False])
    print(f"  to the end, with a replay / without: {ratio:.2f} (goal: below {GOAL})")


def _print_counters(log: Log, counted: list[Counted], replays: list[str]) -> None:
    """Print the counters, and the records that live and the replays have written."""
    for when, found in zip(("before the first replay", "after the last"), counted, strict=True):
        written = sum(message.timestamp_ms <= found.at for message in _messages(log, VERDICTS))
        by_run = ", ".join(f"{run} {count:,}" for run, count in found.verdicts.items()) or "nothing"
        print(
            f"  page_verdicts_total of the live processes {when}: {by_run}; verdicts that live had written: {written:,}"
        )
    others = sum(1 for name in replays for _ in _messages(log, names_of(name).verdicts))
    print(f"  verdicts of the {len(replays)} replays, which are in none of it: {others:,}")


def _spread(times: list[float]) -> str:
    if len(times) < 20:
        return "too few"
    return f"{statistics.median(times):7.0f} {statistics.quantiles(times, n=20)[-1]:7.0f}"


def _verdict_ms(log: Log, window: Window) -> Iterator[float]:
    for message in _messages(log, VERDICTS):
        verdict = decode(Verdict, message.value or b"")
        if window.start <= verdict.fetched_at < window.stop:
            yield message.timestamp_ms - verdict.fetched_at


def _score_ms(log: Log, window: Window) -> Iterator[float]:
    """The first score of each fetch: a replay may have its text scored again."""
    first: dict[str, float] = {}
    for message in _messages(log, SCORES):
        score = decode(Score, message.value or b"")
        if window.start <= score.fetched_at < window.stop:
            took = message.timestamp_ms - score.fetched_at
            first[score.fetch_id] = min(took, first.get(score.fetch_id, took))
    return iter(first.values())


def _messages(log: Log, topic: str) -> Iterator[Message]:
    for partition in range(PARTITIONS):
        for message in log.read(topic, partition):
            if message.value and not is_heartbeat(message):
                yield message


if __name__ == "__main__":
    main()
