"""What a replay is planned to be: source, window, name, and what is refused and how that is said."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farmwatch.config.config import Config
from filters.errors import BadRuleset
from replay.engine.lifecycle import begin
from replay.engine.plan import OtherParameters, Plan, ReplayRequest, plan, refuse_other_epoch
from replay.engine.source import NothingToReplay
from replay.runs.overview import run_state
from replay.runs.window import OutsideRetention, before_the_first
from stream.log.contract import Output, Topic
from stream.memory.log import MemoryLog
from stream.schema.control import Control
from stream.schema.records import Page
from stream.schema.runs import RUN_NAME, Alias, Run
from stream.schema.topics import FEATURES, PAGES
from stream.text.user_errors import NotFound, RunRefused, UsageError
from tests.support.replay_world import (
    DETECTOR,
    OTHER_DETECTOR,
    PARTITIONS,
    LiveWorld,
    config_of,
    features_of_pages,
    output,
    put_rows,
    write_rules,
)
from tests.support.worlds import TestClock

DAY_MS = 86_400_000
MAY = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1000)


class Desk:
    """A log with pages of ten days from the first of May on, and plans on it."""

    def __init__(self, folder: Path) -> None:
        self.clock = TestClock(MAY)
        self.config = config_of(f"sqlite:{folder / 'log'}")
        self.log = MemoryLog(clock=self.clock)
        self.world = LiveWorld(self.log, self.config)
        for day in range(10):
            self.clock.now_ms = MAY + day * DAY_MS
            pages = features_of_pages(3, 4, self.world.epoch, seed=day)
            self.world.feed([msgspec.structs.replace(page, id=f"d{day}{page.id}") for page in pages])
        self.clock.now_ms = MAY + 10 * DAY_MS
        self.rules = write_rules(folder, 5)

    def plan(self, control: Any = None, log: Any = None, **asked: Any) -> Plan:
        log = log or self.log
        given = ReplayRequest(**{"ruleset": self.rules, **asked})
        return plan(log, control or Control(log), self.config, given, self.clock)

    def begin(self, **asked: str) -> Run:
        return begin(self.log, self.plan(**asked), self.clock)

    def expire_first_days(self) -> None:
        """Delete what is older than five days, as retention does."""
        self.log.expire(MAY + (180 + 5) * DAY_MS)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def other_epoch(config: Config) -> Config:
    measure = msgspec.structs.replace(config.measure, max_elements=config.measure.max_elements + 1)
    return msgspec.structs.replace(config, measure=measure)


def put_page(desk: Desk) -> None:
    desk.log.append([output(PAGES, Page(id="p", site="s0.example", page_id="p", url="https://s0.example/"))])


def test_a_rule_change_begins_at_features(desk: Desk) -> None:
    """Where the epoch is that of the configuration nothing is measured, and the plan says so."""
    run = desk.plan().run
    assert (run.source, run.remeasures, run.features) == (FEATURES, False, FEATURES)
    assert run.epoch in run.why_source
    assert run.detector == DETECTOR


def test_a_new_feature_epoch_begins_at_pages(desk: Desk) -> None:
    """Where the configuration measures otherwise than what is kept, the run has features of its own; both are named."""
    put_page(desk)
    desk.config = other_epoch(desk.config)
    run = desk.plan(name="anew").run
    assert (run.source, run.remeasures, run.features) == (PAGES, True, "features.anew")
    assert run.epoch in run.why_source
    assert desk.world.epoch in run.why_source


def test_what_a_run_measures_with_is_kept_and_named(desk: Desk) -> None:
    """Settings of its epoch, and no others: a configuration without them is refused, and told what to set."""
    put_page(desk)
    desk.config = config_of(desk.config.log.url, "measure.chunk_mode=block", "measure.workers=1")
    run = desk.begin(name="anew")
    assert run.measured_by == {"measure.chunk_mode": "block"}
    refuse_other_epoch(desk.config, run)
    bare = config_of(desk.config.log.url, "measure.pages_per_site=7")
    with pytest.raises(UsageError) as refused:
        refuse_other_epoch(bare, run)
    assert f"epoch {run.epoch}, with --set measure.chunk_mode=block;" in str(refused.value)
    assert "with --set measure.pages_per_site=7. Use the settings" in str(refused.value)
    stopped = run_state(desk.log, Control(desk.log), run, 0)
    assert stopped.resume == "farmwatch replay --name anew --set measure.chunk_mode=block"
    with pytest.raises(UsageError, match="the version of farmwatch and its libraries"):
        refuse_other_epoch(desk.config, msgspec.structs.replace(run, epoch="of-another-version"))


def test_mixed_epochs_begin_at_pages(desk: Desk) -> None:
    """One epoch in the midst of another is found, also of records without a header: they are not judged together."""
    put_page(desk)
    desk.world.feed(features_of_pages(3, 4, "another-epoch"), header=False)
    assert desk.plan().run.source == PAGES
    assert "several feature epochs" in desk.plan().run.why_source
    assert desk.plan(end="2026-05-10").run.source == FEATURES


def test_an_epoch_without_pages_is_refused(desk: Desk) -> None:
    """Where neither features nor pages serve, the refusal says why and what each topic has."""
    desk.config = other_epoch(desk.config)
    with pytest.raises(NothingToReplay, match="this configuration measures") as refused:
        desk.plan()
    assert "features has records from 2026-05-01 00:00:00Z to 2026-05-10 00:00:00Z" in str(refused.value)
    assert "pages has none" in str(refused.value)


def test_a_window_of_days_is_cut_at_their_ends(desk: Desk) -> None:
    """--from begins with its day, --to ends with its own; hits are those up to the end, from the first on."""
    run = desk.plan(begin="2026-05-03", end="2026-05-04").run
    read = [
        message.timestamp_ms
        for partition in range(PARTITIONS)
        for message in desk.log.read(FEATURES, partition, run.start[FEATURES][partition], run.stop[FEATURES][partition])
    ]
    assert {MAY + 2 * DAY_MS, MAY + 3 * DAY_MS} == set(read)
    assert run.start["hits"] == [0] * PARTITIONS
    assert run.stop["hits"] == desk.log.offset_at("hits", MAY + 4 * DAY_MS)


def test_a_window_outside_retention_is_refused(desk: Desk) -> None:
    """A begin before what is kept names the first and the last time that are there; `earliest` takes what is there."""
    desk.expire_first_days()
    with pytest.raises(
        OutsideRetention, match="features has records from 2026-05-06 00:00:00Z to 2026-05-10"
    ) as refused:
        desk.plan(begin="2026-05-02")
    assert "take --from earliest, or 2026-05-06T00:00:00Z or later" in str(refused.value)
    assert desk.plan(begin="2026-05-06T00:00:00Z").run.gaps == []
    assert desk.plan(begin="earliest").run.start[FEATURES] == desk.log.beginning(FEATURES)
    assert desk.plan(begin="2026-05-07").run.source == FEATURES


def test_a_window_from_before_the_first_record_takes_all(desk: Desk) -> None:
    """Where nothing was deleted nothing is missing: the run has all records, and that is said with their time."""
    early = desk.plan(begin="2020-01-01").run
    assert early.start[FEATURES] == desk.log.beginning(FEATURES)
    assert early.from_at < MAY
    assert "so all are taken: features has records from 2026-05-01" in before_the_first(desk.log, early)
    for within in ("earliest", "2026-05-03"):
        assert before_the_first(desk.log, desk.plan(begin=within).run) == ""


NAMES = ("live", "before", "now", "earliest", "follow", "Mine", "-x", "a" * 41, "a b", "a.b", "")


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"begin": "2026-05-05", "end": "2026-05-04"}, UsageError, "is not before"),
        ({"begin": "someday"}, UsageError, "or the name of a run \\(first\\)"),
        ({"end": "someday"}, UsageError, "now, or follow"),
        ({"end": "2027-01-01T00:00"}, UsageError, "still to come"),
        ({"end": "2026-05-12"}, UsageError, "still to come"),
        ({"end": "2999-01-01"}, UsageError, "--to 2999-01-01: that is still to come"),
        ({"begin": "2026-13-01"}, UsageError, "not a time: write"),
        ({"begin": "2026-04-01", "end": "2026-04-02"}, NothingToReplay, "features has none in the window"),
        ({"ruleset": None}, UsageError, "--ruleset, --detector"),
        ({"log": MemoryLog()}, NotFound, "no topics yet"),
        *(({"name": name}, UsageError, "a run is named by") for name in NAMES),
    ],
)
def test_what_makes_no_sense_is_refused(desk: Desk, asked: dict[str, Any], error: type[Exception], said: str) -> None:
    """With what may be given: windows that are none, names that no topic can have, nothing in particular, no log."""
    with pytest.raises(error, match=said):
        desk.plan(**asked)


def test_a_day_that_is_not_over_is_taken_as_it_stands(desk: Desk) -> None:
    """--to with the day that it is means all that is there, as `now` does."""
    day, now = desk.plan(end="2026-05-11").run, desk.plan(end="now").run
    assert (day.to_at, day.stop) == (now.to_at, now.stop)


def test_the_window_of_another_run_is_taken_over(desk: Desk) -> None:
    """--from RUN reads exactly the records that RUN read, hits included, so that the two can be compared."""
    first = desk.begin(name="earlier", begin="2026-05-02")
    desk.world.feed(features_of_pages(3, 4, desk.world.epoch, seed=99))
    second = desk.plan(begin="earlier").run
    assert second.start == first.start
    assert second.stop[FEATURES] == first.stop[FEATURES]
    assert second.stop["hits"] == first.stop["hits"]
    assert (second.from_at, second.to_at) == (first.from_at, first.to_at)
    third = desk.plan(begin="earlier", end="follow").run
    assert third.start[FEATURES] == first.start[FEATURES]
    assert third.follows


def test_from_live_is_the_window_of_the_run_that_is_live(desk: Desk) -> None:
    """After a cutover `live`, `before` and `first` mean as `--from` what they mean in every command."""
    mine = desk.begin(name="mine", begin="2026-05-02")
    put_rows(desk.log, Alias(run="mine", before="live", number=1))
    for name, from_at in (("live", mine.from_at), ("before", 0), ("first", 0), ("mine", mine.from_at)):
        assert desk.plan(begin=name).run.from_at == from_at, name


def test_the_same_parameters_go_on_with_a_run(desk: Desk) -> None:
    """The same command again, and its name alone, plan the run that is there."""
    first = desk.begin(name="mine", begin="2026-05-02")
    desk.clock.now_ms += 1000
    for again in (desk.plan(name="mine", begin="2026-05-02"), desk.plan(name="mine")):
        assert not again.is_new
        assert again.run == first
    alone = desk.plan(ruleset=None, name="mine")
    assert alone.run == first


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"ruleset": "default"}, "--ruleset is default"),
        ({"detector": OTHER_DETECTOR}, f"--detector is {OTHER_DETECTOR}, the run has {DETECTOR}"),
        ({"begin": "2026-05-03"}, "--from is 2026-05-03"),
        ({"end": "2026-05-03"}, "--to is 2026-05-03"),
    ],
)
def test_other_parameters_are_refused_by_name(desk: Desk, asked: dict[str, str], said: str) -> None:
    """Each parameter that differs from the run's own is named with both values."""
    desk.begin(name="mine", begin="2026-05-02")
    with pytest.raises(OtherParameters, match=said):
        desk.plan(name="mine", **asked)


