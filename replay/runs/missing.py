"""What a run has not read and never will: records that were before it, and those that left the log unread.

Offsets alone show that only until the run reads on. So a run that goes on, and a member that finds itself moved on,
write the missing records to its row, as gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replay.runs.phases import Phase, phases_of
from stream.log.contract import At, Log
from stream.processing.topic_reader import dead_letters_of
from stream.schema.runs import Gap, Run
from stream.schema.topics import DEAD_LETTERS, PAGES, SCORES

_JUDGED_BY = frozenset({"measure", "judge", "tally"})
_CLOCKS_MS = 3_600_000  # by which the log's clock may be behind that of the process that began a run


def gaps_of(log: Log, run: Run) -> list[Gap]:
    """Records that left the log before the run had read them: the gaps of its row, and those that show now."""
    return merge_gaps([*run.gaps, *(gap for phase in phases_of(run) for gap in _unread_gaps(log, run, phase))])


def count_dead_letters(log: Log, run: Run) -> int:
    """Count the kept dead letters of MEASURE, JUDGE and TALLY for a run."""
    if DEAD_LETTERS not in log.topics():
        return 0
    begun = log.offset_at(DEAD_LETTERS, max(0, run.created_at - _CLOCKS_MS))
    spans = {
        At(DEAD_LETTERS, partition): span
        for partition, span in enumerate(zip(begun, log.end(DEAD_LETTERS), strict=True))
    }
    letters = dead_letters_of(log.read_all(spans))
    return sum(letter.run == run.name and letter.stage in _JUDGED_BY for _, letter in letters)


def merge_gaps(gaps: Iterable[Gap]) -> list[Gap]:
    """Each gap once: one that was seen again, before the run read on, may have grown."""
    found: dict[tuple[str, int, int], Gap] = {}
    for gap in gaps:
        place = (gap.topic, gap.partition, gap.first)
        if place not in found or found[place].last < gap.last:
            found[place] = gap
    return list(found.values())


def records_in(gaps: Iterable[Gap]) -> dict[str, int]:
    """Topic -> records; at most so many where they were deleted before the run began."""
    found: dict[str, int] = {}
    for gap in gaps:
        found[gap.topic] = found.get(gap.topic, 0) + gap.last - gap.first
    return found


def missing_records(log: Log, run: Run, runs: Mapping[str, Run]) -> dict[str, int]:
    """Topic -> records that are there, or were, and that the run has not read and will not: before it, or expired.

    `runs` are those of the log: what another run lacked that measured this one's features, this one lacks too.
    """
    gaps = [*_before(log, run), *gaps_of(log, run)]
    for other in runs.values():
        if other.remeasures and other.features == run.features and other.name != run.name:
            gaps += [gap for gap in (*_before(log, other), *gaps_of(log, other)) if gap.topic == PAGES]
    return records_in(gaps)


def _before(log: Log, run: Run) -> list[Gap]:
    """Records that are kept, from before the run began."""
    begun = run.start.get(run.source)
    return [] if begun is None else _gaps_between(run.source, log.beginning(run.source), begun)


def _unread_gaps(log: Log, run: Run, phase: Phase) -> list[Gap]:
    found = []
    for topic in phase.topics:
        if topic == SCORES:  # compaction moves its beginning, and takes no score away
            continue
        kept, done = log.beginning(topic), log.committed(phase.group, topic)
        own = topic.endswith(f".{run.name}")  # it has read such a topic from the very first record on
        unread = run.start.get(topic) or [0 if own else first for first in kept]
        first = [begun if at is None else at for begun, at in zip(unread, done, strict=True)]
        found += _gaps_between(topic, first, kept)
    return found


def _gaps_between(topic: str, first: Sequence[int], last: Sequence[int]) -> list[Gap]:
    pairs = enumerate(zip(first, last, strict=True))
    return [Gap(topic, partition, begin, end) for partition, (begin, end) in pairs if begin < end]
