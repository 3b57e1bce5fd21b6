"""The series that a stage exports in advance are those that it counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from scoring.detectors.testing import FakeDetector
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.processing.metrics import SPECS
from stream.processing.stage import Series, Stage


@pytest.fixture(scope="module")
def series() -> Iterator[dict[str, list[Series]]]:
    """The series of each stage while the run `mine` is live."""
    with ExitStack() as held:
        stages: list[Stage] = [
            CrawlStage(CrawlSettings(contact="https://operator.example/")),
            MeasureStage(MeasureSettings(), run="mine"),
            JudgeStage(load_ruleset("default"), run="mine"),
            ScoreStage(lambda: [FakeDetector()]),
            TallyStage(FakeDetector().identity, run="mine"),
        ]
        for stage in stages:
            held.callback(stage.close)
        yield {stage.name: list(stage.metric_series("mine")) for stage in stages}


def test_labels_are_those_of_the_metric(series: dict[str, list[Series]]) -> None:
    """Each series has exactly the documented labels of its metric, and the name of the run."""
    labels = {spec.name: set(spec.labels) for spec in SPECS}
    for name, given in (each for of_stage in series.values() for each in of_stage):
        assert set(given) == labels[name], name
        assert given.get("run", "mine") == "mine"


def test_possible_events_have_series_in_advance(series: dict[str, list[Series]]) -> None:
    """Rules of the ruleset and outcomes of a request are among the series that exist in advance."""
    assert ("rule_drops", {"run": "mine", "ruleset": "default", "rule": "min_tokens"}) in series["judge"]
    refused = {"kind": "robots", "outcome": "failed", "status": "429", "reason": "status"}
    assert ("fetch_requests", refused) in series["crawl"]
    assert ("log_records", {"topic": "features", "direction": "in"}) in series["judge"]
    assert ("sites_reopened", {"run": "mine"}) in series["tally"]
    assert len(series["tally"]) == 2 + 2 * 3
