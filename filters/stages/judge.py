"""JUDGE: turns features into verdicts, and requests scores for articles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import xxhash

from filters.known_scores import KnownScores, UnrequestedTexts
from filters.rules.judgement import judge_and_text, prepare
from filters.rules.kinds import Prepared
from filters.rules.ruleset import Ruleset
from filters.stages.metrics import PAGE_VERDICTS, RULE_DROPS
from stream.processing.metrics import STAGE_RECORDS, Count
from stream.processing.stage import BY_REPLAY, Context, Series, Stage
from stream.schema.packed_features import PackedFeatures
from stream.schema.records import Features, Record, ScoreRequest, Verdict
from stream.schema.runs import LIVE, RunNames, names_of
from stream.schema.vocabulary import KEPT, PageClass

READ_ON_MS = 10_000  # interval between reads of new scores


def requested_store(run: str) -> str:
    """Name of a replay's store of requested texts."""
    return f"asked.{run}"


class JudgeStage(Stage):
    """Emits a verdict for each features record, and score requests for articles whose text is not in `known`.

    A replay requests scores at low priority, and only while SCORE runs its detector. Its state holds the digests of
    requested texts, so a crash repeats no request. A replay neither counts nor forwards heartbeats.
    """

    name: ClassVar[str] = "judge"

    def __init__(
        self,
        ruleset: Ruleset,
        *,
        run: str = LIVE,
        names: RunNames | None = None,
        known: KnownScores | None = None,
        replays: bool = False,
        detector: str = "",
        may_request: Callable[[], bool] = lambda: True,
        is_behind: Callable[[], bool] = lambda: True,
    ) -> None:
        """Requests name `detector` ("" = any), of a replay while `may_request`; live drops `known` once not behind."""
        self.ruleset = ruleset
        self.run = run
        self._names = names or names_of(run, is_live=not replays)
        self._known = known
        self._replays = replays
        self._detector = detector
        self._may_request = may_request
        self._is_behind = is_behind
        self._read_on_ms = 0
        self._headers = {"run": run, "ruleset": ruleset.digest}
        labels = {"run": run, "ruleset": ruleset.name}
        self._of_verdict: dict[str, list[Count]] = {
            verdict: [
                (PAGE_VERDICTS, 1, {**labels, "verdict": verdict}),
                (STAGE_RECORDS, 1, {**labels, "stage": self.name, "result": verdict}),
            ]
            for verdict in PageClass
        }
        rules = (rule.name for table in ruleset.tables.values() for rule in table.rules)
        self._of_drop: dict[str, Count] = {name: (RULE_DROPS, 1, {**labels, "rule": name}) for name in rules}
        self.inputs = {self._names.features: PackedFeatures}
        self.forward = self._names.requests
        if replays:
            self._headers[BY_REPLAY] = "1"
            self.forward, self.heartbeat_input, self.store = None, "", requested_store(run)

    def metric_series(self, run: str) -> Iterator[Series]:
        yield from super().metric_series(run)
        for counts in (*self._of_verdict.values(), self._of_drop.values()):
            for metric, _, labels in counts:
                yield metric, {**labels, "run": run}

    def prepare(self, records: Sequence[Record]) -> Sequence[Any]:
        return prepare([record for record in records if isinstance(record, Features)], self.ruleset)

    def process(self, record: Features, prepared: Prepared, ctx: Context) -> None:
        verdict, text = judge_and_text(record, self.ruleset, now_ms=ctx.now_ms, run=self.run, prepared=prepared)
        ctx.emit(self._names.verdicts, verdict, headers=self._headers)
        if verdict.verdict in KEPT and self._is_wanted(verdict, ctx):
            request = request_of(record, verdict, text, self._detector)
            ctx.emit(self._names.requests, request, headers=self._headers)
        ctx.meter.extend(self._of_verdict[verdict.verdict])
        if verdict.verdict == PageClass.DROPPED:
            ctx.meter.extend([self._of_drop[rule] for rule in verdict.failed])

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """In a replay, read new scores at intervals. In a live run that has caught up, drop `known`."""
        if self._known is None or not contexts:
            return
        now_ms = next(iter(contexts.values())).now_ms
        if now_ms - self._read_on_ms < READ_ON_MS:
            return
        self._read_on_ms = now_ms
        if self._replays:
            self._known.read_on()
        elif not self._is_behind():
            self._known = None

    def _is_wanted(self, article: Verdict, ctx: Context) -> bool:
        if self._known is not None and self._known.has(ctx.partition, article.site, article.text_digest):
            return False
        if not self._replays:
            return True
        asked = xxhash.xxh3_128_digest(f"{article.site} {article.text_digest}".encode())
        if ctx.state.get(asked) is not None or not self._may_request():
            return False
        ctx.state.put(asked, b"")
        return True


def request_of(features: Features, verdict: Verdict, text: str, detector: str) -> ScoreRequest:
    """The request for an article's text; `detector` "" = any."""
    return ScoreRequest(
        id=features.id,
        site=features.site,
        page_id=features.page_id,
        url=features.url,
        text_digest=verdict.text_digest,
        text=text,
        fetched_at=features.fetched_at,
        run=verdict.run,
        detector=detector,
    )


class ScoreRequestStage(Stage):
    """A second pass over a run's features: requests scores for article texts without a score or a request.

    JUDGE sends requests only while SCORE runs the run's detector, and a request may expire without an answer. The pass
    keeps no state: it reads from the log which texts have no request.
    """

    name: ClassVar[str] = "ask"
    heartbeat_input = ""

    def __init__(
        self, ruleset: Ruleset, unasked: UnrequestedTexts, *, run: str, names: RunNames, detector: str
    ) -> None:
        self._ruleset = ruleset
        self._unasked = unasked
        self._run = run
        self._names = names
        self._detector = detector
        self._headers = {"run": run, "ruleset": ruleset.digest}
        self.inputs = {names.features: PackedFeatures}

    def process(self, record: Features, prepared: Any, ctx: Context) -> None:  # noqa: ARG002  # nothing to prepare
        result = "passed_over"
        if self._unasked.has_fetch(ctx.partition, record.id):
            verdict, text = judge_and_text(record, self._ruleset, now_ms=ctx.now_ms, run=self._run)
            if verdict.verdict in KEPT and self._unasked.take(ctx.partition, record.site, verdict.text_digest):
                result = "asked"
                request = request_of(record, verdict, text, self._detector)
                ctx.emit(self._names.requests, request, headers=self._headers)
        ctx.meter.count(STAGE_RECORDS, run=self._run, ruleset=self._ruleset.name, stage=self.name, result=result)

    def lost(self, partitions: Sequence[int]) -> None:
        """Forget the taken texts: their requests may be rolled back, and another member may have sent some."""
        self._unasked.forget(partitions)

    def on_dead_letter(self, partition: int) -> None:
        """Keep the texts that the other records of the batch took."""
