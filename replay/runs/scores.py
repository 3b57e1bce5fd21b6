"""Which detectors SCORE runs, and which texts have a score, wait for one, or were never requested: read from the log.

A replay requests scores of those detectors only that SCORE wrote to `control` at its last start, whatever a
configuration says: a request that SCORE cannot answer as wanted would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from filters.known_scores import ArticleText, KnownScores, ScoreKeys, UnrequestedTexts
from filters.rules.judgement import ARTICLE
from replay.runs.offsets import is_record, processed_by, unread_of
from replay.settings import ReplaySettings
from scoring.detectors.registry import detector_identities
from scoring.errors import ScoringError
from scoring.site_tally import JudgedPage
from stream.log.contract import At, Clock, Log, wall_ms
from stream.processing.topic_reader import records_of
from stream.schema.control import Control, Scorers, write_scorers
from stream.schema.records import Features, ScoreRequest
from stream.schema.roles import Role
from stream.schema.runs import Run
from stream.schema.topics import REPLAY_REQUESTS, SCORE_REQUESTS, SCORES

_NONE = b""  # the key that says how far a partition was read
_FIRST_KEPT = 16  # features among whose verdicts the first one is looked for


def announce_detectors(log: Log, detectors: Sequence[str], clock: Clock = wall_ms) -> None:
    """As SCORE, before it reads a request: write its detectors down, if they are others than those that stand there.

    Raises as `Log.append`.
    """
    scorers = Control(log).scorers
    if scorers is None or scorers.detectors != detectors:
        write_scorers(log, Scorers(detectors=list(detectors), at=clock()))


def scored_detectors(control: Control, config: ReplaySettings) -> list[str]:
    """Identities that SCORE runs; those that are configured where it never said; none where that cannot be known."""
    if control.scorers is not None:
        return control.scorers.detectors
    return configured_detectors(config)


def configured_detectors(config: ReplaySettings) -> list[str]:
    """Identities that SCORE runs once it is restarted; none where that cannot be known here."""
    try:
        return detector_identities(config.score)
    except ScoringError:  # what they are made of may be where SCORE runs
        return []


def is_scored(control: Control, config: ReplaySettings, detector: str) -> bool:
    """Whether SCORE runs a detector; also where that is not known: a request names what is wanted."""
    detectors = scored_detectors(control, config)
    return not detectors or detector in detectors


def known_texts(log: Log, detector: str) -> KnownScores:
    """The texts that a detector has scored, or that SCORE is asked for and has not come to, whichever run asked.

    What is asked for later is not taken in; what is scored later is, by `read_on`.
    """
    unread = _unread_requests(log, (REPLAY_REQUESTS, SCORE_REQUESTS))
    looked_at: set[int] = set()

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        spans = {at: span for at, span in unread.items() if at.partition in after.keys() - looked_at}
        looked_at.update(after)
        for partition, request in _waiting(log, spans):  # before the scores: what is answered meanwhile is among them
            if request.detector in ("", detector):
                yield partition, -1, f"{request.site} {request.text_digest}:{detector}".encode()
        yield from score_keys(log)(after)

    return KnownScores(detector, keys)


def unrequested_texts(log: Log, run: Run, known: Callable[[], KnownScores] | None = None) -> UnrequestedTexts:
    """The articles of a run without a score of its detector, and without a request that SCORE has still to read.

    Those whose features left the log are no more to be asked for, and left out. `known` gives texts that have a score
    or wait for one; None: those of the log, as it is when a partition is looked at.
    """
    return UnrequestedTexts(
        lambda partition: _articles(log, run, partition), known or (lambda: known_texts(log, run.detector))
    )


def count_unrequested(log: Log, run: Run, stopped: Callable[[], bool] = lambda: False) -> int:
    """Texts of the run to request scores for; 0 once `stopped` is true. Raises LogUnavailable."""
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
    """Whether SCORE has still to read requests of replays. Raises LogUnavailable."""
    if REPLAY_REQUESTS not in log.topics():
        return False
    return next(_waiting(log, _unread_requests(log, (REPLAY_REQUESTS,))), None) is not None


def score_keys(log: Log) -> ScoreKeys:
    """The keys of the scores on the log, of any detector, as `KnownScores` reads them."""

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


def _unread_requests(log: Log, topics: Iterable[str]) -> dict[At, tuple[int, int]]:
    """The offsets that SCORE has not dealt with."""
    return {at: span for topic in topics for at, span in unread_of(log, Role.SCORE.value, topic).items()}


def _waiting(log: Log, spans: Mapping[At, tuple[int, int]]) -> Iterator[tuple[int, ScoreRequest]]:
    """(partition, request) of these offsets. One that cannot be read waits for nothing."""
    return ((message.partition, request) for message, request in records_of(ScoreRequest, log.read_all(spans)))


def _articles(log: Log, run: Run, partition: int) -> Iterator[ArticleText]:
    topic = run.names().verdicts
    for _, verdict in records_of(JudgedPage, log.read(topic, partition, _first_to_ask(log, run, partition))):
        if verdict.verdict == ARTICLE:
            yield ArticleText(verdict.site, verdict.text_digest, verdict.id)


def _first_to_ask(log: Log, run: Run, partition: int) -> int:
    """Offset of the first verdict whose features are still there: verdicts stand in the order of their features.

    Where that is not known, because JUDGE could process none of the first ones, the first verdict.
    """
    topic, names = run.features, run.names()
    first = log.beginning(names.verdicts)[partition]
    kept = log.beginning(topic)[partition]
    if kept <= (run.start[topic][partition] if topic in run.start else 0):
        return first
    judged = processed_by(log, names.judge_group, topic)[partition]
    features = list(islice(filter(is_record, log.read(topic, partition, kept, judged)), _FIRST_KEPT))
    if not features:
        return log.end(names.verdicts)[partition]
    ids = {measured.id for _, measured in records_of(Features, features)}  # one that cannot be read has no verdict
    for message, verdict in records_of(JudgedPage, log.read(names.verdicts, partition, first)):
        if verdict.id in ids:
            return message.offset
    return first
