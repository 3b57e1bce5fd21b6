"""The plan of a replay: source, window of time, name, and refusals with their messages; and its window in effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.config.config import Config
from farmwatch.runs.notices import early_begin_note
from farmwatch.runs.summary_lines import lines_of, next_commands
from farmwatch.terminal.remedies import in_full, resume_command
from filters.errors import BadModel
from replay.engine.lifecycle import begin
from replay.engine.plan import OtherParameters, Plan, ReplayRequest, plan, refuse_other_epoch, refuse_unfit
from replay.engine.runner import Ending
from replay.engine.source import NothingToReplay, OutsideRetention, WindowOffsets, offsets_of
from replay.engine.summary import lost_text, summary_of
from replay.live.cutover import CutoverRefused, CutoverRequest, cut_over
from replay.rows.gaps import missing_records
from replay.runs.window import Window, read_window
from stream.log.contract import Log, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import HEADER
from stream.schema.control import Control
from stream.schema.records import Page
from stream.schema.runs import RUN_NAME, Alias, Gap, Run
from stream.schema.topics import FEATURES, PAGES
from stream.text.user_errors import NotFound, RunRefused, UsageError
from tests.support.runs.replay_world import (
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
    """A log with pages of ten days from 1 May, and plans on it."""

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
        """Delete records older than five days, as retention does."""
        self.log.expire(MAY + (180 + 5) * DAY_MS)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def other_epoch(config: Config) -> Config:
    measure = msgspec.structs.replace(config.measure, max_elements=config.measure.max_elements + 1)
    return msgspec.structs.replace(config, measure=measure)


def put_page(desk: Desk) -> None:
    desk.log.append([output(PAGES, Page(id="p", site="s0.example", page_id="p", url="https://s0.example/"))])


def test_measure_settings_are_stored_and_named(desk: Desk) -> None:
    """The settings of the epoch are stored. A configuration without them is refused, with the settings to use."""
    put_page(desk)
    desk.config = config_of(desk.config.log.url, "measure.tokenizer=words", "measure.workers=1")
    run = desk.begin(name="anew")
    assert run.measured_by == {"measure.tokenizer": "words"}
    refuse_other_epoch(desk.config, run)
    bare = config_of(desk.config.log.url, "measure.max_elements=7")
    with pytest.raises(UsageError) as refused:
        refuse_other_epoch(bare, run)
    assert "--set measure.tokenizer=words, not --set measure.max_elements=7" in in_full(refused.value)
    assert resume_command(run) == "farmwatch replay --name anew --set measure.tokenizer=words"
    shown = summary_of(desk.log, Control(desk.log), desk.config, run, 0)
    assert next_commands(shown, run) == [f"{resume_command(run)}    # resumes it"]
    with pytest.raises(UsageError):
        refuse_other_epoch(desk.config, msgspec.structs.replace(run, epoch="of-another-version"))


def test_mixed_epochs_begin_at_pages(desk: Desk) -> None:
    """A second epoch in the middle is found, even in records without a header: they are not judged together."""
    put_page(desk)
    desk.world.feed(features_of_pages(3, 4, "another-epoch"), header=False)
    assert desk.plan().run.source == PAGES
    assert "several feature epochs" in desk.plan().run.why_source
    assert desk.plan(end="2026-05-10").run.source == FEATURES


def test_an_epoch_without_pages_is_refused(desk: Desk) -> None:
    """If neither features nor pages serve, the refusal says why and lists what each topic has."""
    desk.config = other_epoch(desk.config)
    with pytest.raises(NothingToReplay, match="this configuration measures") as refused:
        desk.plan()
    assert "features has records from 2026-05-01 00:00:00Z to 2026-05-10 00:00:00Z" in str(refused.value)
    assert "pages has none" in str(refused.value)


def test_a_window_of_days_is_cut_at_their_ends(desk: Desk) -> None:
    """--from begins with its day, --to ends with its day; hits are those up to the end, from the first on."""
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
    """A begin before the oldest record names the first and the last time; `earliest` takes the existing records."""
    desk.expire_first_days()
    with pytest.raises(OutsideRetention, match="from 2026-05-06 00:00:00Z to 2026-05-10") as refused:
        desk.plan(begin="2026-05-02")
    assert refused.value.facts == {"kept": "2026-05-06T00:00:00Z or later"}
    assert desk.plan(begin="2026-05-06T00:00:00Z").run.gaps == []
    assert desk.plan(begin="earliest").run.start[FEATURES] == desk.log.beginning(FEATURES)
    assert desk.plan(begin="2026-05-07").run.source == FEATURES


def test_a_window_from_before_the_first_record_takes_all(desk: Desk) -> None:
    """If nothing was deleted, the run has all records, and a note names their time."""
    early = desk.plan(begin="2020-01-01").run
    assert early.start[FEATURES] == desk.log.beginning(FEATURES)
    assert early.from_at < MAY
    assert "so all are taken: features has records from 2026-05-01" in early_begin_note(desk.log, early)
    for within in ("earliest", "2026-05-03"):
        assert early_begin_note(desk.log, desk.plan(begin=within).run) == ""


NAMES = ("live", "before", "now", "earliest", "follow", "Mine", "-x", "a" * 41, "a b", "a.b", "")


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"begin": "2026-05-05", "end": "2026-05-04"}, UsageError, "not before its end"),
        ({"begin": "someday"}, UsageError, "or the name of a run \\(first\\)"),
        ({"end": "someday"}, UsageError, "now, or follow"),
        ({"end": "2027-01-01T00:00"}, UsageError, "in the future"),
        ({"end": "2026-05-12"}, UsageError, "in the future"),
        ({"end": "2999-01-01"}, UsageError, "2999-01-01, is in the future"),
        ({"begin": "2026-13-01"}, UsageError, "not a time: write"),
        ({"begin": "2026-04-01", "end": "2026-04-02"}, NothingToReplay, "features has no record in the window"),
        ({"log": MemoryLog()}, NotFound, "no topics yet"),
        *(({"name": name}, UsageError, "a name has 1 to 40") for name in NAMES),
    ],
)
def test_invalid_requests_are_refused(desk: Desk, asked: dict[str, Any], error: type[Exception], said: str) -> None:
    """Bad windows, invalid names, an empty log: each message says what is allowed."""
    with pytest.raises(error, match=said):
        desk.plan(**asked)


def test_to_today_means_now(desk: Desk) -> None:
    """--to with the current day means all existing records, like `now`."""
    day, now = desk.plan(end="2026-05-11").run, desk.plan(end="now").run
    assert (day.to_at, day.stop) == (now.to_at, now.stop)


def test_the_window_of_another_run_is_taken_over(desk: Desk) -> None:
    """--from RUN reads exactly the records that RUN read, hits included, so that both can be compared."""
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
    """After a cutover, --from resolves `live`, `before` and `first` as all commands do."""
    mine = desk.begin(name="mine", begin="2026-05-02")
    put_rows(desk.log, Alias(run="mine", before="live", number=1))
    for name, from_at in (("live", mine.from_at), ("before", 0), ("first", 0), ("mine", mine.from_at)):
        assert desk.plan(begin=name).run.from_at == from_at, name


def test_the_same_parameters_resume_a_run(desk: Desk) -> None:
    """The same command again, or its name alone, plans the existing run."""
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
        ({"ruleset": "default"}, "ruleset is default"),
        ({"detector": OTHER_DETECTOR}, f"detector is {OTHER_DETECTOR}, the run has {DETECTOR}"),
        ({"begin": "2026-05-03"}, "begins at 2026-05-03"),
        ({"end": "2026-05-03"}, "ends at 2026-05-03"),
    ],
)
def test_other_parameters_are_refused_by_name(desk: Desk, asked: dict[str, str], said: str) -> None:
    """The message names each differing parameter with both values."""
    desk.begin(name="mine", begin="2026-05-02")
    with pytest.raises(OtherParameters, match=said):
        desk.plan(name="mine", **asked)


def test_a_replay_that_measures_needs_its_ngram_model(desk: Desk) -> None:
    """A model of measures that is not there is refused before the run begins."""
    put_page(desk)
    model = "measure.perplexity_model=0123456789abcdef.ngrams"
    desk.config = config_of(desk.config.log.url, model, "tally.sprt={p0=0.1, p1=0.6}")
    with pytest.raises(BadModel, match="the model cannot be read: No such file"):
        refuse_unfit(desk.log, desk.config, desk.plan(name="anew"))


def test_a_pair_reads_no_fluent_text_unless_it_is_allowed(desk: Desk, tmp_path: Path) -> None:
    """A detector that divides by perplexity is refused before the run begins, and the message says how to allow it."""
    pair = "binoculars/a+b@2/bf16/512/none"
    extracted = '[rules.extracted]\nthreshold = "ok"\n'
    for name, allow, detector, is_refused in (
        ("other", "false", DETECTOR, False),
        ("pair", "false", pair, True),
        ("allowed", "true", pair, False),
    ):
        ruleset = tmp_path / f"{name}.toml"
        ruleset.write_text(f'scores = "fluent"\n[fluent]\nallow_perplexity = {allow}\n{extracted}', encoding="utf-8")
        desk.config = config_of(desk.config.log.url, "tally.sprt={p0=0.1, p1=0.6}")
        planned = desk.plan(ruleset=str(ruleset), name=name, detector=detector)
        with pytest.raises(RunRefused, match="allow_perplexity = true") if is_refused else nullcontext():
            refuse_unfit(desk.log, desk.config, planned)


def test_the_live_run_is_not_replayed_into(desk: Desk) -> None:
    """The daemon continues a run that became live; a replay of it is refused."""
    desk.begin(name="mine")
    control = Control(desk.log)
    control.alias = msgspec.structs.replace(control.alias, run="mine")
    with pytest.raises(RunRefused, match="is live"):
        desk.plan(control, ruleset=None, name="mine")


def test_default_names_tell_rulesets_apart(desk: Desk) -> None:
    """Without --name a run is named after its ruleset, the first digits of the digest, and a number."""
    first = desk.begin()
    assert RUN_NAME.fullmatch(first.name)
    assert first.name == f"rules-5-{first.digest[:6]}-1"
    assert desk.plan().run.name == f"rules-5-{first.digest[:6]}-2"


def test_a_name_alone_begins_nothing(desk: Desk) -> None:
    """A mistyped name without ruleset or detector is refused, with the nearest name."""
    desk.begin(name="strict")
    for more in ({}, {"end": "follow"}):
        with pytest.raises(NotFound, match="did you mean strict"):
            desk.plan(ruleset=None, name="strcit", **more)


@pytest.mark.parametrize("end", ["follow", "now"])
def test_an_earlier_plan_takes_no_later_end_back(desk: Desk, end: str) -> None:
    """If two processes resume a run, an earlier plan with an earlier end changes nothing."""
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
    """A topic with only heartbeats has no epoch, and the message says that it has no record."""
    log = MemoryLog(clock=desk.clock)
    world = LiveWorld(log, desk.config)
    world.feed([])
    with pytest.raises(NothingToReplay):
        desk.plan(log=log)


def test_features_measured_again_are_not_cut_by_time(desk: Desk) -> None:
    """They have the time of their measuring: they serve as a whole, and a window of earlier times begins at pages."""
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
        assert "was measured again" in cut.why_source
    assert desk.plan(control, begin="base").run.start[features] == [0] * PARTITIONS
    desk.log.set_limits([Topic(features, PARTITIONS, retention_ms=1)])
    desk.log.expire(desk.clock())
    with pytest.raises(OutsideRetention, match="records that the run base read were deleted"):
        desk.plan(control, begin="base")


def test_the_row_is_whole_before_the_first_record(desk: Desk) -> None:
    """Row, ruleset text, topics and first offsets exist when `begin` returns."""
    run = desk.begin(name="mine", begin="2026-05-03")
    control = Control(desk.log)
    assert control.runs["mine"] == run
    assert control.ruleset_text(run) == Path(desk.rules).read_text()
    assert {"verdicts.mine", "sites.mine", "state.tally.mine", "state.asked.mine"} <= desk.log.topics().keys()
    assert desk.log.committed("judge.mine", FEATURES) == run.start[FEATURES]
    assert desk.log.committed("tally.mine", "hits") == [0] * PARTITIONS


def test_tombstones_and_foreign_records_do_not_stop_a_plan(desk: Desk) -> None:
    """The search for epochs skips a first record without a value."""
    desk.log.append([Output(FEATURES, 0, b"x", None)])
    assert desk.plan().run.source == FEATURES


HOUR_MS = 3_600_000
FULL = 40_000  # bytes that a partition keeps


@pytest.fixture
def clock() -> TestClock:
    return TestClock(HOUR_MS)


@pytest.fixture
def log(clock: TestClock) -> Iterator[Log]:
    """A fresh log with a topic of two partitions, each limited to this many bytes."""
    made: Log = MemoryLog(clock=clock)
    made.create([Topic("t", 2, retention_bytes=FULL)])
    yield made
    made.close()


def fill(log: Log, clock: TestClock, partition: int, hours: range, size: int, *, beat: bool = False) -> None:
    """Append a record or a heartbeat in each of these hours."""
    for hour in hours:
        clock.now_ms = hour * HOUR_MS
        log.append([Output("t", partition, b"k", b"x" * size, {HEADER: "1"} if beat else {})])


def cut(log: Log, hour: int) -> WindowOffsets:
    return offsets_of(log, "t", Window(from_at=hour * HOUR_MS, to_at=2**44, to_end=True))


def test_a_partition_with_expired_records_is_reported(log: Log, clock: TestClock) -> None:
    """A window that one of two partitions still has is accepted, and the possible gap is reported.

    A later window has no gap; `earliest` takes the existing records.
    """
    fill(log, clock, 0, range(1, 21), FULL // 4 - 1000)
    fill(log, clock, 1, range(1, 21), 1)
    log.expire(clock())
    assert log.beginning("t") == [16, 0]
    assert cut(log, 3) == ([16, 2], [20, 20], [Gap("t", 0, 0, 16, 17 * HOUR_MS)])
    assert cut(log, 17) == ([16, 16], [20, 20], [])
    assert offsets_of(log, "t", Window()) == ([16, 0], [20, 20], [])


def test_a_window_that_no_partition_has_is_refused(log: Log, clock: TestClock) -> None:
    """If every partition lost its part, the refusal names the existing range."""
    fill(log, clock, 0, range(1, 21), FULL // 4 - 1000)
    log.expire(clock())
    with pytest.raises(OutsideRetention) as refused:
        cut(log, 3)
    assert refused.value.facts["kept"] == "1970-01-01T17:00:00Z or later"
    fill(log, clock, 1, range(20, 21), FULL + 1)
    log.expire(clock())
    assert (log.beginning("t"), log.end("t")) == ([16, 1], [20, 1])
    with pytest.raises(OutsideRetention, match="t has records from 1970-01-01 17:00:00Z to 1970-01-01 20:00:00Z"):
        cut(log, 3)
    assert cut(log, 17).gaps == [Gap("t", 1, 0, 1, 0)]


@pytest.mark.parametrize("beat", [False, True])
def test_a_sparse_partition_refuses_nothing(log: Log, clock: TestClock, beat: bool) -> None:
    """A partition whose next record came late may have lost some; an earlier heartbeat rules that out."""
    fill(log, clock, 0, range(1, 2), FULL - 1000)
    fill(log, clock, 0, range(2, 3 if beat else 2), 0, beat=True)
    fill(log, clock, 0, range(19, 20), FULL - 1000)
    fill(log, clock, 1, range(1, 21), 1)
    log.expire(clock())
    assert log.beginning("t") == [1, 0]
    assert cut(log, 3).gaps == ([] if beat else [Gap("t", 0, 0, 1, 19 * HOUR_MS)])


@pytest.fixture
def world(log: Log, tmp_path: Path, clock: TestClock) -> LiveWorld:
    """A log where live judged 60 pages of 6 sites in each of three hours of May."""
    made = LiveWorld(log, config_of(f"sqlite:{tmp_path / 'log'}"))
    made.tempo.check_s = 0.02
    for hour in (1, 2, 3):
        clock.now_ms = MAY + hour * HOUR_MS
        pages = features_of_pages(6, 10, made.epoch, seed=hour)
        made.feed(
            [msgspec.structs.replace(page, id=f"{hour}{page.id}", page_id=f"{hour}{page.page_id}") for page in pages]
        )
    made.carry_on()
    return made


def test_a_window_of_time_is_judged_as_live_did(world: LiveWorld) -> None:
    """The run has the verdicts of live for the records between the two times, and no others."""
    rules = world.rules_file(20)
    assert world.replay(ruleset=rules, name="hour", begin="2026-05-01T02:00", end="2026-05-01T03:00") is Ending.DONE
    verdicts = world.outcome("hour")[0]
    assert len(verdicts) == 60
    assert verdicts == [verdict for verdict in world.outcome()[0] if verdict.id.startswith("2")]


def test_a_window_with_gaps_is_reported(world: LiveWorld) -> None:
    """At its begin, its end and to a cutover, also by a run with the same window. A resume adds no gap."""
    kept = {topic: [0] * partitions for topic, partitions in world.log.topics().items()}
    world.log.expire(2**44, {**kept, FEATURES: [5, 0, 0]})
    run, ruleset = world.begin(ruleset=world.rules_file(20), begin="2026-05-01T00:30", name="whole")
    assert early_begin_note(world.log, run) == ""
    said = "up to 5 records of its window had been deleted before it began (features, complete from 2026-05-01T01:"
    assert lost_text(run.gaps).startswith(said)
    assert world.resume(run, ruleset) is Ending.DONE
    assert len(world.outcome("whole")[0]) == 175
    assert world.begin(begin="whole", detector=OTHER_DETECTOR, name="second")[0].gaps == run.gaps
    assert world.begin(name="whole")[0].gaps == run.gaps
    summary = summary_of(world.log, Control(world.log), world.config, world.row("whole"), 1)
    assert summary.lost == {FEATURES: 5}
    assert f"  {said}" in "\n".join(lines_of(summary, world.row("whole")))
    assert missing_records(world.log, world.row("whole"), {}) == {FEATURES: 5}
    with pytest.raises(CutoverRefused):
        cut_over(world.log, CutoverRequest("whole", "me"))
    assert cut_over(world.log, CutoverRequest("whole", "me", partial=True)).run.name == "whole"


def test_what_is_lost_is_counted() -> None:
    """Records deleted before the begin, with the time from which none is missing, and those that expired unread."""
    early = [Gap("pages", partition, 0, 3, 0 if partition > 9 else HOUR_MS + partition) for partition in range(11)]
    assert lost_text([*early, Gap("hits", 0, 4, 6)]) == (
        "up to 33 records of its window had been deleted before it began (pages, complete from 1970-01-01T01:00:01Z on)"
        "; 2 records expired before it read them (hits 2)"
    )
    assert lost_text([]) == ""


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    """Any text gives a window, or an error without control characters."""
    try:
        assert isinstance(read_window(text, "follow", {}, MAY).from_at, int)
    except UsageError as error:
        assert str(error).isprintable()


@pytest.mark.parametrize("end", ["2026-05-01", "20260501", "1777593600", "2026-05-01T00:00Z"])
def test_the_end_of_a_window_has_every_form_of_a_time(end: str) -> None:
    """A day in either form means its end, a moment means itself."""
    window = read_window("2026-04-01", end, {}, MAY + 2 * DAY_MS)
    assert window.to_at == MAY + (DAY_MS if len(end) <= 10 and not end.startswith("177") else 0)


def test_a_run_named_like_a_day_is_the_run() -> None:
    """An existing run name takes precedence over a time."""
    run = Run(name="2026-05-01", ruleset="", digest="", detector="", epoch="", from_at=5, to_at=9)
    window = read_window("2026-05-01", None, {run.name: run}, MAY)
    assert (window.from_at, window.to_at) == (5, 9)
    assert read_window("2026-05-02", None, {run.name: run}, MAY + 2 * DAY_MS).from_at == MAY + DAY_MS
