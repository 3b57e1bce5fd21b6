"""Topics and state stores of a run."""

from __future__ import annotations

from collections.abc import Sequence

from filters.judge_stage import asked_store
from replay.runs.phases import MEASURE, phases_of
from stream.log.contract import CleanupPolicy, Topic
from stream.schema.runs import Run, memory_store
from stream.schema.topics import FEATURES, SITES, VERDICTS, all_topics


def topics_of(run: Run, partitions: int) -> list[Topic]:
    """Topics of a run's own, kept as those of the live run are; changelogs of its stores included."""
    names = run.names()
    like = {topic.name: topic for topic in all_topics(partitions, run.epoch)}
    made = [(VERDICTS, names.verdicts), (SITES, names.sites)]
    if run.remeasures:
        made.append((FEATURES, names.features))
    topics = [_renamed(like[kind], name) for kind, name in made]
    return [*topics, *(Topic(f"state.{store}", partitions, CleanupPolicy.COMPACT) for store in stores_of(run))]


def stores_of(run: Run) -> Sequence[str]:
    """Keyed state of a run's own."""
    stores = [run.names().tally_store, asked_store(run.name)]
    measures = any(phase.name == MEASURE for phase in phases_of(run))
    return [*stores, memory_store(run.features, run.epoch)] if measures else stores


def _renamed(topic: Topic, name: str) -> Topic:
    return Topic(name, topic.partitions, topic.kept, topic.retention_ms, topic.retention_bytes)
