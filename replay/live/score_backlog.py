"""What was scored while a run that is live now was not: so that its JUDGE asks for none of it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from filters.known_scores import KnownScores
from replay.runs.offsets import Stops, reached, unread_of
from replay.runs.scores import score_keys
from replay.runs.topology import MAX_LAG
from stream.log.contract import Log
from stream.schema.runs import RunNames
from stream.schema.topics import PAGES, SCORES

# Of a site TALLY keeps 256 scores whose verdicts have not come. Where as many came, some of them may be forgotten.
SURELY_KEPT = 200


def scores_of_backlog(
    log: Log, names: RunNames, detector: str, few: int = MAX_LAG, surely_kept: int = SURELY_KEPT
) -> KnownScores | None:
    """The texts scored since the first record came in that the run of these names has still to measure or to judge.

    A run that is live again judges what another one was live for, and most of that has its score. None where no more
    than `few` records wait, as at an ordinary start: what is asked for twice then is not worth a look at the scores.
    Left out are sites of so many new scores that TALLY may have forgotten some before their verdicts. Raises
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
        of_site = Counter(_site(key) for _, _, key in score_keys(log)(from_there) if key.endswith(end))
        many = {site for site, scores in of_site.items() if scores > surely_kept}
        return (found for found in score_keys(log)(from_there) if _site(found[2]) not in many)

    return KnownScores(detector, keys)


def backlog(log: Log, names: RunNames) -> Callable[[], bool]:
    """Whether something is left of what the run has to measure and to judge now, as a function for one thread.

    It raises LogUnavailable, as this does.
    """
    pages: Stops | None = {PAGES: log.end(PAGES)}
    features: Stops = {}  # known once those pages are measured

    def is_left() -> bool:
        nonlocal pages, features
        if pages is not None:
            if not reached(log, names.measure_group, pages):
                return True
            pages, features = None, {names.features: log.end(names.features)}
        return not reached(log, names.judge_group, features)

    return is_left


def _site(key: bytes) -> bytes:
    return key.partition(b" ")[0]
