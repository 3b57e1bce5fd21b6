"""Every series that is known in advance is one that a stage can count."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import generate_latest

from farmwatch.daemon.initial_series import export_zeros, known_series
from filters.judge_stage import JudgeStage
from filters.rules.ruleset import load_ruleset
from scoring.interface import TextScore
from scoring.score_stage import ScoreStage
from scoring.tally_stage import TallyStage
from stream.processing.metrics import SPECS, Metrics
from stream.processing.stage import Stage


class _Detector:
    identity = "x/1"
    warning = ""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        return [TextScore(abstain="too_short") for _ in texts]


class _Named(Stage):
    """A stage by name only: those of CRAWL and MEASURE start threads and processes."""

    inputs = {}  # noqa: RUF012 - as the stages have it

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]  # a class variable of the real ones


def _stages() -> list[Stage]:
    judge = JudgeStage(load_ruleset("default"))
    return [_Named("crawl"), _Named("measure"), judge, ScoreStage(lambda: [_Detector()]), TallyStage("x/1")]


def test_labels_are_those_of_the_metric() -> None:
    """Each series has exactly the labels that its metric is documented with."""
    labels = {spec.name: set(spec.labels) for spec in SPECS}
    for stage in _stages():
        for name, given in known_series(stage, "live"):
            assert set(given) == labels[name], name


def test_zeros_are_of_the_run_that_is_counted_for() -> None:
    """A stage's own run, and the live one for a stage that works for none: after a cutover no series says "live"."""
    judge = JudgeStage(load_ruleset("default"), run="mine")
    for stage in (_Named("measure"), judge, ScoreStage(lambda: [_Detector()]), TallyStage("x/1", run="mine")):
        assert {labels.get("run", "mine") for _, labels in known_series(stage, "mine")} == {"mine"}


def test_zeros_are_exposed_before_anything_happened() -> None:
    """The rules of the ruleset, the verdicts and the outcomes stand on the page as 0."""
    metrics = Metrics()
    for stage in _stages():
        export_zeros(stage, metrics, "live")
    page = generate_latest(metrics.registry).decode()
    assert 'farmwatch_rule_drops_total{rule="min_tokens",ruleset="default",run="first"} 0.0' in page
    assert 'farmwatch_fetch_requests_total{kind="robots",outcome="failed",reason="status",status="429"} 0.0' in page
    assert 'farmwatch_log_records_total{direction="in",topic="features"} 0.0' in page
