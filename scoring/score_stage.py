"""SCORE: articles' texts → scores. Stateless: a text's score depends on the text and the detector's identity only.

The topic of the scores is compacted: of the records under one key only the last stays. A score's `id` names the text
and the detector, and is the same wherever the text stands; but a score is on its way to one site's tally. So the key
names the site too: were it the id alone, a site's score could be compacted away by another site's with the same text
before TALLY has read it. Under one key then stand only records that say the same to the same tally.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from scoring.detector import Detector, TextScore
from stream import topics
from stream.records import Record, Score, ScoreRequest
from stream.stage import Context, Stage


class Scored(NamedTuple):
    """A request's score. The batch's time stands with its first request, so that it is observed once."""

    text: TextScore
    first_of_text: bool
    batch_s: float | None


def score_key(score: Score) -> str:
    """Key of a score on its topic: the site, a space (which no host name holds), the score's id."""
    return f"{score.site} {score.id}"


class ScoreStage(Stage):
    """Runs the detector over a batch, each different text once, and emits one Score per request."""

    name: ClassVar[str] = "score"
    inputs: ClassVar[Mapping[str, type[Record]]] = {topics.SCORE_REQUESTS: ScoreRequest}
    forward: ClassVar[str | None] = topics.SCORES

    def __init__(self, detector: Detector, clock: Callable[[], float] = time.perf_counter) -> None:
        """Score with `detector`; `clock` gives seconds."""
        self._detector = detector
        self._identity = detector.identity
        self._clock = clock

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        """Score the batch."""
        requests = [record for record in records if isinstance(record, ScoreRequest)]
        texts = {request.text_digest: request.text for request in requests}
        started = self._clock()
        scores = dict(zip(texts, self._detector.score(list(texts.values())), strict=True))
        batch_s: float | None = self._clock() - started
        prepared, seen = [], set()
        for request in requests:
            digest = request.text_digest
            prepared.append(Scored(scores[digest], digest not in seen, batch_s))
            seen.add(digest)
            batch_s = None
        return prepared

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:
        """Emit the score under (site, text digest, detector identity)."""
        text, identity = prepared.text, self._identity
        score = Score(
            id=f"{record.text_digest}:{identity}",
            site=record.site,
            page_id=record.page_id,
            fetch_id=record.id,
            text_digest=record.text_digest,
            detector=identity,
            score=text.score,
            p_llm=text.p_llm,
            flag=text.flag,
            abstain=text.abstain,
            tokens=text.tokens,
            fetched_at=record.fetched_at,
            scored_at=ctx.now_ms,
        )
        ctx.emit(topics.SCORES, score, key=score_key(score))
        result = "abstained" if text.abstain else "scored"
        ctx.meter.count("stage_records", run=record.run, ruleset="", stage=self.name, result=result)
        if prepared.first_of_text:
            ctx.meter.count("score_tokens", text.tokens, kind="text")
        if prepared.batch_s is not None:
            ctx.meter.observe("score_batch_duration_seconds", prepared.batch_s)
        if text.p_llm is not None:
            ctx.meter.observe("page_score", text.p_llm, run=record.run, detector=identity)
