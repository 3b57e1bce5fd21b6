"""ASK: a second pass over a run's features, for the texts of articles that have no score and no request.

JUDGE asks while SCORE runs the run's detector. Where it did not, or SCORE left a request unanswered, or retention took
one, the article stays unscored until the run is resumed and this stage asks. It keeps no state: the log says what is
unasked when a partition is won, so that a crash asks nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from filters.judge_stage import request_of
from filters.known_scores import UnrequestedTexts
from filters.rules.judgement import ARTICLE, judge_and_text
from filters.rules.ruleset import Ruleset
from stream.processing.stage import Context, Stage
from stream.schema.records import Features
from stream.schema.runs import RunNames


class ScoreRequestStage(Stage):
    """A score request for each text of a run that is unasked; no verdict, and no heartbeat."""

    name: ClassVar[str] = "ask"
    heartbeat_input = ""

    def __init__(
        self, ruleset: Ruleset, unasked: UnrequestedTexts, *, run: str, names: RunNames, detector: str
    ) -> None:
        """Ask for what is `unasked` of the `run` by `ruleset` between the topics of `names`, wanting `detector`."""
        self._ruleset = ruleset
        self._unasked = unasked
        self._run = run
        self._names = names
        self._detector = detector
        self._headers = {"run": run, "ruleset": ruleset.digest}
        self.inputs = {names.features: Features}

    def process(self, record: Features, prepared: Any, ctx: Context) -> None:  # noqa: ARG002  # nothing to prepare
        result = "passed_over"
        if self._unasked.stands_at(ctx.partition, record.id):
            verdict, text = judge_and_text(record, self._ruleset, now_ms=ctx.now_ms, run=self._run)
            is_article = verdict.verdict == ARTICLE
            if is_article and self._unasked.take(ctx.partition, record.site, verdict.text_digest):
                result = "asked"
                request = request_of(record, verdict, text, self._detector)
                ctx.emit(self._names.requests, request, headers=self._headers)
        ctx.meter.count("stage_records", run=self._run, ruleset=self._ruleset.name, stage=self.name, result=result)

    def lost(self, partitions: Sequence[int]) -> None:
        """Forget what was taken: it may not have been asked for, and others may have asked."""
        self._unasked.forget(partitions)

    def on_dead_letter(self, partition: int) -> None:
        """What the other records of the batch took stays taken."""
