"""Series that exist before anything has happened: one that appears with its first event hides that event from rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stream.processing.metrics import Metrics
from stream.processing.stage import Stage

Series = tuple[str, Mapping[str, str]]


def export_zeros(stage: Stage, metrics: Metrics, live: str) -> None:
    """Export every series of this stage whose labels are known in advance. `live` names the run that is live."""
    for name, labels in known_series(stage, live):
        metrics.touch(name, **labels)


def known_series(stage: Stage, live: str) -> Iterator[Series]:
    """(metric, labels) that this stage will count under. One that works for no run counts under `live` first."""
    yield "stage_duration_seconds", {"stage": stage.name}
    for topic in stage.inputs:
        yield "log_records", {"topic": topic, "direction": "in"}
        yield "log_expired_unread_records", {"topic": topic}
    yield from _of_role(stage, stage.run or live)


def _of_role(stage: Stage, run: str) -> Iterator[Series]:
    if stage.name == "crawl":
        from crawler.fetch.jobs import RequestKind
        from crawler.fetch.request_labels import expected
        from crawler.warc.exchange import RECORD_TYPES

        for kind in RequestKind:
            yield "fetch_response_bytes", {"kind": kind.value}
            yield "fetch_duration_seconds", {"kind": kind.value}
            yield "fetch_deferred", {"kind": kind.value}
            for outcome, status, reason in expected(kind):
                labels = {"kind": kind.value, "outcome": outcome, "status": status, "reason": reason}
                yield "fetch_requests", labels
        for result in ("allowed", "disallowed"):
            yield "robots_lookups", {"result": result}
        for record_type in RECORD_TYPES:
            yield "warc_records", {"type": record_type}
    elif stage.name == "measure":
        for mode in ("recall", "precision"):
            yield "extract_attempts", {"mode": mode, "outcome": "ok"}
        for result in ("measured", "skipped", "extract_error"):
            yield "stage_records", {"run": run, "ruleset": "", "stage": "measure", "result": result}
    elif stage.name == "judge":
        from filters.judge_stage import JudgeStage
        from filters.rules.judgement import ARTICLE, DROPPED

        assert isinstance(stage, JudgeStage)
        labels = {"run": run, "ruleset": stage.ruleset.name}
        for verdict in (ARTICLE, DROPPED):
            yield "page_verdicts", {**labels, "verdict": verdict}
            yield "stage_records", {**labels, "stage": "judge", "result": verdict}
        for rule in stage.ruleset.rules:
            yield "rule_drops", {**labels, "rule": rule.name}
    elif stage.name == "score":
        from scoring.score_stage import MEMORY_KINDS

        for tokens in ("text", "padding"):
            yield "score_tokens", {"kind": tokens}
        for fault in ("oom", "lost", "poison"):
            yield "score_device_errors", {"kind": fault}
        for memory in MEMORY_KINDS:
            yield "score_device_memory_bytes", {"kind": memory}
        for result in ("hit", "miss"):
            yield "score_cache_lookups", {"result": result}
        for result in ("scored", "abstained"):
            yield "stage_records", {"run": run, "ruleset": "", "stage": "score", "result": result}