def test_the_live_run_is_not_replayed_into(desk: Desk) -> None:
    """A run that was put live is carried on by the daemon."""
    desk.begin(name="mine")
    control = Control(desk.log)
    control.alias = msgspec.structs.replace(control.alias, run="mine")
    with pytest.raises(RunRefused, match="is live"):
        desk.plan(control, ruleset=None, name="mine")


def test_a_ruleset_that_does_not_load_is_refused_by_name(desk: Desk, tmp_path: Path) -> None:
    """The error names the file and the setting, before anything is written."""
    file = tmp_path / "bad.toml"
    file.write_text('[rules.extracted]\nthreshold = "ok"\n[rules.min_tokenz]\nthreshold = 3\n')
    with pytest.raises(BadRuleset, match=r"bad\.toml.*min_tokenz.*min_tokens"):
        desk.plan(ruleset=str(file))
    assert list(Control(desk.log).runs) == ["live"]


def test_default_names_tell_rulesets_apart(desk: Desk) -> None:
    """Without --name a run is called after its ruleset, the digest's first digits and a number."""
    first = desk.begin()
    assert RUN_NAME.fullmatch(first.name)
    assert first.name == f"rules-5-{first.digest[:6]}-1"
    assert desk.plan().run.name == f"rules-5-{first.digest[:6]}-2"


