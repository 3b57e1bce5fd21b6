"""Runs stages over a log in memory: puts records, runs, and reads the outputs."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TypeVar

from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from replay.runs.topology import lag_of
from scoring.interface import Detector
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.log.contract import Clock, Output, partition_of, wall_ms
from stream.memory.log import MemoryLog
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import Record, decode, encode
from stream.schema.topics import HITS

T = TypeVar("T", bound=Record)


def put(log: MemoryLog, topic: str, *records: Record) -> None:
    """Records under their site's key, in its partition."""
    partitions = log.topics()[HITS]
    log.append([Output(topic, partition_of(r.site, partitions), r.site.encode(), encode(r)) for r in records])


def records(log: MemoryLog, topic: str, kind: type[T]) -> list[T]:
    return [decode(kind, message.value) for message in log.read(topic, 0) if message.value]


def work_all(log: MemoryLog, settings: MeasureSettings, ruleset: str, detector: Detector) -> None:
    """Run MEASURE, JUDGE, SCORE and TALLY over all records, one after the other."""
    with closing(MeasureStage(settings)) as measure:
        work(log, measure)
    work(log, JudgeStage(load_ruleset(ruleset)))
    work(log, ScoreStage(lambda: [detector]))
    work(log, TallyStage(detector.identity))


def work(log: MemoryLog, stage: Stage, clock: Clock = wall_ms, group: str = "") -> Metrics:
    """Run a stage over all records, in its own group or in this; returns its metrics."""
    stage.poll_s = 0.001
    metrics = Metrics()
    member = log.join(group or stage.name, list(stage.inputs), member="one", store=stage.store)
    loop = StageLoop(stage, member, metrics=metrics, clock=clock)
    for _ in range(200):
        loop.cycle(threading.Event())
        if not lag_of(log, group or stage.name, {group or stage.name: tuple(stage.inputs)}):
            break
    member.close()
    return metrics
