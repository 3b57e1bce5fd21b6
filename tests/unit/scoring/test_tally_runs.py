"""TALLY counts what it deals with under the run that it belongs to."""

from __future__ import annotations

import pytest

from stream.metrics import Meter, Metrics
from stream.stage import Context
from stream.state import KeyedState
from tests.tally_desk import Desk, hit


@pytest.mark.parametrize(("headers", "run"), [({"run": "r7"}, "r7"), ({}, "live")])
def test_records_of_a_replay_count_under_its_run(headers: dict[str, str], run: str) -> None:
    """The header says whose a record is; without one it is of the stage's own run."""
    desk, meter, metrics = Desk(), Meter(), Metrics()
    desk.stage.process(hit(1), None, Context(3, KeyedState(desk.store), meter, 1, headers))
    meter.apply(metrics)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    counted = [s for s in samples if s.name == "farmwatch_stage_records_total" and s.value]
    assert [sample.labels["run"] for sample in counted] == [run]