def test_a_name_alone_begins_nothing(desk: Desk) -> None:
    """A mistyped name is told with the nearest one, where neither ruleset nor detector says that a run is to begin."""
    desk.begin(name="strict")
    for more in ({}, {"end": "follow"}):
        with pytest.raises(NotFound, match="did you mean strict"):
            desk.plan(ruleset=None, name="strcit", **more)


@pytest.mark.parametrize("end", ["follow", "now"])
def test_an_earlier_plan_takes_no_later_end_back(desk: Desk, end: str) -> None:
    """Of two processes that go on with a run, the one that planned first and begins last leaves it its later end."""
    desk.begin(name="mine")
    desk.clock.now_ms += 1000
    early = [desk.plan(name="mine"), desk.plan(name="mine", end="now")]
    desk.world.feed(features_of_pages(3, 4, desk.world.epoch, seed=99))
    desk.clock.now_ms += 1000
    later = desk.begin(name="mine", end=end)
    for planned in early:
        row = begin(desk.log, planned, desk.clock)
        assert (row.follows, row.to_at) == (later.follows, later.to_at)
        assert row.stop.get(FEATURES) == later.stop.get(FEATURES)


def test_heartbeats_alone_are_nothing(desk: Desk) -> None:
    """A topic with heartbeats and no record has no epoch; what is missing is said."""
    log = MemoryLog(clock=desk.clock)
    world = LiveWorld(log, desk.config)
    world.feed([])
    with pytest.raises(NothingToReplay):
        desk.plan(log=log)


