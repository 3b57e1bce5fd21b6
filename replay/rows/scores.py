"""Reads from the log which detectors SCORE runs, and which texts have a score, wait for one, or were never requested.

A replay requests scores only of the detectors that SCORE wrote to `control` at its last start. The configuration does
not count: a request that SCORE cannot answer would be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from filters.known_scores import ArticleText, KnownScores, ScoreKeys, UnrequestedTexts
from replay.runs.configured import configured_detectors
from replay.runs.topology import MAX_LAG, Stops, is_at_stops, is_record, processed_by, unread_of
from replay.settings import ReplaySettings
from scoring.stages.site_pages import JudgedPage
from stream.log.contract import At, Clock, Log, wall_ms
from stream.processing.topic_reader import records_of
from stream.schema.control import Control, Scorers, write_scorers
from stream.schema.records import Features, ScoreRequest
from stream.schema.roles import Role
from stream.schema.runs import Run, RunNames
from stream.schema.topics import PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES
from stream.schema.vocabulary import KEPT

_NONE = b""  # a key without a score, for the position in a partition
# TALLY keeps 256 scores per site that wait for their verdicts. Of more, some may be dropped.
SURELY_KEPT = 200
_FIRST_KEPT = 16  # features whose verdicts are searched for the first one


def announce_detectors(log: Log, detectors: Sequence[str], clock: Clock = wall_ms) -> None:
    """Write the detectors of SCORE to `control` if they changed. SCORE calls this before it reads a request."""
    scorers = Control(log).scorers
    if scorers is None or scorers.detectors != detectors:
        write_scorers(log, Scorers(detectors=list(detectors), at=clock()))


def scored_detectors(control: Control, config: ReplaySettings) -> list[str]:
    """Identities of the detectors that SCORE runs; before its first start the configured ones; [] = unknown."""
    return configured_detectors(config) if control.scorers is None else control.scorers.detectors


def is_scored(control: Control, config: ReplaySettings, detector: str) -> bool:
    """Whether SCORE runs a detector; True if that is unknown, because a request names its detector."""
    detectors = scored_detectors(control, config)
    return not detectors or detector in detectors


def known_texts(log: Log, detector: str) -> KnownScores:
    """The texts with a score of a detector, or a request that waits, of any run. `read_on` adds later scores only."""
    unread = unread_of(log, Role.SCORE, REPLAY_REQUESTS) | unread_of(log, Role.SCORE, SCORE_REQUESTS)
    looked_at: set[int] = set()

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        spans = {at: span for at, span in unread.items() if at.partition in after.keys() - looked_at}
        looked_at.update(after)
        for partition, request in _waiting(log, spans):  # before the scores, which include new answers
            if request.detector in ("", detector):
                yield partition, -1, f"{request.site} {request.text_digest}:{detector}".encode()
        yield from score_keys(log)(after)

    return KnownScores(detector, keys)


def unrequested_texts(log: Log, run: Run, known: Callable[[], KnownScores] | None = None) -> UnrequestedTexts:
    """The articles of a run without a score of its detector and without a waiting request.

    Articles whose features expired are left out: no score can be requested for them. `known` gives the texts that have
    a score or wait for one. Default: read from the log when a partition is read.
    """

    def articles(partition: int) -> Iterator[ArticleText]:
        topic = run.names().verdicts
        for _, verdict in records_of(JudgedPage, log.read(topic, partition, _first_to_ask(log, run, partition))):
            if verdict.verdict in KEPT:
                yield ArticleText(verdict.site, verdict.text_digest, verdict.id)

    return UnrequestedTexts(articles, known or (lambda: known_texts(log, run.detector)))


def count_unrequested(log: Log, run: Run, stopped: Callable[[], bool] = lambda: False) -> int:
    """Number of texts of the run without a request; 0 once `stopped` is true. Raises LogUnavailable."""
    known = known_texts(log, run.detector)
    unrequested = unrequested_texts(log, run, lambda: known)
    texts = 0
    for partition in range(log.topics()[run.features]):
        if stopped():
            return 0
        texts += unrequested.count(partition)
        unrequested.forget([partition])
    return texts


def requests_wait(log: Log) -> bool:
    """Whether requests of replays wait for SCORE. Raises LogUnavailable."""
    unread = unread_of(log, Role.SCORE, REPLAY_REQUESTS) if REPLAY_REQUESTS in log.topics() else {}
    return next(_waiting(log, unread), None) is not None


def score_keys(log: Log) -> ScoreKeys:
    """Reads the keys of the stored scores of all detectors, as `KnownScores` needs them."""

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        ends = log.end(SCORES)
        spans = {At(SCORES, partition): (offset, ends[partition]) for partition, offset in after.items()}
        spans = {at: span for at, span in spans.items() if span[0] < span[1]}
        for message in log.read_all(spans):
            if message.value:
                yield message.partition, message.offset, message.key
        for at, (_, end) in spans.items():
            yield at.partition, end - 1, _NONE  # the last offset may be a transaction marker

    return keys


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
    """A function, for one thread: whether part of the present backlog is left. Both raise LogUnavailable."""
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


def _waiting(log: Log, spans: Mapping[At, tuple[int, int]]) -> Iterator[tuple[int, ScoreRequest]]:
    """(partition, request) of these offsets. Unreadable requests are left out."""
    return ((message.partition, request) for message, request in records_of(ScoreRequest, log.read_all(spans)))


def _first_to_ask(log: Log, run: Run, partition: int) -> int:
    """Offset of the first verdict whose features exist, by the order of both; the first verdict if that is unknown."""
    topic, names = run.features, run.names()
    first = log.beginning(names.verdicts)[partition]
    kept = log.beginning(topic)[partition]
    if kept <= (run.start[topic][partition] if topic in run.start else 0):
        return first
    judged = processed_by(log, names.judge_group, topic)[partition]
    features = list(islice(filter(is_record, log.read(topic, partition, kept, judged)), _FIRST_KEPT))
    if not features:
        return log.end(names.verdicts)[partition]
    ids = {measured.id for _, measured in records_of(Features, features)}  # an unreadable record has no verdict
    for message, verdict in records_of(JudgedPage, log.read(names.verdicts, partition, first)):
        if verdict.id in ids:
            return message.offset
    return first
