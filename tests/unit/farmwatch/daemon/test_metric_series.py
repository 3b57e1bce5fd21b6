"""The series that a stage exports in advance are those that it counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from crawler.metrics import FETCH_REQUESTS
from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from farmwatch.metrics import ALL
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from filters.stages.metrics import RULE_DROPS
from scoring.detectors.testing import FakeDetector
from scoring.stages.metrics import SITES_REOPENED
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.processing.metrics import LOG_RECORDS
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
    for metric, given in (each for of_stage in series.values() for each in of_stage):
        assert metric in ALL and set(given) == set(metric.labels), metric.name
        assert given.get("run", "mine") == "mine"


def test_possible_events_have_series_in_advance(series: dict[str, list[Series]]) -> None:
    """Rules of the ruleset and outcomes of a request are among the series that exist in advance."""
    assert (RULE_DROPS, {"run": "mine", "ruleset": "default", "rule": "min_tokens"}) in series["judge"]
    refused = {"kind": "robots", "outcome": "failed", "status": "429", "reason": "status"}
    assert (FETCH_REQUESTS, refused) in series["crawl"]
    assert (LOG_RECORDS, {"topic": "features", "direction": "in"}) in series["judge"]
    assert (SITES_REOPENED, {"run": "mine"}) in series["tally"]
    assert len(series["tally"]) == 2 + 2 * 3
