"""JUDGE from and to the embedded log, compared with its rules over batches and with the log alone, on real features.

The log alone reads the same records, decodes them as JUDGE does, and writes verdicts that were made before: that is the
limit of JUDGE, whatever its rules cost.

Run: python -m tests.bench.bench_judge [RECORDS [ROUNDS]]
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from filters.measure.epoch import feature_epoch
from filters.rules.judgement import judge_and_text, prepare
from filters.rules.kinds import Prepared
from filters.rules.ruleset import Ruleset, load_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage, request_of
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Output, partition_of
from stream.processing.loop import MAX_RECORDS, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Context
from stream.schema.records import Features, Record, Verdict, encode
from stream.schema.topics import FEATURES, SCORE_REQUESTS, VERDICTS, all_topics
from stream.schema.vocabulary import KEPT
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


class WithoutRules(JudgeStage):
    """JUDGE with verdicts by the digest of the text."""

    def __init__(self, verdicts: Mapping[str, Verdict]) -> None:
        super().__init__(load_ruleset("default"))
        self._made = verdicts

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        return records

    def process(self, record: Features, prepared: Any, ctx: Context) -> None:  # nothing to prepare
        verdict = self._made[record.text_digest]
        ctx.emit(VERDICTS, verdict, key=record.site)
        if verdict.verdict in KEPT:
            ctx.emit(SCORE_REQUESTS, request_of(record, verdict, record.text, ""))


def through(log: EmbeddedLog, stage: JudgeStage, records: int, group: str) -> tuple[float, float]:
    """(seconds, CPU seconds) of a stage's loop over all records, to the last commit."""
    member = log.join(group, [FEATURES], member="bench")
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
        made = {page.text_digest: judge_and_text(page, ruleset)[0] for page in base}
        bare, whole = [], []
        for n in range(rounds):
            bare.append(through(log, WithoutRules(made), records, f"bare-{n}"))
            whole.append(through(log, JudgeStage(ruleset), records, f"judge-{n}"))
        written = sum(len(m.value or b"") for t in (VERDICTS, SCORE_REQUESTS) for p in (0, 1) for m in log.read(t, p))
        log.close()
    print(f"{records} features of {what} pages, {size / records / 1024:.1f} KiB each; medians of {rounds}")
    every = {
        "rules over batches": alone,
        "reading the topic": reading,
        "the log alone": bare,
        "JUDGE log to log": whole,
    }
    for name, runs in every.items():
        seconds, cpu = statistics.median(s for s, _ in runs), statistics.median(c for _, c in runs)
        print(f"  {name:18} {records / seconds:8.0f}/s wall, {records / cpu:8.0f}/s of CPU")
    ratio = statistics.median(c for _, c in whole) / statistics.median(c for _, c in alone)
    print(f"  CPU of JUDGE log to log / rules: {ratio:.2f}; written {written / 2**20:.0f} MiB in two partitions")


if __name__ == "__main__":
    main()
