"""A cutover with running live roles: they switch between two batches, and every record is judged once in each run."""

from __future__ import annotations

import re
import threading
from collections import Counter

import msgspec
import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from farmwatch.audit.audit import audit
from filters.rules.ruleset import load_ruleset
from replay.engine.runner import Ending
from replay.live import handover as following
from replay.live.cutover import CutoverRequest, cut_over
from replay.live.epoch_change import change_epoch, epoch_change, seams_of
from replay.live.handover import LiveRunUnfit
from replay.rows.site_table import read_sites
from replay.runs.configured import configured_site_method
from replay.runs.run_rules import RunRules, live_now
from scoring.sites.registry import method_of_text, site_method, text_of_method
from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SprtParams
from stream.log.contract import Message, Output
from stream.log.errors import StreamError
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.records import Features, Template, decode, encode
from stream.schema.roles import Role
from stream.schema.runs import Alias, Run, RunNames, shown_run
from stream.schema.topics import FEATURES, TEMPLATES, site_memory
from tests.support.front_door import PARTITIONS
from tests.support.runs.cutover_world import DETECTOR, OTHER, CutoverWorld
from tests.support.runs.replay_world import put_rows
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


def _page(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def _topics_with_lag(metrics: Metrics) -> set[str]:
    """Topics with an exported lag."""
    return set(re.findall(r'^farmwatch_log_lag_\w+{.*?topic="([^"]+)"', _page(metrics), re.MULTILINE))


def _features(world: CutoverWorld) -> list[Message]:
    return [message for partition in range(PARTITIONS) for message in world.log.read(FEATURES, partition)]


def _shows(metrics: Metrics, run: str) -> bool:
    return re.search(rf'live_run_info{{epoch="\w*",run="{shown_run(run)}"}} 1.0', _page(metrics)) is not None


def _goes_on_as(metrics: dict[Role, Metrics], run: str) -> None:
    wait_until(lambda: all(_shows(counted, run) for counted in metrics.values()), f"all go on as {run}")


def test_no_record_is_lost_or_judged_twice_over_a_cutover_and_back(world: CutoverWorld) -> None:
    """While features arrive, live switches to a replayed run and back.

    In each run each processed features record has exactly one verdict, by its ruleset. The old run catches up with all
    records; rows, log lines and metrics show the switch.
    """
    first, ended = world.begin_live(), threading.Event()
    world.features(60)
    run = world.begin("r1")
    world.replay(run)

    def feed() -> None:
        while not ended.is_set():
            world.features(7)
            ended.wait(0.15)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        with capture_logs() as said, world.live(Role.MEASURE, Role.JUDGE, Role.TALLY) as metrics:
            _goes_on_as(metrics, "live")
            wait_until(lambda: sum(world.judged(first.names()).values()) > 80, "live judges", every_s=0.1)
            wait_until(lambda: "verdicts" in _topics_with_lag(metrics[Role.TALLY]), "its lag is shown")
            cut_over(world.log, CutoverRequest("r1", "me@here", "stricter", max_lag=100_000))
            _goes_on_as(metrics, "r1")
            digest = load_ruleset(OTHER).digest
            shown = f'ruleset_info{{digest="{digest}",ruleset="{OTHER}"}} 1.0'
            wait_until(lambda: shown in _page(metrics[Role.JUDGE]), "the new ruleset is shown")
            page = _page(metrics[Role.JUDGE])
            assert page.count("farmwatch_ruleset_info{") == 1 and "farmwatch_cutovers_total 1.0" in page
            at_switch = world.judged(first.names()).total()
            before = world.judged(run.names()).total()
            wait_until(lambda: world.judged(run.names()).total() > before + 50, "r1 judges", every_s=0.1)
            assert f'page_verdicts_total{{ruleset="{OTHER}",run="r1"' in _page(metrics[Role.JUDGE])
            assert world.judged(first.names()).total() == at_switch
            wait_until(lambda: "verdicts.r1" in _topics_with_lag(metrics[Role.TALLY]), "the new lag is shown")
            assert "verdicts" not in _topics_with_lag(metrics[Role.TALLY])
            cut_over(world.log, CutoverRequest("", "me@here"))
            _goes_on_as(metrics, "live")
            ended.set()
            feeder.join()
            wait_until(lambda: world.at_end("judge", ["features"]), "live catches up", every_s=0.1)
            wait_until(lambda: world.at_end("tally", ["hits", "verdicts", "scores"]), "and its tally", every_s=0.1)
    finally:
        ended.set()
        feeder.join()
    assert world.judged(first.names()) == dict.fromkeys(world.put, 1)
    assert {verdict.digest for verdict in world.verdicts(first.names())} == {first.digest}
    assert world.judged(run.names()) == dict.fromkeys(world.passed("judge.r1"), 1)
    assert {(v.digest, v.run) for v in world.verdicts(run.names())} == {(run.digest, "r1")}
    moves = [(row.from_run, row.to_run, row.back, row.by, row.why) for row in world.control().cutovers]
    assert moves == [("live", "r1", False, "me@here", "stricter"), ("r1", "live", True, "me@here", "")]
    switched = [(s["role"], s["from_run"], s["to_run"]) for s in said if s["event"] == "switched"]
    assert sorted(switched) == sorted(
        (role, *way) for role in ("measure", "judge", "tally") for way in (("first", "r1"), ("r1", "first"))
    )


def test_a_replay_that_follows_and_live_roles_share_the_run_that_became_live(world: CutoverWorld) -> None:
    """While features arrive, the replay and the live roles are members of the same groups, until the replay leaves.

    After three cutovers each record has one verdict in the run, and one in `live` if that run processed it.
    """
    world.tempo.control_s = 3600.0  # the replay sees the cutover when both have worked
    first, ended, looked = world.begin_live(), threading.Event(), threading.Event()
    world.features(30)
    run, ruleset = world.plan_run("r1", end="follow")
    endings: list[Ending] = []

    def replay() -> None:
        endings.append(world.resume(run, ruleset, stop=ended, on_progress=lambda _: looked.set()))

    def feed() -> None:
        while not ended.wait(0.15):
            world.features(7)

    def judge_more(topics: RunNames) -> None:
        enough = world.judged(topics).total() + 50
        wait_until(lambda: world.judged(topics).total() > enough, f"{topics.verdicts} grows", every_s=0.1)

    threads = [threading.Thread(target=work) for work in (replay, feed)]
    for thread in threads:
        thread.start()
    try:
        with world.live(Role.MEASURE, Role.JUDGE, Role.TALLY) as metrics:
            assert looked.wait(30)
            judge_more(run.names())
            cut_over(world.log, CutoverRequest("r1", "me", max_lag=100_000))
            members = {"replay-1", "judge-1"}
            wait_until(lambda: set(world.log.members("judge.r1")) == members, "both are in the group")
            judge_more(run.names())
            world.tempo.control_s = 0.1
            threads[0].join(30)
            assert endings == [Ending.LIVE]
            judge_more(run.names())
            cut_over(world.log, CutoverRequest("", "me"))
            _goes_on_as(metrics, "live")
            judge_more(first.names())
            cut_over(world.log, CutoverRequest("r1", "me", max_lag=100_000))
            ended.set()
            threads[1].join()
            wait_until(lambda: world.at_end("judge.r1", ["features"]), "r1 has judged all", every_s=0.1)
            wait_until(
                lambda: world.at_end("tally.r1", ["hits", "verdicts.r1", "scores"]), "and tallied it", every_s=0.1
            )
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert world.judged(run.names()) == dict.fromkeys(world.put, 1)
    assert world.judged(first.names()) == dict.fromkeys(world.passed("judge"), 1)


def test_a_changed_setting_is_not_picked_up(world: CutoverWorld) -> None:
    """The configured ruleset differs from that of the live run: JUDGE continues with the text in the log."""
    run = world.begin("r1")  # of another ruleset than the configuration's
    put_rows(world.log, Alias(run="r1", number=1))
    world.features(9)
    with world.live(Role.JUDGE) as metrics:
        wait_until(lambda: world.judged(run.names()).total() == 9, "it judges", every_s=0.1)
        assert f'digest="{run.digest}"' in _page(metrics[Role.JUDGE])
    assert {verdict.digest for verdict in world.verdicts(run.names())} == {run.digest}


class Checks:
    """Counts the checks for another live run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0

        def counted(control: Control) -> RunRules | None:
            self.count += 1
            return live_now(control)

        monkeypatch.setattr(following, "live_now", counted)

    def await_more(self) -> None:
        """Wait for further checks."""
        enough = self.count + 5
        wait_until(lambda: self.count >= enough, "further checks")


def test_a_run_whose_rules_cannot_be_read_does_not_end_the_work(
    world: CutoverWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the alias names a run without a ruleset, JUDGE logs it once and continues with its present run."""
    checks = Checks(monkeypatch)
    first = world.begin_live()
    world.begin("r1")
    with capture_logs() as said, world.live(Role.JUDGE) as metrics:
        _goes_on_as(metrics, "live")
        broken = Run(name="r2", ruleset="gone", digest="0" * 16, detector=DETECTOR, epoch="e")
        put_rows(world.log, broken, Alias(run="r2", number=1))
        wait_until(lambda: any(s["event"] == "cannot_go_over" for s in said), "it says so")
        world.features(5)
        wait_until(lambda: world.judged(first.names()).total() == 5, "it goes on", every_s=0.1)
        checks.await_more()
    assert sum(s["event"] == "cannot_go_over" for s in said) == 1


def test_measure_stays_with_its_run_if_the_new_one_is_of_another_epoch(world: CutoverWorld) -> None:
    """It would mix two epochs in one topic: it says so, names `upgrade`, and measures the next pages as before."""
    first = world.begin_live()
    with capture_logs() as said, world.live(Role.MEASURE) as metrics:
        _goes_on_as(metrics, "live")
        put_rows(world.log, world.begin("other", epoch="0" * 12), Alias(run="other", before="live", number=1))
        wait_until(lambda: any(s["event"] == "cannot_go_over" for s in said), "it says so")
        world.pages(5)
        wait_until(lambda: world.at_end("measure", ["pages"]), "it goes on", every_s=0.1)
        _goes_on_as(metrics, "live")
    (told,) = [s for s in said if s["event"] == "cannot_go_over"]
    assert "`farmwatch log upgrade --check` shows what differs" in told["error"]
    assert {decode(Features, message.value or b"").epoch for message in _features(world)} == {first.epoch}


def test_tally_judges_by_the_site_method_of_the_run_that_is_live(
    world: CutoverWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live switches to a run with other numbers, and its rows follow them, whatever [tally] says.

    TALLY does not switch to a run with an unreadable method, and names the way back.
    """
    checks = Checks(monkeypatch)
    other = text_of_method(site_method(TallySettings(method="sprt", sprt=SprtParams(p0=0.2, p1=0.7)), "d/1"))
    world.begin_live()
    world.replay(world.begin("r1", site_method=other))
    world.replay(world.begin("odd", site_method=other.replace('"p0":0.2', '"p0":0.9')))
    with capture_logs() as said, world.live(Role.JUDGE, Role.TALLY) as metrics:
        cut_over(world.log, CutoverRequest("r1", "me"))
        _goes_on_as(metrics, "r1")
        world.features(20)
        wait_until(lambda: world.at_end("tally.r1", ["hits", "verdicts.r1"]), "r1 tallies", every_s=0.1)
        cut_over(world.log, CutoverRequest("odd", "me", max_lag=1000, partial=True))
        wait_until(lambda: any(s["event"] == "cannot_go_over" for s in said), "it says so")
        checks.await_more()
        assert _shows(metrics[Role.TALLY], "r1")
    (told,) = [s for s in said if s["event"] == "cannot_go_over"]
    assert told["goes_on_with"] == "r1"
    assert "`farmwatch cutover --back` goes back to the run r1" in told["error"]
    digest = method_of_text(other).digest
    methods = {row.site: row.method_digest for row in read_sites(world.log, "r1")}
    assert digest in methods.values()
    assert digest != configured_site_method(world.config, DETECTOR).digest


def test_an_unexpected_error_of_the_watch_ends_the_role(world: CutoverWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the watch for cutovers fails unexpectedly, the role ends with the error, not as if stopped."""
    world.begin_live()
    looked = threading.Event()

    def fail(_: object) -> None:
        looked.set()
        raise ValueError("of a kind that nobody foresaw")

    with pytest.raises(ValueError, match="nobody foresaw"), world.live(Role.JUDGE) as metrics:
        _goes_on_as(metrics, "live")
        monkeypatch.setattr(following, "live_now", fail)
        assert looked.wait(30)


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
    (seam,) = seams_of(Control(world.log))
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
