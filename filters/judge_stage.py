"""JUDGE: features to verdicts, and articles on to the detector."""

from __future__ import annotations

from typing import Any, ClassVar

import xxhash

from filters.judging import ARTICLE, judge_and_text
from filters.known_scores import KnownScores
from filters.ruleset import Ruleset
from stream.records import Features, Record, ScoreRequest, Verdict
from stream.runs import LIVE, RunNames, names_of
from stream.stage import Context, Stage


def asked_store(run: str) -> str:
    """Name of the keyed state in which a replay keeps what it has asked the detector for."""
    return f"asked.{run}"


class JudgeStage(Stage):
    """One verdict for each features record, and score requests for articles, with the text to score.

    The run that is live asks for every article. A replay asks only for texts that have no score yet, each once a site,
    and keeps in its state (a digest of site and text as key) what it has asked for, so that a crash asks nothing twice.
    It counts no heartbeat and passes none on.
    """

    name: ClassVar[str] = "judge"

    def __init__(
        self,
        ruleset: Ruleset,
        *,
        run: str = LIVE,
        names: RunNames | None = None,
        known: KnownScores | None = None,
    ) -> None:
        """Judge by `ruleset` as `run`, between the topics of `names`, by default the run's own.

        `known` makes it a replay, and says which texts have a score.
        """
        self.ruleset = ruleset
        self.run = run
        self._names = names or names_of(run, is_live=known is None)
        self._known = known
        self._headers = {"run": run, "ruleset": ruleset.digest}
        self.inputs = {self._names.features: Features}
        self.forward = self._names.requests
        if known is not None:
            self.forward, self.heartbeat_input, self.store = None, "", asked_store(run)

    def process(self, record: Features, prepared: Any, ctx: Context) -> None:  # noqa: ARG002  # nothing to prepare
        """Judge one features record."""
        verdict, text = judge_and_text(record, self.ruleset, now_ms=ctx.now_ms, run=self.run)
        ctx.emit(self._names.verdicts, verdict, headers=self._headers)
        if verdict.verdict == ARTICLE and self._is_wanted(verdict, ctx):
            ctx.emit(self._names.requests, _request(record, verdict, text), headers=self._headers)
        run, name = self.run, self.ruleset.name
        ctx.meter.count("stage_records", run=run, ruleset=name, stage=self.name, result=verdict.verdict)
        ctx.meter.count("page_verdicts", run=run, ruleset=name, verdict=verdict.verdict)
        for rule in verdict.failed:
            ctx.meter.count("rule_drops", run=run, ruleset=name, rule=rule)

    def _is_wanted(self, article: Verdict, ctx: Context) -> bool:
        """Whether the article's text is to be scored; that a replay asks for it is kept."""
        if self._known is None:
            return True
        if self._known.has(ctx.partition, article.site, article.text_digest):
            return False
        asked = xxhash.xxh3_128_digest(f"{article.site} {article.text_digest}".encode())
        if ctx.state.get(asked) is not None:
            return False
        ctx.state.put(asked, b"")
        return True


def _request(features: Features, verdict: Verdict, text: str) -> Record:
    return ScoreRequest(
        id=features.id,
        site=features.site,
        page_id=features.page_id,
        url=features.url,
        text_digest=verdict.text_digest,
        text=text,
        fetched_at=features.fetched_at,
        run=verdict.run,
    )
