"""A replay produces the verdicts and rows of live, each once, and leaves live unchanged; on both logs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from prometheus_client import generate_latest

from crawler.web.urls import page_id
from filters.rules.ruleset import Ruleset
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from replay.engine.lifecycle import cancel
from replay.engine.plan import OtherParameters, ReplayRequest, plan
from replay.engine.runner import Ending, Replay, ReplayStatus, Tempo
from replay.rows.site_table import counts_of, read_rows
from replay.runs.phases import JUDGE, RunProgress, is_done, phases_of, progress_of
from stream.log.contract import Log, Member, Message
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import is_heartbeat
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.control import Control, exclusive
from stream.schema.records import Features, Hit, Page, SiteState, Verdict, decode
from stream.schema.runs import Alias, Run, RunStatus
from stream.schema.topics import FEATURES, HITS, PAGES, REPLAY_REQUESTS
from stream.text.user_errors import RunRefused, UsageError
from tests.support.front_door import article_html
from tests.support.pages.extraction_here import extract_here
from tests.support.runs.replay_world import (
    OTHER_DETECTOR,
    PARTITIONS,
    LiveWorld,
    Working,
    at_end,
    config_of,
    features_of_pages,
    live_world,
    measuring_otherwise,
    output,
    pages_later,
    put_rows,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

later_pages = partial(pages_later, sites=8, pages=5)


@pytest.fixture
def world(tmp_path: Path) -> LiveWorld:
    """A log on which live judged 200 pages of 8 sites by `rules(20)`."""
    made = live_world(tmp_path, 8, 25)
    made.tempo = Tempo(check_s=0.02, control_s=0.05)
    return made


def test_a_replay_under_the_live_ruleset_equals_live(world: LiveWorld) -> None:
    """Every verdict, in order, and every site row equal those of live; no topic or offset of live changed."""
    before = world.live_traces()
    counted, metrics = generate_latest(world.metrics.registry), Metrics()
    assert b'page_verdicts_total{ruleset="rules-20",run="first"' in counted
    assert world.replay(ruleset=world.rules_file(20), name="same", metrics=metrics) is Ending.DONE
    assert world.outcome("same") == world.outcome()
    assert world.live_traces() == before
    assert generate_latest(world.metrics.registry) == counted
    page = generate_latest(metrics.registry).decode()
    assert set(re.findall(r'run="(.*?)"', page)) == {"same"}
    assert "farmwatch_live_run_info{" not in page  # by which queries tell live processes
    assert world.score(topics=[REPLAY_REQUESTS]) == 0


@pytest.mark.parametrize("least", [5, 60])
def test_a_replay_equals_live_under_its_ruleset(world: LiveWorld, least: int) -> None:
    """With a looser or a stricter ruleset: after the missing scores, verdicts and rows equal those of live under it."""
    name = f"other-{least}"
    assert world.replay(ruleset=world.rules_file(least), name=name) is Ending.DONE
    world.score()
    assert world.replay(name=name) is Ending.DONE
    expected = LiveWorld(MemoryLog(), world.config, least=least)
    expected.feed(features_of_pages(8, 25, expected.epoch))
    expected.carry_on()
    verdicts, rows = world.outcome(name)
    expected_verdicts, expected_rows = expected.outcome()
    assert [without_name(verdict) for verdict in verdicts] == [without_name(verdict) for verdict in expected_verdicts]
    assert rows == expected_rows


def without_name(verdict: Verdict) -> Verdict:
    return msgspec.structs.replace(verdict, ruleset="")


def test_scores_of_a_replay_change_no_row_of_live(world: LiveWorld) -> None:
    """Live TALLY reads and counts the scores that a replay requested; no row or decision changes."""
    before, outcome = world.live_traces()["ends"], world.outcome()
    labels = {"run": "first", "ruleset": "", "stage": "tally", "result": "score"}
    tallied = partial(world.metrics.registry.get_sample_value, "farmwatch_stage_records_total", labels)
    counted = tallied()
    assert sum(before["decisions"]) > 0
    assert world.replay(ruleset=world.rules, name="loose") is Ending.DONE
    asked = world.score()
    world.carry_on()
    assert asked > 0
    assert tallied() == (counted or 0) + asked
    assert world.outcome() == outcome
    assert world.live_traces()["ends"] == before


def test_a_change_of_the_detector_is_a_replay(world: LiveWorld) -> None:
    """With another detector, its scores make the rows, and none is requested again."""
    assert world.replay(detector=OTHER_DETECTOR, name="detector") is Ending.DONE
    assert world.row("detector").digest == world.ruleset.digest
    assert {row.detector for row in world.outcome("detector")[1].values()} == {OTHER_DETECTOR}
    assert counts_of(read_rows(world.log, "sites.detector")).unscored == 0


def test_several_runs_at_once_do_not_touch_each_other(world: LiveWorld) -> None:
    """Three concurrent runs end like each alone."""
    begun = {f"r{least}": world.begin(ruleset=world.rules_file(least), name=f"r{least}") for least in (5, 20, 60)}
    together(world, *begun.values())
    assert world.outcome("r20") == world.outcome()
    for least in (5, 60):
        world.replay(ruleset=world.rules_file(least), name=f"alone-{least}")
        assert world.outcome(f"r{least}")[0] == world.outcome(f"alone-{least}")[0]


def together(world: LiveWorld, *begun: tuple[Run, Ruleset]) -> list[Metrics]:
    """Run replays in threads until each is done. Returns the metrics of each."""
    metrics = [Metrics() for _ in begun]
    works = [Working(world, given, member=f"m{at}", metrics=metrics[at]) for at, given in enumerate(begun)]
    assert [work.end() for work in works] == [Ending.DONE] * len(begun)
    return metrics


def test_several_processes_share_a_run(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two members of one run judge each page once, and both work in each phase."""
    run, ruleset = world.begin(ruleset=world.rules_file(20), name="shared")
    join, both = world.log.join, threading.Barrier(2, timeout=30)

    def join_together(group: str, *args: Any, **more: Any) -> Member:
        joined = join(group, *args, **more)
        if group.endswith(".shared"):
            both.wait()  # one alone might be through before the other is there
        return joined

    monkeypatch.setattr(world.log, "join", join_together)
    parts = together(world, (run, ruleset), (run, ruleset))
    assert world.outcome("shared") == world.outcome()
    for phase in phases_of(run):
        labels = {"run": "shared", "phase": phase.name}
        done = [part.registry.get_sample_value("farmwatch_replay_records_total", labels) or 0 for part in parts]
        assert min(done) > 0
        assert phase.name != JUDGE or sum(done) == 200 + PARTITIONS


