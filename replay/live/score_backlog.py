"""What was scored while a run that is live now was not: so that its JUDGE asks for none of it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from filters.known_scores import KnownScores
from replay.runs.lag import MAX_LAG
from replay.runs.offsets import Stops, reached, unread_of
from replay.runs.scored_texts import score_keys
from stream.log.contract import At, Log, Message
from stream.schema.runs import RunNames
from stream.schema.topics import PAGES, SCORES

# Of a site TALLY keeps 256 scores whose verdicts have not come. Where as many came, some of them may be forgotten.
_SURELY_KEPT = 200


def scores_of_backlog(log: Log, names: RunNames, detector: str, few: int = MAX_LAG) -> KnownScores | None:
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
    begins = [message.timestamp_ms for message in _first_of_each(log, unread)]
    if not begins:
        return None
    first = log.offset_at(SCORES, min(begins))

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        from_there = {partition: max(first[partition], offset) for partition, offset in after.items()}
        end = f":{detector}".encode()
        of_site = Counter(_site(key) for _, _, key in score_keys(log)(from_there) if key.endswith(end))
        many = {site for site, scores in of_site.items() if scores > _SURELY_KEPT}
        return (found for found in score_keys(log)(from_there) if _site(found[2]) not in many)

    return KnownScores(detector, keys)


class Backlog:
    """What a run has still to measure and to judge as this is made; for one thread."""

    def __init__(self, log: Log, names: RunNames) -> None:
        """Of the run of these names. Raises LogUnavailable."""
        self._log = log
        self._names = names
        self._pages: Stops | None = {PAGES: log.end(PAGES)}
        self._features: Stops = {}  # known once those pages are measured

    def __call__(self) -> bool:
        """Whether something of it is left. Raises LogUnavailable."""
        log, names = self._log, self._names
        if self._pages is not None:
            if not reached(log, names.measure_group, self._pages):
                return True
            self._pages, self._features = None, {names.features: log.end(names.features)}
        return not reached(log, names.judge_group, self._features)


def _first_of_each(log: Log, spans: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
    """The first record of each span of offsets that has one."""
    for at, (start, stop) in spans.items():
        message = next(iter(log.read(*at, start, stop)), None)
        if message is not None:
            yield message


def _site(key: bytes) -> bytes:
    return key.partition(b" ")[0]
