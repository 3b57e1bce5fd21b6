"""JUDGE: features to verdicts, and articles on to the detector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from filters.judging import ARTICLE, judge_and_text
from filters.ruleset import Ruleset, load_ruleset
from filters.settings import JudgeSettings
from stream import topics
from stream.records import Features, Record, ScoreRequest
from stream.stage import Context, Stage


class JudgeStage(Stage):
    """One verdict for each features record, and for each article one score request with the text to score."""

    name: ClassVar[str] = "judge"
    inputs: ClassVar[Mapping[str, type[Record]]] = {topics.FEATURES: Features}
    forward: ClassVar[str | None] = topics.SCORE_REQUESTS

    def __init__(self, settings: JudgeSettings, *, ruleset: Ruleset | None = None, run: str = "live") -> None:
        """Load the ruleset of the settings, unless one is given. Raises BadRuleset."""
        self.ruleset = ruleset or load_ruleset(settings.ruleset)
        self.run = run

    def process(self, record: Features, prepared: Any, ctx: Context) -> None:  # noqa: ARG002  # nothing to prepare
        """Judge one features record."""
        verdict, text = judge_and_text(record, self.ruleset, now_ms=ctx.now_ms, run=self.run)
        headers = {"run": self.run, "ruleset": self.ruleset.digest}
        ctx.emit(topics.VERDICTS, verdict, headers=headers)
        if verdict.verdict == ARTICLE:
            ctx.emit(
                topics.SCORE_REQUESTS,
                ScoreRequest(
                    id=record.id,
                    site=record.site,
                    page_id=record.page_id,
                    url=record.url,
                    text_digest=verdict.text_digest,
                    text=text,
                    fetched_at=record.fetched_at,
                    run=self.run,
                ),
                headers=headers,
            )
        run, name = self.run, self.ruleset.name
        ctx.meter.count("stage_records", run=run, ruleset=name, stage=self.name, result=verdict.verdict)
        ctx.meter.count("page_verdicts", run=run, ruleset=name, verdict=verdict.verdict)
        for rule in verdict.failed:
            ctx.meter.count("rule_drops", run=run, ruleset=name, rule=rule)
