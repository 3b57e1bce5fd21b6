"""TALLY counts what it deals with under the run that it belongs to."""

from __future__ import annotations

import pytest

from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from tests.support.tally_desk import Desk, score


@pytest.mark.parametrize("headers", [{"run": "r7"}, {}])
def test_records_count_under_the_stage_s_own_run(headers: dict[str, str]) -> None:
    """Whatever run asked for a record: counters of a run are those of its own work, in its own process."""
    desk, meter, metrics = Desk(), Meter(), Metrics()
    desk.stage.process(score("t1", True), None, Context(3, KeyedState(desk.store), meter, 1, headers))
    meter.apply(metrics)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    counted = [s for s in samples if s.name == "farmwatch_stage_records_total" and s.value]
    assert [sample.labels["run"] for sample in counted] == ["first"]