def _cancel(world: LiveWorld) -> None:
    cancel(world.log, "follower")


def _remove(world: LiveWorld) -> None:
    with exclusive(world.log) as writer:
        writer.forget("follower")


def _put_live(world: LiveWorld) -> None:
    put_rows(world.log, Alias(run="follower", before="live"))


@pytest.mark.parametrize(
    ("end", "ending"), [(_cancel, Ending.CANCELLED), (_remove, Ending.REMOVED), (_put_live, Ending.LIVE)]
)
def test_a_run_that_follows_ends_by_its_row(world: LiveWorld, end: Callable[[LiveWorld], None], ending: Ending) -> None:
    """It ends and reports why when its row is cancelled, removed or live."""
    work = Working(world, world.begin(ruleset=world.rules, end="follow", name="follower"))
    end(world)
    assert work.end() is ending
    if ending is Ending.CANCELLED:
        assert world.row("follower").state == RunStatus.CANCELLED
        with pytest.raises(RunRefused, match="nothing to cancel"):
            cancel(world.log, "follower")


@pytest.mark.parametrize("was_done", [False, True])
def test_a_follower_judges_new_pages(world: LiveWorld, was_done: bool) -> None:
    """Pages measured while it follows are judged too, even if the run had an end and was done."""
    file = world.rules_file(20)
    if was_done:
        world.replay(ruleset=file, name="follower")
    begun = world.begin(ruleset=file, end="follow", name="follower")
    assert begun[0].follows and world.row("follower").follows
    work = Working(world, begun)
    world.feed(later_pages(world))
    world.carry_on()
    wait_until(lambda: world.outcome("follower") == world.outcome(), "the run to be where live is", every_s=0.05)
    assert work.runs
    assert work.stop() is Ending.STOPPED


