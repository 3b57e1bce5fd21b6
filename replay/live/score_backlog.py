"""Finds texts that were scored before this run became live, so that JUDGE requests none of them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from filters.known_scores import KnownScores
from replay.rows.scores import score_keys
from replay.runs.topology import MAX_LAG, Stops, is_at_stops, unread_of
from stream.log.contract import Log
from stream.schema.runs import RunNames
from stream.schema.topics import PAGES, SCORES

# TALLY keeps 256 scores per site that wait for their verdicts. Of more, some may be dropped.
SURELY_KEPT = 200


def scores_of_backlog(
    log: Log, names: RunNames, detector: str, few: int = MAX_LAG, surely_kept: int = SURELY_KEPT
) -> KnownScores | None:
    """The texts scored since the oldest record that the run with these names still has to measure or judge.

    A run that becomes live again judges records of the time when another run was live, and most of their texts have a
    score. None if at most `few` records wait, as at an ordinary start: reading the scores would cost more than
    duplicate requests. Sites with so many new scores that TALLY may have dropped some are left out. Raises
    LogUnavailable.
    """
    reads = ((names.measure_group, PAGES), (names.judge_group, names.features))
    unread = {at: span for group, topic in reads for at, span in unread_of(log, group, topic).items()}
    if sum(end - start for start, end in unread.values()) <= few:
        return None
    firsts = (next(iter(log.read(*at, *span)), None) for at, span in unread.items())
    begins = [message.timestamp_ms for message in firsts if message is not None]
    if not begins:
        return None
    first = log.offset_at(SCORES, min(begins))

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        from_there = {partition: max(first[partition], offset) for partition, offset in after.items()}
        end = f":{detector}".encode()
        of_site = Counter(key.partition(b" ")[0] for _, _, key in score_keys(log)(from_there) if key.endswith(end))
        many = {site for site, scores in of_site.items() if scores > surely_kept}
        return (scored for scored in score_keys(log)(from_there) if scored[2].partition(b" ")[0] not in many)

    return KnownScores(detector, keys)


def backlog(log: Log, names: RunNames) -> Callable[[], bool]:
    """A function that tells whether part of the present backlog is left. Call it from one thread.

    Both raise LogUnavailable.
    """
    pages: Stops | None = {PAGES: log.end(PAGES)}
    features: Stops = {}  # known once those pages are measured

    def is_left() -> bool:
        nonlocal pages, features
        if pages is not None:
            if not is_at_stops(log, names.measure_group, pages):
                return True
            pages, features = None, {names.features: log.end(names.features)}
        return not is_at_stops(log, names.judge_group, features)

    return is_left
