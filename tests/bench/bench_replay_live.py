"""What a replay costs the live pages: crawl and replay together, windows with a replay beside windows without.

    python -m tests.bench.bench_replay_live [RECORDS, default 100000] [seconds a window, default 45]

`farmwatch up` crawls sites on loopback at a steady pace on an embedded log that holds RECORDS features of
other pages, which only the replays read. Through the system is the time from a page's fetch to its verdict, and to the
score of its article, as the log's timestamps have it. The goal: with a replay it rises by less than half.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from farmwatch.demo.web import LoopbackWeb, Response
from farmwatch.roles import tally_identity
from stream.heartbeat import is_heartbeat
from stream.log import Log, Message
from stream.records import Score, Verdict, decode
from stream.topics import DECISIONS, FEATURES, HITS, SCORES, VERDICTS
from tests.bench.bench_replay import PARTITIONS, apart, fill, generated
from tests.conftest import data_root
from tests.e2e.farm import Farm
from tests.webs import HTML_HEADERS, labelled_pages

SITES, PAGES, DELAY_S = 100, 40, 12.5  # 8 pages a second for as long as the windows last
RULESETS = ("notes", "c4")
GOAL = 1.5
_WARM_S = 30.0


class Window(NamedTuple):
    """A stretch of time (ms), and the replay that ran in it."""

    start: int
    stop: int
    replay: str  # "" = none


def main() -> None:
    """Fill, crawl, replay, print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    window_s = float(sys.argv[2]) if len(sys.argv) > 2 else 45.0
    with tempfile.TemporaryDirectory(prefix="farmwatch-live-") as temporary:
        folder = Path(temporary)
        settings = {
            "log.partitions": str(PARTITIONS),
            "crawl.delay_s": str(DELAY_S),
            "crawl.use_links": "false",
            "crawl.use_sitemaps": "false",
            "crawl.page_budget": str(PAGES),
        }
        with (
            LoopbackWeb(_web()) as served,
            Farm(folder, f"sqlite:{folder / 'log'}", served, settings) as farm,
        ):
            apart(fill, "embedded", str(folder / "log"), records, tally_identity(farm.config))
            with farm.log() as log:
                _pass_over(log)
            farm.start(_hits(folder))
            time.sleep(_WARM_S)
            windows = []
            for ruleset in RULESETS:
                windows += [_watched(farm, window_s, ""), _watched(farm, window_s, ruleset)]
            farm.stop()
            with farm.log() as log:
                _print(log, windows, records)


def _web() -> dict[str, dict[str, Response]]:
    """Real pages where the test data is there, each under several addresses."""
    rng = random.Random(3)
    if (data_root() / "data").is_dir():
        hosts = labelled_pages(data_root(), every=7).hosts
        bodies = [page.body for paths in hosts.values() for page in paths.values()]
    else:
        bodies = [generated(rng) for _ in range(300)]
    return {
        f"site{site}.live.example": {
            f"/{page}": Response(headers=HTML_HEADERS, body=rng.choice(bodies)) for page in range(PAGES)
        }
        for site in range(SITES)
    }


def _hits(folder: Path) -> Path:
    path = folder / "hits.jsonl"
    urls = (f"http://site{site}.live.example/{page}" for page in range(PAGES) for site in range(SITES))
    path.write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    return path


def _pass_over(log: Log) -> None:
    """The live stages begin behind what the log was filled with."""
    for group, topics in {
        "crawl": (HITS, DECISIONS),
        "judge": (FEATURES,),
        "tally": (HITS, VERDICTS, SCORES),
    }.items():
        for topic in topics:
            log.reset(group, topic, log.end(topic))


def _watched(farm: Farm, window_s: float, ruleset: str) -> Window:
    start = time.time()
    replay = None
    if ruleset:
        flags = [part for flag in farm.flags for part in ("--set", flag)]
        command = [sys.executable, "-m", "farmwatch", "replay", "--ruleset", ruleset, "--name", ruleset, *flags]
        replay = subprocess.Popen(command, cwd=farm.output.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    said = ""
    time.sleep(window_s)
    if replay is not None:
        over = replay.poll() is not None
        said = f"{ruleset}, {'over before the window was' if over else 'under way all the time'}"
        replay.terminate()
        replay.wait()
    return Window(int(start * 1000), int(time.time() * 1000), said)


def _print(log: Log, windows: list[Window], records: int) -> None:
    print(f"{records:,} stored features; {SITES / DELAY_S:.0f} live pages a second; medians and 95th percentiles, ms")
    found: dict[bool, list[float]] = {False: [], True: []}
    for window in windows:
        verdicts, scores = list(_verdict_ms(log, window)), list(_score_ms(log, window))
        found[bool(window.replay)] += scores or verdicts
        print(
            f"  {window.replay or 'no replay':40} {len(verdicts):5} pages to verdict {_spread(verdicts)}"
            f"   {len(scores):5} articles to score {_spread(scores)}"
        )
    ratio = statistics.median(found[True]) / statistics.median(found[False])
    print(f"  to the end, with a replay / without: {ratio:.2f} (goal: below {GOAL})")


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
    """Of each fetch its first score: a replay may have its text scored again."""
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
