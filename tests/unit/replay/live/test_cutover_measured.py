"""A cutover to a run that measured pages again, and back: MEASURE switches too, at the run's own offsets."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from farmwatch.audit.audit import audit
from replay.engine.runner import Ending
from replay.live.cutover import CutoverRequest, cut_over
from replay.live.epoch_change import change_epoch, epoch_change, seams_of
from replay.live.handover import LiveRunUnfit
from replay.rows.site_table import read_sites
from stream.log.contract import Output
from stream.log.errors import StreamError
from stream.processing.metrics import Metrics
from stream.schema.records import Features, Template, decode, encode
from stream.schema.roles import Role
from stream.schema.runs import Run, RunNames
from stream.schema.topics import TEMPLATES, site_memory
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
    """Wait until MEASURE, JUDGE and TALLY of a run have processed everything."""
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

    The daemon starts with the settings of the run that is live. The features of a run are of its epoch. Both audits are
    clean.
    """
    first = world.begin_live()
    world.pages(_BATCH)
    with world.live(*ROLES):
        _deals_with_all(world, first.names())
    config_of_first = world.config
    _configure_other_epoch(world)
    anew, config_of_anew = _replayed(world), world.config
    assert anew.epoch != first.epoch
    assert world.judged(anew.names()) == dict.fromkeys(world.put, 1)

    moves = (("anew", anew, config_of_anew), ("", first, config_of_first))
    for to, run, config in (*moves, *moves, moves[0]):
        world.pages(_BATCH)
        cut_over(world.log, CutoverRequest(to, "me@here", max_lag=100_000))
        world.config = config
        with world.live(*ROLES) as metrics:
            world.pages(_BATCH)
            _deals_with_all(world, run.names())
            assert _live_runs(metrics) == [run.shown] * len(ROLES)
    cut_over(world.log, CutoverRequest("", "me@here", max_lag=100_000))
    world.config = config_of_first
    with world.live(*ROLES):
        _deals_with_all(world, first.names())
    for run in (first, anew):
        measured = _measured(world, run.features)
        assert Counter(features.id for features in measured) == Counter(world.put)
        assert {features.epoch for features in measured} == {run.epoch}
        assert world.judged(run.names()) == Counter(world.put)
        assert audit(world.log, run.name).broken == []


def test_a_daemon_of_another_epoch_refuses_the_live_run(world: CutoverWorld) -> None:
    """MEASURE does not mix two epochs in one run: it ends, and the message names the commands."""
    world.begin_live()
    _configure_other_epoch(world)
    with pytest.raises(LiveRunUnfit), world.live(Role.MEASURE):
        pass


def test_after_an_upgrade_every_row_rests_on_the_new_epoch(
    world: CutoverWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All retained pages are measured again, in order and before new ones; rows drop the old epoch.

    An upgrade that was killed at its last step is completed by the same call. The memory of the old epoch is gone, the
    row of the run names both epochs, and the audit is clean.
    """
    first = world.begin_live()
    world.pages(_BATCH)
    with world.live(*ROLES):
        _deals_with_all(world, first.names())
    _configure_other_epoch(world)
    world.pages(_BATCH)  # not measured yet
    left_over = Template(id="1", site="gone.example", url="https://gone.example/", sketch=b"")  # its page is no more
    world.log.append([Output(TEMPLATES, 0, b"gone.example 1", encode(left_over))])
    change = epoch_change(world.log, world.config.measure)
    assert change is not None
    assert (change.before, change.records >= 2 * _BATCH) == (first.epoch, True)  # a broker counts markers
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr("replay.live.epoch_change.update_run", _killed)
        change_epoch(world.log, world.config.measure, 1)
    assert epoch_change(world.log, world.config.measure) == change
    change_epoch(world.log, world.config.measure, 1_700_000_000_000)
    assert epoch_change(world.log, world.config.measure) is None
    with world.live(*ROLES):
        wait_until(lambda: world.judged(first.names()).total() == 3 * _BATCH, "all to be judged")
        wait_until(lambda: world.at_end("tally", ["hits", "verdicts", "scores"]), "all to be tallied")
    measured = [features for features in _measured(world, "features") if features.epoch == change.after]
    assert Counter(features.id for features in measured) == Counter(world.put)
    rows = read_sites(world.log)
    assert {row.epoch for row in rows} == {change.after}
    assert sum(row.pages for row in rows) == len(world.put)
    assert f"state.{site_memory(first.epoch)}" not in world.log.topics()
    assert b"gone.example 1" not in {message.key for message in world.log.read(TEMPLATES, 0)}
    (seam,) = seams_of(world.log)
    assert f"feature epoch {first.epoch} until 2023-11-14 22:13:20Z, then {change.after}" in seam
    assert audit(world.log).broken == []


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_upgrade_waits_until_measure_has_ended(world: CutoverWorld) -> None:
    """While MEASURE runs nothing changes."""
    first = world.begin_live()
    with world.live(Role.MEASURE):
        wait_until(lambda: world.log.members("measure") != [], "MEASURE to join")
        before = world.log.topics()
        other = msgspec.structs.replace(world.config.measure, max_elements=world.config.measure.max_elements - 1)
        with pytest.raises(StreamError, match="measure"):
            change_epoch(world.log, other, 0)
        assert world.log.topics() == before
    live = world.control().live
    assert live is not None
    assert live.epoch == first.epoch


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
