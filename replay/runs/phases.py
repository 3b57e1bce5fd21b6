"""The phases of a run: which groups read what up to where, and how far they are. Read from `control` and the log.

MEASURE (only of a run that measures pages anew), JUDGE, TALLY: each begins when the one before is at its stops. ASK, a
second pass over what JUDGE has read, comes last and only where it is needed; a run is done without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from filters.judge_stage import requested_store
from replay.runs.offsets import between, processed_by, reached
from replay.runs.topology import reads_of_run
from stream.log.contract import CleanupPolicy, Log, Topic
from stream.schema.runs import Run, memory_store
from stream.schema.topics import FEATURES, SITES, VERDICTS, all_topics

MEASURE, JUDGE, TALLY, ASK = "measure", "judge", "tally", "ask"
# What a record costs in each phase, beside the others: a core does about 45, 5,000 and 18,000 a second.
_EFFORT: Mapping[str, float] = {MEASURE: 400.0, JUDGE: 3.5, TALLY: 1.0, ASK: 1.5}


@dataclass(frozen=True, slots=True)
class Phase:
    """One group of a run, and the topics that it reads."""

    name: str
    group: str
    topics: Sequence[str]

    def stops(self, log: Log, run: Run) -> dict[str, list[int]]:
        """Where it ends: as the row says, and where it does not, the present ends; of ASK, where JUDGE is."""
        if self.name == ASK:
            return {topic: processed_by(log, run.names().judge_group, topic) for topic in self.topics}
        return {topic: list(run.stop.get(topic) or log.end(topic)) for topic in self.topics}

    def starts(self, log: Log, run: Run) -> dict[str, list[int]]:
        """Where it begins: as the row says, and where it does not, the beginnings that are kept."""
        return {topic: list(run.start.get(topic) or log.beginning(topic)) for topic in self.topics}


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a phase is, in records: offsets, so that transaction markers count too."""

    phase: str
    done: int
    total: int

    @property
    def is_done(self) -> bool:
        """Nothing is left."""
        return self.done >= self.total


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is."""

    advances: Sequence[Advance]

    @property
    def current(self) -> Advance:
        """The phase that is under way; the last one once all are done."""
        return next((advance for advance in self.advances if not advance.is_done), self.advances[-1])

    @property
    def phase(self) -> str:
        """Name of the phase that is under way; "" where none is left, or none known."""
        return next((advance.phase for advance in self.advances if not advance.is_done), "")

    @property
    def done(self) -> int:
        """Records dealt with, over all phases."""
        return sum(advance.done for advance in self.advances)

    @property
    def effort(self) -> float:
        """What is done, each record by what one of its phase costs."""
        return sum(_EFFORT[advance.phase] * advance.done for advance in self.advances)

    @property
    def effort_left(self) -> float:
        """What is left, in the same measure."""
        return sum(_EFFORT[advance.phase] * (advance.total - advance.done) for advance in self.advances)

    @property
    def share(self) -> float:
        """Share that is done, by effort."""
        whole = self.effort + self.effort_left
        return self.effort / whole if whole else 1.0


def phases_of(run: Run) -> list[Phase]:
    """The phases of a run, in order."""
    reads = zip((MEASURE, JUDGE, TALLY), reads_of_run(run.names()).items(), strict=True)
    phases = [Phase(name, group, topics) for name, (group, topics) in reads]
    return phases if run.remeasures else phases[1:]


def ask_phase(run: Run) -> Phase:
    """The pass that asks for the texts without a score that nobody has asked for."""
    return Phase(ASK, f"{ASK}.{run.name}", (run.features,))


def groups_of(run: Run) -> list[str]:
    """Groups of a run that are its own."""
    return [phase.group for phase in (*phases_of(run), ask_phase(run))]


def topics_of(run: Run, partitions: int) -> list[Topic]:
    """Topics of a run's own, kept as those of the live run are; changelogs of its stores included."""
    names = run.names()
    like = {topic.name: topic for topic in all_topics(partitions, run.epoch)}
    made = [(VERDICTS, names.verdicts), (SITES, names.sites)]
    if run.remeasures:
        made.append((FEATURES, names.features))
    topics = [replace(like[kind], name=name) for kind, name in made]
    return [*topics, *(Topic(f"state.{store}", partitions, CleanupPolicy.COMPACT) for store in stores_of(run))]


def stores_of(run: Run) -> Sequence[str]:
    """Keyed state of a run's own."""
    stores = [run.names().tally_store, requested_store(run.name)]
    return [*stores, memory_store(run.features, run.epoch)] if run.remeasures else stores


def progress_of(log: Log, run: Run, *, asks: bool = False) -> RunProgress:
    """How far a run is; with ASK where it `asks`. Raises UnknownTopic where its topics are gone, LogUnavailable."""
    names = run.names()
    advances = []
    expected = 0  # records that the phase before is still to make, at most
    for phase in phases_of(run):
        done, total = _advance(log, run, phase)
        made_here = names.features if phase.name == JUDGE else names.verdicts if phase.name == TALLY else ""
        if made_here in run.start:
            expected = 0
        advances.append(Advance(phase.name, done, total + expected))
        expected += total - done
    if asks:
        advances.append(Advance(ASK, *_advance(log, run, ask_phase(run))))
    return RunProgress(advances)


def is_done(log: Log, run: Run) -> bool:
    """Whether all phases are at their stops, each at what the one before has made."""
    return all(reached(log, phase.group, phase.stops(log, run)) for phase in phases_of(run))


def _advance(log: Log, run: Run, phase: Phase) -> tuple[int, int]:
    starts, stops = phase.starts(log, run), phase.stops(log, run)
    done = total = 0
    for topic in phase.topics:
        first = starts[topic]
        at = [min(place, stop) for place, stop in zip(processed_by(log, phase.group, topic), stops[topic], strict=True)]
        done += between(first, at)
        total += between(first, stops[topic])
    return done, total
