"""SCORE: articles' texts → scores. Stateless: a text's score depends on the text and the detector's identity only.

The topic of the scores is compacted: only the last record of a key stays. A score's `id` names the text and the
detector, and is the same for all sites with the text, but each score goes to one site's tally. So the key includes the
site: otherwise another site's score of the same text could replace it before TALLY has read it.

Two batches are in flight: while the device works on one, the texts of the next are read and tokenised. A text is read
once, in whichever batches it appears (`score_memory`); only canary pages are always read again, because they
measure the live path. Requests of replays are scored when no live one waits. They name the detector that is wanted:
where SCORE does not run it, the replay could not use the scores of others, so the text is not read and the request
counts as `unanswered`. A replay that resumes finds its text without a score, and asks again.

The detectors are loaded in a separate thread, because large models take minutes, and this process must hold its
partitions and answer meanwhile. /readyz turns to 200 when they have scored something. If they cannot be loaded, the
process ends and says why.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import msgspec

from scoring.detectors.detector_set import DetectorSet
from scoring.errors import CannotScore
from scoring.interface import Detector, DetectorCounts, TextScore, refuse_uncalibrated
from scoring.rates.canary import is_canary
from scoring.stages.metrics import (
    PAGE_SCORE,
    SCORE_BATCH_DURATION_SECONDS,
    SCORE_BATCH_TOKENS,
    SCORE_CACHE_LOOKUPS,
    SCORE_DEVICE_ERRORS,
    SCORE_DEVICE_MEMORY_BYTES,
    SCORE_TOKENS,
)
from scoring.stages.score_memory import ScoreMemory, Scores
from stream.processing.metrics import STAGE_RECORDS, Metrics
from stream.processing.stage import Context, Series, Stage
from stream.schema import topics
from stream.schema.records import Record, Score, ScoreRequest

BATCH_TEXTS = 256
REMEMBERED_TEXTS = 20_000


class RequestScores(NamedTuple):
    """The scores of a request's text. Only the first request of a batch carries the batch's time."""

    scores: Scores  # empty: the requested detector is not running
    read: bool  # read for this request; False = cached, or earlier in the batch
    batch_s: float | None


def score_key(score: Score) -> str:
    """Key of a score on its topic: the site, a space (which no host name holds), the score's id."""
    return f"{score.site} {score.id}"