def test_features_that_were_measured_anew_are_not_cut_by_time(desk: Desk) -> None:
    """They stand at the time of their measuring: all of them serve, and a window of earlier times begins at pages."""
    put_page(desk)
    features = "features.base"
    desk.log.create([Topic(features, PARTITIONS)])
    pages = features_of_pages(3, 4, desk.world.epoch)
    desk.log.append([output(features, page, feature_epoch=page.epoch) for page in pages])
    fields = {"ruleset": "r", "digest": "d", "detector": DETECTOR, "epoch": desk.world.epoch, "features": features}
    control = Control(desk.log)
    for run in (
        Run(name="base", remeasures=True, **fields),  # type: ignore[arg-type]
        Run(name="base", remeasures=True, ended_at=MAY + 10 * DAY_MS + 1, state="done", **fields),  # type: ignore[arg-type]
    ):
        control.runs["base"] = run
        control.alias = Alias(run="base")
        desk.clock.now_ms = MAY + 11 * DAY_MS
        whole = desk.plan(control).run
        assert (whole.source, sum(whole.stop[features])) == (features, len(pages))
        cut = desk.plan(control, begin="2026-05-02").run
        assert cut.source == PAGES
        assert "was measured anew" in cut.why_source
    assert desk.plan(control, begin="base").run.start[features] == [0] * PARTITIONS
    desk.log.create([Topic(features, PARTITIONS, retention_ms=1)])
    desk.log.expire(desk.clock())
    with pytest.raises(OutsideRetention, match="records that the run base read were deleted since"):
        desk.plan(control, begin="base")


def test_the_row_is_whole_before_the_first_record(desk: Desk) -> None:
    """Row, ruleset text, topics and first offsets stand when `begin` returns."""
    run = desk.begin(name="mine", begin="2026-05-03")
    control = Control(desk.log)
    assert control.runs["mine"] == run
    assert control.ruleset_text(run) == Path(desk.rules).read_text()
    assert {"verdicts.mine", "sites.mine", "state.tally.mine", "state.asked.mine"} <= desk.log.topics().keys()
    assert desk.log.committed("judge.mine", FEATURES) == run.start[FEATURES]
    assert desk.log.committed("tally.mine", "hits") == [0] * PARTITIONS


def test_tombstones_and_foreign_records_do_not_stop_a_plan(desk: Desk) -> None:
    """A record without a value at the head is passed over when epochs are looked up."""
    desk.log.append([Output(FEATURES, 0, b"x", None)])
    assert desk.plan().run.source == FEATURES
