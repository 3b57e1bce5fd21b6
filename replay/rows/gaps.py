"""Records that a run will never read: older than its start, or expired unread.

Offsets show a gap only until the run reads on. So a resumed run, and a member whose position retention moved, write the
missing records to the run's row as gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replay.rows.dead_letters import LetterState, Settlements
from replay.runs.phases import phases_of
from stream.log.contract import At, Log
from stream.processing.topic_reader import dead_letters_of
from stream.schema.runs import Gap, Run
from stream.schema.topics import DEAD_LETTERS, PAGES, SCORES

_JUDGED_BY = frozenset({"measure", "judge", "tally"})
_CLOCK_SKEW_MS = 3_600_000  # between the log and the process that began a run


def gaps_of(log: Log, run: Run) -> list[Gap]:
    """Records that expired before the run read them: the gaps in its row, and those visible in its offsets now."""
    gaps = list(run.gaps)
    for group, topic in ((phase.group, topic) for phase in phases_of(run) for topic in phase.topics):
        if topic == SCORES:  # compaction moves its beginning but loses no score
            continue
        kept, done = log.beginning(topic), log.committed(group, topic)
        own = topic.endswith(f".{run.name}")  # such a topic is read from offset 0
        unread = run.start.get(topic) or [0 if own else first for first in kept]
        first = [begun if at is None else at for begun, at in zip(unread, done, strict=True)]
        gaps += _gaps_between(topic, first, kept)
    return merge_gaps(gaps)


def count_dead_letters(log: Log, run: Run) -> int:
    """Count the stored dead letters of MEASURE, JUDGE and TALLY for a run, without those whose retry was read."""
    if DEAD_LETTERS not in log.topics():
        return 0
    begun = log.offset_at(DEAD_LETTERS, max(0, run.created_at - _CLOCK_SKEW_MS))
    spans = {
        At(DEAD_LETTERS, partition): span
        for partition, span in enumerate(zip(begun, log.end(DEAD_LETTERS), strict=True))
    }
    settlements = Settlements(log)
    return sum(
        letter.run == run.name
        and letter.stage in _JUDGED_BY
        and settlements.state_of(message, letter) is not LetterState.RETRIED
        for message, letter in dead_letters_of(log.read_all(spans))
    )


def merge_gaps(gaps: Iterable[Gap]) -> list[Gap]:
    """Merge gaps with the same start. A gap may have grown since it was recorded; the longest one counts."""
    merged: dict[tuple[str, int, int], Gap] = {}
    for gap in gaps:
        place = (gap.topic, gap.partition, gap.first)
        if place not in merged or merged[place].last < gap.last:
            merged[place] = gap
    return list(merged.values())


def records_in(gaps: Iterable[Gap]) -> dict[str, int]:
    """Topic -> number of records in the gaps; an upper bound for records that were deleted before the run began."""
    records: dict[str, int] = {}
    for gap in gaps:
        records[gap.topic] = records.get(gap.topic, 0) + gap.last - gap.first
    return records


def missing_records(log: Log, run: Run, runs: Mapping[str, Run]) -> dict[str, int]:
    """Topic -> records, existing or expired, that the run has not read and never will.

    `runs` are all runs of the log: a run also lacks the pages that the run that measured its features lacked.
    """
    gaps = [*_gaps_before(log, run), *gaps_of(log, run)]
    for other in runs.values():
        if other.remeasures and other.features == run.features and other.name != run.name:
            gaps += [gap for gap in (*_gaps_before(log, other), *gaps_of(log, other)) if gap.topic == PAGES]
    return records_in(gaps)


def _gaps_before(log: Log, run: Run) -> list[Gap]:
    begun = run.start.get(run.source)
    return [] if begun is None else _gaps_between(run.source, log.beginning(run.source), begun)


def _gaps_between(topic: str, first: Sequence[int], last: Sequence[int]) -> list[Gap]:
    pairs = enumerate(zip(first, last, strict=True))
    return [Gap(topic, partition, begin, end) for partition, (begin, end) in pairs if begin < end]
