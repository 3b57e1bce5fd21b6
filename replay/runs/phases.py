"""The phases of a run: their groups, topics and stops, and their progress. Read from `control` and the log.

MEASURE (only for a run that measures pages again), JUDGE, TALLY: each begins when the previous one is at its stops. A
request pass comes last: it reads the features of JUDGE again and requests missing scores. A run is done without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from replay.runs.topology import between, is_at_stops, processed_by, reads_of_run
from stream.log.contract import CleanupPolicy, Log, Topic
from stream.schema.runs import Run, memory_store
from stream.schema.topics import FEATURES, SITE_TERMS, SITES, TEMPLATES, VERDICTS, all_topics

MEASURE, JUDGE, TALLY, REQUESTS = "measure", "judge", "tally", "ask"
# Relative cost of a record: one core processes about 45 (MEASURE), 5,000 (JUDGE) or 18,000 (TALLY) per second.
_EFFORT: Mapping[str, float] = {MEASURE: 400.0, JUDGE: 3.5, TALLY: 1.0, REQUESTS: 1.5}


@dataclass(frozen=True, slots=True)
class Phase:
    """One group of a run, and the topics that it reads."""

    name: str
    group: str
    topics: Sequence[str]

    def stops(self, log: Log, run: Run) -> dict[str, list[int]]:
        """Its last offsets: those in the row, else the present ends. The request pass ends at the position of JUDGE."""
        if self.name == REQUESTS:
            return {topic: processed_by(log, run.names().judge_group, topic) for topic in self.topics}
        return {topic: list(run.stop.get(topic) or log.end(topic)) for topic in self.topics}

    def starts(self, log: Log, run: Run) -> dict[str, list[int]]:
        """Its first offsets: those in the row, else the oldest stored offsets."""
        return {topic: list(run.start.get(topic) or log.beginning(topic)) for topic in self.topics}


@dataclass(frozen=True, slots=True)
class PhaseProgress:
    """The progress of a phase, in offsets; transaction markers count too."""

    phase: str
    done: int
    total: int

    @property
    def is_done(self) -> bool:
        return self.done >= self.total


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run."""

    phases: Sequence[PhaseProgress]

    @property
    def current(self) -> PhaseProgress:
        return next((advance for advance in self.phases if not advance.is_done), self.phases[-1])

    @property
    def phase(self) -> str:
        return next((advance.phase for advance in self.phases if not advance.is_done), "")

    @property
    def done(self) -> int:
        return sum(advance.done for advance in self.phases)

    @property
    def effort(self) -> float:
        """The finished work: records weighted by the cost of their phase."""
        return sum(_EFFORT[advance.phase] * advance.done for advance in self.phases)

    @property
    def effort_left(self) -> float:
        return sum(_EFFORT[advance.phase] * (advance.total - advance.done) for advance in self.phases)

    @property
    def share(self) -> float:
        whole = self.effort + self.effort_left
        return self.effort / whole if whole else 1.0


def phases_of(run: Run) -> list[Phase]:
    """The phases of a run, in order."""
    reads = zip((MEASURE, JUDGE, TALLY), reads_of_run(run.names()).items(), strict=True)
    phases = [Phase(name, group, topics) for name, (group, topics) in reads]
    return phases if run.remeasures else phases[1:]


def request_phase(run: Run) -> Phase:
    """The pass that requests scores for texts with neither a score nor a request."""
    return Phase(REQUESTS, f"{REQUESTS}.{run.name}", (run.features,))


def groups_of(run: Run) -> list[str]:
    """The groups that belong to a run."""
    return [phase.group for phase in (request_phase(run), *phases_of(run))]


def topics_of(run: Run, partitions: int, existing: Mapping[str, Topic] = MappingProxyType({})) -> list[Topic]:
    """The topics that belong to a run, with the changelogs of its stores; retention as for the existing topics."""
    names = run.names()
    like = {topic.name: topic for topic in all_topics(partitions, run.epoch)} | dict(existing)
    made = [(VERDICTS, names.verdicts), (SITES, names.sites), (SITE_TERMS, names.terms)]
    if run.remeasures:
        made += [(FEATURES, names.features), (TEMPLATES, names.templates)]
    topics = [replace(like[kind], name=name) for kind, name in made]
    return [*topics, *(Topic(f"state.{store}", partitions, CleanupPolicy.COMPACT) for store in stores_of(run))]


def stores_of(run: Run) -> Sequence[str]:
    """The keyed state that belongs to a run."""
    from filters.stages.judge import requested_store

    stores = [run.names().tally_store, requested_store(run.name)]
    return [*stores, memory_store(run.features, run.epoch)] if run.remeasures else stores


def progress_of(log: Log, run: Run, *, requesting: bool = False) -> RunProgress:
    """The progress of a run; `requesting` adds the request pass."""
    names = run.names()
    advances = []
    expected = 0  # upper bound of the records that the previous phase will still write
    for phase in phases_of(run):
        done, total = _advance(log, run, phase)
        made_here = names.features if phase.name == JUDGE else names.verdicts if phase.name == TALLY else ""
        if made_here in run.start:
            expected = 0
        advances.append(PhaseProgress(phase.name, done, total + expected))
        expected += total - done
    if requesting:
        advances.append(PhaseProgress(REQUESTS, *_advance(log, run, request_phase(run))))
    return RunProgress(advances)


def is_done(log: Log, run: Run) -> bool:
    """Whether all phases are at their stops."""
    return all(is_at_stops(log, phase.group, phase.stops(log, run)) for phase in phases_of(run))


def _advance(log: Log, run: Run, phase: Phase) -> tuple[int, int]:
    starts, stops = phase.starts(log, run), phase.stops(log, run)
    done = total = 0
    for topic in phase.topics:
        first = starts[topic]
        at = [min(place, stop) for place, stop in zip(processed_by(log, phase.group, topic), stops[topic], strict=True)]
        done += between(first, at)
        total += between(first, stops[topic])
    return done, total
