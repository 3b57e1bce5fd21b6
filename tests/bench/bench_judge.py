"""JUDGE on the embedded log, from it and back to it, beside `judge` alone and beside the bare log, on real features.

Run: python -m tests.bench.bench_judge [--records N]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from filters.judge_stage import JudgeStage
from filters.measure.epoch import feature_epoch
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output, partition_of
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Features, encode
from stream.schema.topics import FEATURES, SCORE_REQUESTS, VERDICTS, all_topics
from tests.conftest import data_root
from tests.support.webs import labelled_pages

PARTITIONS = 24
SAMPLE = 300  # real pages measured; their features repeat under other sites


def real_features() -> list[Features]:
    """Features of every seventh labelled page."""
    web = labelled_pages(data_root(), every=7)
    measurer = Measurer(MeasureSettings())
    pages = ((host, path, page) for host, paths in web.hosts.items() for path, page in paths.items())
    return [
        measurer.measure(f"http://{host}{path}", page.body, host, encoding="utf-8")
        for host, path, page in itertools.islice(pages, SAMPLE)
    ]


def many(features: list[Features], records: int) -> list[Features]:
    """`records` features: the real ones again and again, each round under other sites."""
    found = []
    for number in range(records):
        one = features[number % len(features)]
        site = f"{number // len(features)}.{one.site}"
        found.append(msgspec.structs.replace(one, site=site, id=f"{number:032x}"))
    return found


def fill(log: EmbeddedLog, features: list[Features]) -> int:
    """Append all; returns the bytes."""
    log.create(all_topics(PARTITIONS, feature_epoch(MeasureSettings())))
    size = 0
    for start in range(0, len(features), 500):
        outputs = [
            Output(FEATURES, partition_of(f.site, PARTITIONS), f.site.encode(), encode(f))
            for f in features[start : start + 500]
        ]
        size += sum(len(o.value or b"") for o in outputs)
        log.append(outputs)
    return size


def judged(log: EmbeddedLog, records: int, round_: int) -> tuple[float, float]:
    """(seconds, CPU seconds) of JUDGE's loop over all records, to the last commit."""
    stage = JudgeStage(load_ruleset("default"))
    member = log.join(f"judge-{round_}", [FEATURES], member="bench")
    loop = StageLoop(stage, member, metrics=Metrics())
    before = sum(log.end(VERDICTS))
    started, cpu = time.perf_counter(), time.process_time()
    stop = threading.Event()
    while sum(log.end(VERDICTS)) - before < records:
        loop.cycle(stop)
    spent = time.perf_counter() - started, time.process_time() - cpu
    member.close()
    return spent


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """(seconds, CPU seconds) of `work`."""
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


def main() -> None:
    """Print records a second and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    features = many(real_features(), args.records)
    ruleset = load_ruleset("default")
    with tempfile.TemporaryDirectory() as folder:
        log = EmbeddedLog(Path(folder))
        size = fill(log, features)
        alone = [timed(lambda: [judge(f, ruleset, now_ms=0) for f in features]) for _ in range(args.rounds)]
        reading = [
            timed(lambda: [sum(1 for _ in log.read(FEATURES, p)) for p in range(PARTITIONS)])
            for _ in range(args.rounds)
        ]
        whole = [judged(log, args.records, n) for n in range(args.rounds)]
        written = sum(len(m.value or b"") for t in (VERDICTS, SCORE_REQUESTS) for p in (0, 1) for m in log.read(t, p))
        log.close()
    print(f"{args.records} real features, {size / args.records / 1024:.1f} KiB each; medians of {args.rounds}")
    for name, runs in (("judge() alone", alone), ("reading the topic", reading), ("JUDGE log to log", whole)):
        seconds, cpu = statistics.median(s for s, _ in runs), statistics.median(c for _, c in runs)
        print(f"  {name:18} {args.records / seconds:8.0f}/s wall, {args.records / cpu:8.0f}/s of CPU")
    ratio = statistics.median(c for _, c in whole) / statistics.median(c for _, c in alone)
    print(
        f"  CPU of JUDGE log to log / judge() alone: {ratio:.2f}; written {written / 2**20:.0f} MiB in two partitions"
    )


if __name__ == "__main__":
    main()