def test_a_failed_first_check_keeps_signals_working(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the log is unavailable at the start, a signal still ends the process."""
    looks: list[Log] = []

    def away_at_first(log: Log) -> Control:
        looks.append(log)
        if len(looks) == 1:
            raise LogUnavailable("away for a moment")
        return Control(log)

    run, ruleset = world.begin(ruleset=world.rules_file(20), end="follow", name="follower")
    monkeypatch.setattr("replay.engine.runner.Control", away_at_first)
    world.tempo.control_s = 0.01
    work = Working(world, (run, ruleset))
    wait_until(lambda: len(looks) > 1, "a second look")
    cancel(world.log, "follower")
    assert work.end() is Ending.CANCELLED


def test_a_follower_that_cannot_join_everywhere_leaves(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """If its second stage cannot join, the first one leaves its group."""
    run, ruleset = world.begin(ruleset=world.rules_file(20), name="r1")
    world.resume(run, ruleset)
    run, ruleset = world.begin(name="r1", end="follow")
    join = world.log.join

    def away(group: str, *args: Any, **more: Any) -> Member:
        if group == "tally.r1":
            raise LogUnavailable("away for a moment")
        return join(group, *args, **more)

    monkeypatch.setattr(world.log, "join", away)
    with pytest.raises(LogUnavailable):
        world.resume(run, ruleset)
    assert world.log.members("judge.r1") == []


def test_a_failed_last_report_changes_no_ending(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run is done, even if its progress cannot be read."""

    def away(*_: object, **__: object) -> RunProgress:
        raise LogUnavailable("away for a moment")

    run, ruleset = world.begin(ruleset=world.rules_file(20), name="done")
    monkeypatch.setattr("replay.engine.runner.progress_of", away)
    assert world.resume(run, ruleset) is Ending.DONE


def test_records_after_the_plan_are_left_out(world: LiveWorld) -> None:
    """A bounded run judges the records that existed when it was planned."""
    run, ruleset = world.begin(ruleset=world.rules_file(20), name="bounded")
    expected = world.outcome()
    world.feed(later_pages(world))
    assert world.resume(run, ruleset) is Ending.DONE
    assert world.outcome("bounded") == expected
    world.carry_on()
    assert world.outcome("bounded")[0] != world.outcome()[0]


@pytest.mark.parametrize("end", ["now", "today"])
def test_a_finished_run_is_extended_to_a_later_end(world: LiveWorld, end: str) -> None:
    """With a later --to it processes the newer records and equals live; its end never moves back."""
    file = world.rules_file(20)
    assert world.replay(ruleset=file, name="late") is Ending.DONE
    world.feed(later_pages(world))
    world.carry_on()
    assert world.replay(name="late") is Ending.DONE
    assert world.outcome("late") != world.outcome()
    end = end if end == "now" else datetime.now(UTC).date().isoformat()
    assert world.replay(name="late", end=end) is Ending.DONE
    assert world.outcome("late") == world.outcome()
    with pytest.raises(OtherParameters, match="ends at 2001-01-01"):
        world.begin(name="late", end="2001-01-01")


def test_progress_ends_at_the_total(world: LiveWorld) -> None:
    """The done count grows to the expected count; the metrics carry the name of the run."""
    metrics = Metrics()
    told: list[ReplayStatus] = []
    run, ruleset = world.begin(ruleset=world.rules_file(20), name="counted")
    assert progress_of(world.log, run).done == 0
    assert not is_done(world.log, run)
    world.resume(run, ruleset, metrics=metrics, on_progress=told.append)
    progress = progress_of(world.log, world.row("counted"))
    assert progress.effort_left == 0
    assert progress.share == 1.0
    assert told[-1].progress.done == progress.done
    value = metrics.registry.get_sample_value
    for advance in progress.phases:
        labels = {"run": "counted", "phase": advance.phase}
        assert value("farmwatch_replay_records_expected", labels) == advance.total > 0
        assert value("farmwatch_replay_records_total", labels) == advance.total
    assert value("farmwatch_replay_yield_seconds_total", {"run": "counted"}) == 0
    assert value("farmwatch_replay_records_expected", {"run": "counted", "phase": JUDGE}) == 200 + PARTITIONS
    labels = {"run": "counted", "ruleset": "rules-20", "verdict": "article"}
    articles = sum(verdict.verdict == "article" for verdict in world.outcome()[0])
    assert value("farmwatch_page_verdicts_total", labels) == articles


def test_a_replay_waits_for_live(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """While live JUDGE is behind, the replay reports it and judges nothing; then it continues to the usual end."""
    world.tempo.max_wait_s = 1000.0  # it does not move on while live is behind
    expected, (run, ruleset) = world.outcome(), world.begin(ruleset=world.rules_file(20), name="polite")
    metrics, told = Metrics(), list[ReplayStatus]()
    value, labels = metrics.registry.get_sample_value, {"run": "polite"}
    join, behind = world.log.join, threading.Event()

    def tell(standing: ReplayStatus) -> None:
        told.append(standing)
        if standing.waits_for.startswith("judge "):
            behind.set()

    def join_once_told(group: str, *args: Any, **more: Any) -> Member:
        assert not group.endswith(".polite") or behind.wait(20)
        return join(group, *args, **more)

    monkeypatch.setattr(world.log, "join", join_once_told)
    stage = JudgeStage(world.ruleset)
    member = world.log.join("judge", list(stage.inputs), member="live", store=stage.store)
    live = StageLoop(stage, member, metrics=world.metrics, settings=world.config.loop)
    world.feed(2 * later_pages(world))
    work = Working(world, (run, ruleset), metrics=metrics, full_speed=False, on_progress=tell)
    wait_until(lambda: not work.runs or (value("farmwatch_replay_yield_seconds_total", labels) or 0) > 0, "it to wait")
    assert work.runs
    assert world.outcome("polite")[0] == []
    assert value("farmwatch_replay_eta_seconds", labels) is None
    stop = threading.Event()
    while live.cycle(stop) or not at_end(world.log, "judge", list(stage.inputs)):
        pass
    assert work.end() is Ending.DONE
    stop.set()
    live.run(stop)
    assert told[-1].waits_for == ""
    assert world.outcome("polite") == expected
    assert value("farmwatch_replay_eta_seconds", labels) == told[-1].eta_s == 0.0


def test_the_stages_of_a_replay_forward_no_heartbeats(world: LiveWorld) -> None:
    """No stage forwards heartbeats."""
    run, ruleset = world.begin(ruleset=world.rules_file(20), name="quiet")
    work = Replay(world.log, world.config, run, ruleset, "m", metrics=Metrics(), stop=threading.Event())
    for phase in phases_of(run):
        stage = work.stage_of(phase)
        assert stage.forward is None
        assert stage.heartbeat_input == ""
        stage.close()


def html(number: int) -> str:
    """A page that is an article, of one of two templates, or too short for one."""
    tag = "main" if number % 2 else "section"
    frame = f"<body><{tag}><nav><ul><li><a>Home</a></li></ul></nav><form><input></form><hr></{tag}>"
    page = article_html(300 + number).replace("<body>", frame)
    return page if number % 3 else "<html><body><p>Too short for anything.</p></body></html>"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWorld]:
    """A log with 18 pages of 3 sites, measured, judged, scored and tallied live."""
    config = config_of(f"sqlite:{tmp_path_factory.mktemp('measured') / 'log'}", "measure.time_limit_s=60")
    world = LiveWorld(MemoryLog(), config, least=50)
    for number in range(18):
        site, url = f"s{number % 3}.example", f"https://s{number % 3}.example/a/{number}"
        body = zstandard.ZstdCompressor().compress(html(number).encode())
        page = Page(id=f"f{number}", site=site, page_id=page_id(url), url=url, body=body, fetched_at=5 + number)
        hit = Hit(id=f"h{number}", site=site, url=url, rank=1)
        world.log.append([output(PAGES, page), output(HITS, hit)])
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        world.run_stage(MeasureStage(config.measure), "measure")
        world.carry_on()
        yield world
    world.log.close()


def test_a_replay_from_pages_equals_one_from_features(measured: LiveWorld) -> None:
    """After a change of the feature epoch pages are measured again: verdicts and rows equal those from features.

    So do the features, with template lines from the third page of a site with text, its templates, and the dates of
    pages, which a log of an earlier version lacks.
    """
    rules_file = measured.rules_file(20)
    before = measured.live_traces()
    assert measured.replay(ruleset=rules_file, name="features") is Ending.DONE
    assert measured.row("features").source == "features"
    with measuring_otherwise(measured):
        assert measured.replay(ruleset=rules_file, name="pages") is Ending.DONE
        row = measured.row("pages")
        assert row.source == "pages"
        assert "this configuration measures" in row.why_source
        assert without_epoch(measured.outcome("pages")) == without_epoch(measured.outcome("features"))
        assert len(measured.outcome("pages")[0]) == 18
        found = features_in(measured, "features.pages")
        assert found == features_in(measured, FEATURES)
        dated = [found[f"f{number}"].dates for number in range(18) if number % 3]
        assert [str(dates.published) if dates else "" for dates in dated] == ["2021-05-04"] * 12
        assert [bool(found[f"f{number}"].template_lines) for number in (1, 4, 7, 16)] == [False, False, True, True]
        names = [found[f"f{number}"].measures["template_id"] for number in (1, 2, 4, 5, 7, 8, 16)]
        assert names == [names[0], names[1], names[1], names[0], names[0], names[1], names[1]] and len({*names}) == 2
        rows = [
            {message.key: message.value for message in messages_in(measured, topic)}
            for topic in ("templates", "templates.pages")
        ]
        assert rows[0] == rows[1] and len(rows[0]) == 4
        third = plan(
            measured.log, Control(measured.log), measured.config, ReplayRequest(ruleset=rules_file, begin="pages")
        )
        assert (third.run.source, third.run.remeasures) == ("features.pages", False)
    assert measured.live_traces() == before


def messages_in(world: LiveWorld, topic: str) -> list[Message]:
    """All messages of a topic but heartbeats."""
    partitions = range(len(world.log.end(topic)))
    messages = (message for partition in partitions for message in world.log.read(topic, partition))
    return [message for message in messages if not is_heartbeat(message)]


def features_in(world: LiveWorld, topic: str) -> dict[str, Features]:
    """The features in a topic by fetch, without epoch and clock."""
    records = (decode(Features, message.value or b"") for message in messages_in(world, topic))
    return {record.id: msgspec.structs.replace(record, epoch="", measured_at=0) for record in records}


def test_later_features_are_left_out(measured: LiveWorld) -> None:
    """A run that measured pages stays within its window, whatever is appended to its features later."""
    with measuring_otherwise(measured):
        assert measured.replay(ruleset=measured.rules_file(20), name="grown") is Ending.DONE
        row = measured.row("grown")
        assert row.stop["features.grown"] == measured.log.end("features.grown")
        more = features_of_pages(3, 2, row.epoch, seed=4)
        measured.log.append([output("features.grown", page, feature_epoch=page.epoch) for page in more])
        assert measured.replay(name="grown") is Ending.DONE
        assert len(measured.outcome("grown")[0]) == 18
        asked = ReplayRequest(ruleset=measured.rules_file(5), begin="grown")
        other = plan(measured.log, Control(measured.log), measured.config, asked).run
        assert other.stop["features.grown"] == row.stop["features.grown"]


def without_epoch(outcome: tuple[list[Verdict], dict[str, SiteState]]) -> object:
    """An outcome without the epoch of its features."""
    verdicts, rows = outcome
    without = {site: msgspec.structs.replace(row, epoch="") for site, row in rows.items()}
    return [msgspec.structs.replace(verdict, epoch="") for verdict in verdicts], without


def test_a_run_is_measured_in_one_epoch(measured: LiveWorld) -> None:
    """A run that measures pages is not resumed under settings of another epoch."""
    with measuring_otherwise(measured):
        run, ruleset = measured.begin(ruleset=measured.rules_file(20), name="epochs")
    assert run.remeasures
    with pytest.raises(UsageError, match="in the feature epoch"):
        measured.resume(run, ruleset)
