"""A cutover to a run that measured pages again, and back: MEASURE switches too, at the run's own offsets."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from farmwatch.audit.audit import audit
from replay.engine.runner import Ending
from replay.live.cutover import CutoverRequest, cut_over
from stream.processing.metrics import Metrics
from stream.schema.records import Features, decode
from stream.schema.roles import Role
from stream.schema.runs import Run, RunNames
from tests.support.front_door import PARTITIONS
from tests.support.runs.cutover_world import CutoverWorld
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROLES = (Role.MEASURE, Role.JUDGE, Role.TALLY)
_BATCH = 12  # pages


def _measured(world: CutoverWorld, topic: str) -> list[Features]:
    messages = (message for partition in range(PARTITIONS) for message in world.log.read(topic, partition))
    return [decode(Features, message.value) for message in messages if message.value]


def _deals_with_all(world: CutoverWorld, names: RunNames) -> None:
    """Wait until MEASURE, JUDGE and TALLY of a run are at their ends."""
    wait_until(lambda: world.judged(names).total() >= len(world.put), f"{names.verdicts} has all")
    wait_until(lambda: world.at_end(names.tally_group, ["hits", names.verdicts, "scores"]), f"{names.sites} has all")


def _configure_other_epoch(world: CutoverWorld) -> None:
    """Change the settings, as after a restart."""
    measure = msgspec.structs.replace(world.config.measure, max_elements=world.config.measure.max_elements - 1)
    world.config = msgspec.structs.replace(world.config, measure=measure)


def _replayed(world: CutoverWorld) -> Run:
    """A run that measures all pages again under the present configuration."""
    run, ruleset = world.plan_run("anew")
    assert run.source == "pages"
    assert world.resume(run, ruleset) is Ending.DONE
    return run


def test_each_page_is_measured_and_judged_once_under_each_run(world: CutoverWorld) -> None:
    """Pages arrive before, between and after the cutovers: each has its features and its verdict once in either run.

    Features of the run have its epoch; those of the first run have the epoch configured at their time. Both audits are
    clean.
    """
    first = world.begin_live()
    world.pages(_BATCH)
    with world.live(*ROLES):
        _deals_with_all(world, first.names())
    _configure_other_epoch(world)
    anew = _replayed(world)
    assert anew.epoch != first.epoch
    assert world.judged(anew.names()) == dict.fromkeys(world.put, 1)

    with world.live(*ROLES) as metrics:
        wait_until(lambda: _live_runs(metrics) == ["first"] * len(ROLES), "all carry on the first run")
        for to, run in (("anew", anew), ("", first), ("anew", anew), ("", first)):
            world.pages(_BATCH)
            cut_over(world.log, CutoverRequest(to, "me@here", max_lag=100_000))
            world.pages(_BATCH)
            _deals_with_all(world, run.names())
            assert _live_runs(metrics) == [run.shown] * len(ROLES)

    moved = [metrics[role].registry.get_sample_value("farmwatch_cutovers_total") for role in ROLES]
    assert moved == [4.0] * len(ROLES)
    late = len(world.put) - _BATCH
    cut_over(
        world.log, CutoverRequest("anew", "me@here")
    )  # which was live before the last pages came: they are caught up with
    with world.live(*ROLES):
        _deals_with_all(world, anew.names())
    for run, epochs in ((first, {first.epoch: _BATCH, anew.epoch: late}), (anew, {anew.epoch: len(world.put)})):
        measured = _measured(world, run.features)
        assert Counter(features.id for features in measured) == Counter(world.put)
        assert Counter(features.epoch for features in measured) == epochs
        assert world.judged(run.names()) == Counter(world.put)
        assert audit(world.log, run.name).broken == []


def test_series_and_headers_name_the_run_that_is_live(world: CutoverWorld) -> None:
    """Roles started after a cutover count under the name of the new run only; pages and features name no run."""
    world.begin_live()
    world.pages(_BATCH)
    _configure_other_epoch(world)
    anew = _replayed(world)
    cut_over(world.log, CutoverRequest("anew", "me@here", partial=True, max_lag=100_000))
    roles = (*ROLES, Role.SCORE)
    with world.live(*roles) as metrics:
        wait_until(lambda: all(_runs_shown(metrics[role]) for role in roles), "all have begun")
        world.pages(_BATCH)
        _deals_with_all(world, anew.names())
    assert {role: _runs_shown(metrics[role]) for role in roles} == {role: {"anew"} for role in roles}
    for topic, runs in (("pages", {None}), (anew.features, {None}), (anew.names().verdicts, {"anew"})):
        messages = (message for partition in range(PARTITIONS) for message in world.log.read(topic, partition))
        assert {message.headers.get("run") for message in messages if message.value} == runs


def _runs_shown(metrics: Metrics) -> set[str]:
    """Runs named by any series."""
    samples = (sample for family in metrics.registry.collect() for sample in family.samples)
    return {sample.labels["run"] for sample in samples if "run" in sample.labels}


def _live_runs(metrics: dict[Role, Metrics]) -> list[str]:
    """The run that each role reports; a role that has not begun reports none."""
    families = (family for one in metrics.values() for family in one.registry.collect())
    shown = (sample for family in families if family.name == "farmwatch_live_run_info" for sample in family.samples)
    return [sample.labels["run"] for sample in shown if sample.value]
