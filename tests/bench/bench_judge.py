"""JUDGE from and to the embedded log, compared with its rules over batches and with the bare log, on real features.

Run: python -m tests.bench.bench_judge [RECORDS [ROUNDS]]
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import threading
from pathlib import Path

from filters.measure.epoch import feature_epoch
from filters.rules.judgement import judge_and_text, prepare
from filters.rules.kinds import Prepared
from filters.rules.ruleset import Ruleset, load_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output, partition_of
from stream.processing.loop import MAX_RECORDS, StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Features, encode
from stream.schema.topics import FEATURES, SCORE_REQUESTS, VERDICTS, all_topics
from tests.bench.bench_replay import PARTITIONS, base_features, many
from tests.bench.timing import argument, wall_and_cpu_s


def fill(log: EmbeddedLog, features: list[Features]) -> int:
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
    before, stop = sum(log.end(VERDICTS)), threading.Event()

    def run() -> None:
        while sum(log.end(VERDICTS)) - before < records:
            loop.cycle(stop)

    spent = wall_and_cpu_s(run)
    member.close()
    return spent


def judge_batches(features: list[Features], ruleset: Ruleset) -> None:
    """The rules on batches as the stage has them, without the log."""
    for start in range(0, len(features), MAX_RECORDS):
        batch = features[start : start + MAX_RECORDS]
        for page, prepared in zip(batch, prepare(batch, ruleset), strict=True):
            assert isinstance(prepared, Prepared)
            judge_and_text(page, ruleset, now_ms=0, prepared=prepared)


def main() -> None:
    records, rounds = argument(1, 12_000), argument(2, 3)
    base, what = base_features()
    features = list(many(base, records))
    ruleset = load_ruleset("default")
    gc.collect()  # as in a role's process
    gc.freeze()
    gc.set_threshold(10_000)
    with tempfile.TemporaryDirectory() as folder:
        log = EmbeddedLog(Path(folder))
        size = fill(log, features)
        alone = [wall_and_cpu_s(lambda: judge_batches(features, ruleset)) for _ in range(rounds)]
        reading = [
            wall_and_cpu_s(lambda: [sum(1 for _ in log.read(FEATURES, p)) for p in range(PARTITIONS)])
            for _ in range(rounds)
        ]
        whole = [judged(log, records, n) for n in range(rounds)]
        written = sum(len(m.value or b"") for t in (VERDICTS, SCORE_REQUESTS) for p in (0, 1) for m in log.read(t, p))
        log.close()
    print(f"{records} features of {what} pages, {size / records / 1024:.1f} KiB each; medians of {rounds}")
    for name, runs in (("rules over batches", alone), ("reading the topic", reading), ("JUDGE log to log", whole)):
        seconds, cpu = statistics.median(s for s, _ in runs), statistics.median(c for _, c in runs)
        print(f"  {name:18} {records / seconds:8.0f}/s wall, {records / cpu:8.0f}/s of CPU")
    ratio = statistics.median(c for _, c in whole) / statistics.median(c for _, c in alone)
    print(f"  CPU of JUDGE log to log / rules: {ratio:.2f}; written {written / 2**20:.0f} MiB in two partitions")


if __name__ == "__main__":
    main()