class ScoreStage(Stage):
    """Emits a Score per request and detector; reads each distinct text once."""

    name: ClassVar[str] = "score"
    inputs: Mapping[str, type[Record]] = {topics.SCORE_REQUESTS: ScoreRequest, topics.REPLAY_REQUESTS: ScoreRequest}
    background = (topics.REPLAY_REQUESTS,)
    forward: str | None = topics.SCORES
    heartbeat_input: str | None = topics.SCORE_REQUESTS
    ahead = 2

    def __init__(
        self,
        load: Callable[[], Sequence[Detector]],
        *,
        batch_texts: int = BATCH_TEXTS,
        remembered_texts: int = REMEMBERED_TEXTS,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start a thread that loads the detectors with `load`; `clock` returns seconds.

        `metrics` get the counts of the devices, also of batches that are not committed.
        """
        self.max_records = batch_texts
        self._memory = ScoreMemory(remembered_texts)
        self._metrics = metrics
        self._clock = clock
        self._published = DetectorCounts()
        self._ended_s = 0.0  # end of the last batch
        self._ending = threading.Lock()
        self._detectors: Future[DetectorSet] = Future()
        threading.Thread(target=self._load, args=(load,), name="score-load", daemon=True).start()

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        """Score the batch. Raises CannotScore, and the detectors' errors for the whole call."""
        detectors = self._detectors.result()
        requests = [record for record in records if isinstance(record, ScoreRequest)]
        given = ("", *detectors.identities)
        wanted = [request for request in requests if request.detector in given]
        started = self._clock()
        canaries = [request for request in wanted if is_canary(request.site)]
        read = detectors.score([request.text for request in canaries]) if canaries else []
        fresh = {id(request): scores for request, scores in zip(canaries, read, strict=True)}
        texts = {request.text_digest: request.text for request in wanted if id(request) not in fresh}
        cached = self._memory.look(texts, detectors.score)
        unread = set(cached.read)
        batch_s = self._busy_s(started) if fresh or unread else None
        prepared = []
        for request in requests:
            if request.detector not in given:
                prepared.append(RequestScores((), read=False, batch_s=None))
                continue
            digest = request.text_digest
            scores = fresh.get(id(request))
            prepared.append(
                RequestScores(scores or cached.scores[digest], scores is not None or digest in unread, batch_s)
            )
            unread.discard(digest)
            batch_s = None
        return prepared

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:
        """Emit a score per detector under (site, text digest, detector identity), or none, see above."""
        detectors = self._detectors.result()
        if not prepared.scores:
            ctx.meter.count(STAGE_RECORDS, run=record.run, ruleset="", stage=self.name, result="unanswered")
            return
        for said in prepared.scores:
            if isinstance(said, Exception):
                raise said
        for identity, number_of, text in zip(detectors.identities, detectors.numbers, prepared.scores, strict=True):
            score = score_of(record, identity, text, ctx.now_ms)
            ctx.emit(topics.SCORES, score, key=score_key(score))
            number = number_of(text)
            if number is not None and not is_canary(record.site):  # selected pages are not a sample of the web
                ctx.meter.observe(PAGE_SCORE, number, run=record.run, detector=identity)
        result = "abstained" if all(text.abstain for text in prepared.scores) else "scored"
        ctx.meter.count(STAGE_RECORDS, run=record.run, ruleset="", stage=self.name, result=result)
        ctx.meter.count(SCORE_CACHE_LOOKUPS, result="miss" if prepared.read else "hit")
        if prepared.batch_s is not None:
            ctx.meter.observe(SCORE_BATCH_DURATION_SECONDS, prepared.batch_s)

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Publish the counts of the devices. Raises CannotScore if the detectors could not be loaded."""
        del contexts  # no state by partition
        if self._detectors.done():
            self._publish(self._detectors.result().work())

    def lost(self, partitions: Sequence[int]) -> None:
        """Publish the counts at once after a rollback, because a device may have failed."""
        del partitions
        if self._works():
            self._publish(self._detectors.result().work())

    def ready(self) -> bool:
        """Whether every detector has scored something; False while models are reloaded after a loss."""
        return self._works() and self._detectors.result().loaded()

    def starting(self) -> bool:
        """True while the detectors are being loaded, for the first time or again."""
        return not self._detectors.done() or (self._works() and not self._detectors.result().loaded())

    def advanced(self) -> int:
        """Batches of the devices so far."""
        return self._detectors.result().advanced() if self._works() else 0

    def metric_series(self, run: str) -> Iterator[Series]:
        yield from super().metric_series(run)
        for metric, kind in _COUNTED.values():
            yield metric, {"kind": kind}
        for memory in MEMORY_KINDS:
            yield SCORE_DEVICE_MEMORY_BYTES, {"kind": memory}
        for result in ("hit", "miss"):
            yield SCORE_CACHE_LOOKUPS, {"result": result}
        for result in ("scored", "abstained"):
            yield STAGE_RECORDS, {"run": run, "ruleset": "", "stage": self.name, "result": result}

    def close(self) -> None:
        """Stop the detectors' threads; a call that waits for detectors to be loaded fails."""
        with suppress(Exception):  # they may be loaded already, or be an error
            self._detectors.set_exception(CannotScore("the stage was closed while its detectors were being loaded"))
        if self._works():
            self._detectors.result().close()

    def _works(self) -> bool:
        return self._detectors.done() and self._detectors.exception() is None

    def _busy_s(self, started: float) -> float:
        """Seconds since `started`, or since the previous batch ended, which excludes the wait for that batch."""
        with self._ending:
            now = self._clock()
            started, self._ended_s = max(started, self._ended_s), now
        return now - started

    def _load(self, load: Callable[[], Sequence[Detector]]) -> None:
        try:
            detectors = DetectorSet(load())
            refuse_uncalibrated(detectors.identities)
            detectors.warm_up()
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop's thread must hear of it
            failure = CannotScore(str(error) or type(error).__name__)
            failure.__cause__ = error
            with suppress(Exception):  # closed meanwhile
                self._detectors.set_exception(failure)
            return
        with suppress(Exception):
            self._detectors.set_result(detectors)

    def _publish(self, work: DetectorCounts) -> None:
        if self._metrics is None:
            return
        before, self._published = self._published, work
        for field, (metric, kind) in _COUNTED.items():
            self._metrics.count(metric, getattr(work, field) - getattr(before, field), kind=kind)
        self._metrics.set(SCORE_BATCH_TOKENS, work.batch_tokens)
        for kind in MEMORY_KINDS:
            self._metrics.set(SCORE_DEVICE_MEMORY_BYTES, getattr(work, f"{kind}_bytes"), kind=kind)


MEMORY_KINDS = ("used", "peak", "total")
_COUNTED = {  # field of DetectorCounts -> metric and kind
    "tokens": (SCORE_TOKENS, "text"),
    "padding": (SCORE_TOKENS, "padding"),
    "out_of_memory": (SCORE_DEVICE_ERRORS, "oom"),
    "lost": (SCORE_DEVICE_ERRORS, "lost"),
    "poison": (SCORE_DEVICE_ERRORS, "poison"),
}


def score_of(request: ScoreRequest, identity: str, text: TextScore, now_ms: int = 0) -> Score:
    """The score record of a requested text."""
    return Score(
        id=f"{request.text_digest}:{identity}",
        site=request.site,
        page_id=request.page_id,
        fetch_id=request.id,
        text_digest=request.text_digest,
        detector=identity,
        **msgspec.structs.asdict(text),
        fetched_at=request.fetched_at,
        scored_at=now_ms,
    )
