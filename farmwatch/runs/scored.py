"""Which texts have a score, which wait for one, and which nobody has asked for: read from the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from farmwatch.role_names import Role
from farmwatch.runs.lag import MAX_LAG
from farmwatch.runs.offsets import between, done_by
from filters.judging import ARTICLE
from filters.known_scores import KnownScores, ScoreKeys
from filters.unasked import Article, Unasked
from scoring.judged_page import JudgedPage
from stream.errors import BadRecord
from stream.heartbeat import is_heartbeat
from stream.log import At, Log
from stream.records import ScoreRequest, decode
from stream.runs import Run, RunNames
from stream.topics import PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES

_NONE = b""  # the key that says how far a partition was read
# Of a site TALLY keeps 256 scores whose verdicts have not come. Where as many came, some of them may be forgotten.
_SURELY_KEPT = 200


def known_texts(log: Log, detector: str) -> KnownScores:
    """The texts that a detector has scored, or that SCORE is asked for and has not come to, whichever run asked.

    What is asked for later is not taken in; what is scored later is, by `read_on`.
    """
    looked_at: set[int] = set()

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        for partition in after.keys() - looked_at:  # before the scores: what SCORE answers meanwhile is among them
            looked_at.add(partition)
            for topic in (REPLAY_REQUESTS, SCORE_REQUESTS):
                for request in _waiting(log, topic, partition):
                    if request.detector in ("", detector):
                        yield partition, -1, f"{request.site} {request.text_digest}:{detector}".encode()
        yield from _score_keys(log)(after)

    return KnownScores(detector, keys)


def known_meanwhile(log: Log, names: RunNames, detector: str, few: int = MAX_LAG) -> KnownScores | None:
    """The texts scored since the first record came in that the run of these names has still to measure or to judge.

    A run that is live again judges what another one was live for, and most of that has its score. None where no more
    than `few` records wait, as at an ordinary start: what is asked for twice then is not worth a look at the scores.
    Left out are sites of so many new scores that TALLY may have forgotten some before their verdicts. Raises
    LogUnavailable.
    """
    reads = ((names.measure_group, PAGES), (names.judge_group, names.features))
    if sum(between(done_by(log, group, topic), log.end(topic)) for group, topic in reads) <= few:
        return None
    unread = [at_ms for group, topic in reads for at_ms in _first_unread(log, group, topic)]
    if not unread:
        return None
    first = log.offset_at(SCORES, min(unread))

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        from_there = {partition: max(first[partition], offset) for partition, offset in after.items()}
        end = f":{detector}".encode()
        of_site = Counter(_site(key) for _, _, key in _score_keys(log)(from_there) if key.endswith(end))
        many = {site for site, scores in of_site.items() if scores > _SURELY_KEPT}
        return (found for found in _score_keys(log)(from_there) if _site(found[2]) not in many)

    return KnownScores(detector, keys)


def unasked_of(log: Log, run: Run) -> Unasked:
    """The articles of a run without a score of its detector, and without a request that SCORE has still to read."""
    return Unasked(lambda partition: _articles(log, run, partition), lambda: known_texts(log, run.detector))


def requests_wait(log: Log) -> bool:
    """Whether SCORE has still to read requests of replays. Raises LogUnavailable."""
    if REPLAY_REQUESTS not in log.topics():
        return False
    partitions = range(log.topics()[REPLAY_REQUESTS])
    return any(True for partition in partitions for _ in _waiting(log, REPLAY_REQUESTS, partition))


def _score_keys(log: Log) -> ScoreKeys:
    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        ends = log.end(SCORES)
        spans = {At(SCORES, partition): (offset, ends[partition]) for partition, offset in after.items()}
        spans = {at: span for at, span in spans.items() if span[0] < span[1]}
        for message in log.read_all(spans):
            if message.value:
                yield message.partition, message.offset, message.key
        for at, (_, end) in spans.items():
            yield at.partition, end - 1, _NONE  # markers of transactions may stand there

    return keys


def _waiting(log: Log, topic: str, partition: int) -> Iterator[ScoreRequest]:
    """Requests that SCORE has not dealt with. One that cannot be read waits for nothing."""
    done = done_by(log, Role.SCORE.value, topic)[partition]
    for message in log.read(topic, partition, done):
        if not is_heartbeat(message):
            with suppress(BadRecord):
                yield decode(ScoreRequest, message.value or b"")


def _articles(log: Log, run: Run, partition: int) -> Iterator[Article]:
    topic = run.names().verdicts
    for message in log.read(topic, partition, log.beginning(topic)[partition]):
        if message.value and not is_heartbeat(message):
            verdict = decode(JudgedPage, message.value)
            if verdict.verdict == ARTICLE:
                yield Article(verdict.site, verdict.text_digest, verdict.id)


def _first_unread(log: Log, group: str, topic: str) -> Iterator[int]:
    """When the first record came that the group has not read, of each partition that has one, ms."""
    spans: Sequence[tuple[int, int]] = list(zip(done_by(log, group, topic), log.end(topic), strict=True))
    for partition, (done, end) in enumerate(spans):
        message = next(iter(log.read(topic, partition, done, end)), None) if done < end else None
        if message is not None:
            yield message.timestamp_ms


def _site(key: bytes) -> bytes:
    return key.partition(b" ")[0]
