"""The end of a replay: its row, also with concurrent changes of `control`; its errors; refused begins."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

from farmwatch.commands.runs.replay import _report_ending
from replay.engine.lifecycle import finish, record_error
from replay.engine.runner import Ending
from replay.engine.summary import summary_of
from replay.rows.gaps import count_dead_letters
from replay.rows.site_table import read_rows
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Log, Output
from stream.memory.log import MemoryLog
from stream.processing.dead_letters import DeadLetter, dead_letter
from stream.schema.control import Control
from stream.schema.records import Page, SiteState
from stream.schema.runs import Run, RunStatus
from stream.schema.topics import DEAD_LETTERS, FEATURES, PAGES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.runs.replay_world import (
    DETECTOR,
    LiveWorld,
    count_writers,
    features_of_pages,
    live_world,
    output,
    put_rows,
)

_HOSTILE = "no space\nleft \x1b[31mon \u202edevice"
_SAID = "OSError: no space left  [31mon  device"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LiveWorld]:
    """An embedded log where live has judged some pages, and a ruleset file."""
    with closing(EmbeddedLog(tmp_path / "log", lease_ms=500)) as log:
        made = live_world(tmp_path, 3, 8, log)
        page = Page(id="f0", site="s0.example", page_id="p0", url="https://s0.example/0", fetched_at=1)
        made.log.append([output(PAGES, page)])
        yield made


def _through(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run `mine`, judged and tallied, whose row is not marked as done yet."""
    run, ruleset = world.begin(ruleset=world.rules, name="mine")
    with monkeypatch.context() as patched:
        patched.setattr("replay.engine.runner.finish", lambda *_: msgspec.structs.replace(run, state=RunStatus.DONE))
        assert world.resume(run, ruleset) == Ending.DONE
    assert world.row("mine").state == RunStatus.RUNNING


def _while_counting(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Call a function each time the rows of a run are counted."""

    def counted(log: Log, topic: str) -> list[SiteState]:
        happen()
        return read_rows(log, topic)

    monkeypatch.setattr("replay.engine.lifecycle.read_rows", counted)


def test_counting_rows_does_not_block_control(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow count does not block other changes of `control`, and such changes do not end the process."""
    _through(world, monkeypatch)

    def change_another() -> None:
        put_rows(world.log, world.row("live"))

    _while_counting(monkeypatch, change_another)
    writers = count_writers(monkeypatch)
    done = finish(world.log, "mine", lambda: 9_000)
    assert (done.state, done.ended_at) == (RunStatus.DONE, 9_000)
    assert done == world.row("mine")
    articles = sum(row.articles for row in world.outcome("mine")[1].values())
    assert done.articles == articles > 0
    assert len(writers) == 1, "nobody has undone it"


def test_processes_of_a_run_that_end_together_all_end(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have counted when the first one writes: one row says `done`, and all return it."""
    _through(world, monkeypatch)
    together = threading.Barrier(3, timeout=30)
    _while_counting(monkeypatch, together.wait)
    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(lambda _: finish(world.log, "mine"), range(3)))
    assert ends == [world.row("mine")] * 3
    assert world.row("mine").state == RunStatus.DONE


def test_a_run_extended_during_the_count_is_not_done(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process extends it while its rows are counted: the counts of the earlier end are not written.

    The next attempt finds unprocessed records.
    """
    _through(world, monkeypatch)
    more = features_of_pages(4, 12, world.epoch)[24:]

    def go_on() -> None:
        world.feed(more)
        world.begin(name="mine", end="now")

    with monkeypatch.context() as patched:
        _while_counting(patched, go_on)
        left = finish(world.log, "mine")
    assert (left.state, left.articles) == (RunStatus.RUNNING, None)
    assert left == finish(world.log, "mine") == world.row("mine")
    run, ruleset = world.begin(name="mine")
    assert world.resume(run, ruleset) == Ending.DONE


def test_a_run_that_is_done_has_no_error(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of its processes failed and another one finished it: its row has no error."""
    _through(world, monkeypatch)
    record_error(world.log, "mine", OSError("disk full"))
    assert world.row("mine").error == "OSError: disk full"
    done = finish(world.log, "mine")
    assert (done.state, done.error, world.row("mine").error) == (RunStatus.DONE, "", "")


def _replay(farmwatch: Runner, world: LiveWorld, *arguments: str) -> tuple[int, str]:
    ran = farmwatch("replay", "--full-speed", "--log", world.url, *arguments)
    return ran.code, ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--set", "measure.extractor=resiliparse"], Exit.UNAVAILABLE, "needs a package that is not installed"),
        (["--set", "measure.extractor=nope"], Exit.USAGE, "measure.extractor: expected trafilatura, blocks"),
        (
            ["--set", "measure.extractor=blocks", "--set", "measure.extractor_model=none/0123456789abcdef.json"],
            Exit.USAGE,
            "none/0123456789abcdef.json: the model cannot be read: No such file",
        ),
        (["--detector", "binoculars/a+b@2/bf16/512/none"], Exit.UNAVAILABLE, "cannot judge sites"),
        (["--detector", "nope"], Exit.USAGE, "nope"),
        (["--set", "tally.method=deciles"], Exit.UNAVAILABLE, "not for fake/1"),
        (["--metrics-port", "TAKEN"], Exit.UNAVAILABLE, "TAKEN"),
    ],
)
def test_missing_requirements_are_found_before_the_begin(
    world: LiveWorld, farmwatch: Runner, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: Exit, said: str
) -> None:
    """A missing extractor, model, detector, site method or port: one line, and no row of a run."""
    monkeypatch.setitem(sys.modules, "resiliparse", None)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        given = [argument.replace("TAKEN", port) for argument in arguments]
        ran = _replay(farmwatch, world, "--ruleset", world.rules, "--name", "mine", *given)
    assert (ran[0], said.replace("TAKEN", port) in ran[1]) == (code, True), ran
    assert set(Control(world.log).runs) == {"live"}
    assert "verdicts.mine" not in world.log.topics()


def test_the_last_error_is_shown_until_the_resume(
    world: LiveWorld, farmwatch: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`runs`, `runs show`, doctor and the resuming replay show it in one line without control characters."""
    log = ("--log", world.url)

    def fail(*_: object, **__: object) -> None:
        raise OSError(_HOSTILE)

    with monkeypatch.context() as patched:
        patched.setattr("replay.engine.runner.Replay.stage_of", fail)
        with pytest.raises(OSError, match="no space"):
            world.replay(ruleset=world.rules, name="mine")
    assert (world.row("mine").state, world.row("mine").error) == (RunStatus.RUNNING, _SAID)
    listed = farmwatch("runs", *log).err
    assert f"mine is stopped by an error ({_SAID}): `farmwatch replay --name mine` resumes it" in listed
    assert f"error: {_SAID}" in farmwatch("runs", "show", "mine", *log).out
    assert farmwatch("runs", "show", "mine", "--json", *log).json["error"] == _SAID
    assert f"mine is stopped, by an error: {_SAID} -> `farmwatch replay --name mine`" in farmwatch("doctor", *log).out
    code, said = _replay(farmwatch, world, "--name", "mine")
    assert (code, f"the last process of this run ended with {_SAID}" in said) == (Exit.OK, True)
    assert (world.row("mine").state, world.row("mine").error) == (RunStatus.DONE, "")
    assert "OK    runs         1 run beside the live one, and none is stopped" in farmwatch("doctor", *log).out


def test_a_run_keeps_its_site_method_when_it_is_resumed(world: LiveWorld, farmwatch: Runner) -> None:
    """If [tally] changed since its begin, a warning says so, and all rows have the original method."""
    begun = ["--set", "tally.sprt={p0=0.1, p1=0.6, min_articles=2}"]
    rules = ["--ruleset", world.rules, "--name", "mine"]
    assert _replay(farmwatch, world, *rules, *begun)[0] == Exit.OK
    before = {row.method_digest for row in world.outcome("mine")[1].values()}
    world.score()
    run = world.row("mine")
    put_rows(
        world.log, msgspec.structs.replace(run, site_method=run.site_method.replace('"min_pages":1,', ""))
    )  # as an older version would have written it
    code, said = _replay(farmwatch, world, "--name", "mine", *begun)
    assert (code, "[tally]" in said) == (Exit.OK, False)
    code, said = _replay(farmwatch, world, "--name", "mine", "--set", "tally.sprt={p0=0.3, p1=0.6}")
    assert (code, "warning: [tally] gives the site method sprt " in said) == (Exit.OK, True)
    assert {row.method_digest for row in world.outcome("mine")[1].values()} == before
    assert len(before) == 1
    assert f"site_method: sprt {before.pop()}" in farmwatch("runs", "show", "mine", "--log", world.url).out


def test_a_dead_letter_counts_for_its_run(world: LiveWorld, farmwatch: Runner) -> None:
    """It names the run, and the replay and `runs show` count it; the live run has none."""
    headers = {"feature_epoch": world.epoch, "run": "live"}
    world.log.append([Output(FEATURES, 0, b"s0.example", b"no record", headers)])
    said = _replay(farmwatch, world, "--ruleset", world.rules, "--name", "mine")
    assert (said[0], "warning: 1 record failed and went to the dead-letter topic" in said[1]) == (Exit.OK, True)
    (letter,) = [DeadLetter.read(message) for message in world.log.read(DEAD_LETTERS, 0)]
    assert (letter.run, letter.stage, letter.topic) == ("mine", "judge", FEATURES)
    log = ("--log", world.url)
    assert "dead letters: 1 record\n" in farmwatch("runs", "show", "mine", *log).out
    assert farmwatch("runs", "show", "live", "--json", *log).json["dead_letters"] == 0


def test_dead_letters_from_before_a_run_are_not_read_for_it() -> None:
    """Dead letters from hours before its begin do not count, whatever they contain."""
    now_ms = [0]
    log = MemoryLog(clock=lambda: now_ms[0])
    log.create(all_topics(2, "e"))
    log.append([Output(DEAD_LETTERS, partition, b"k", b"v") for partition in (0, 1)])  # without a header
    now_ms[0] = 20_000_000
    record = next(log.read(DEAD_LETTERS, 0))
    log.append([dead_letter(record, stage, ValueError("x"), 1, "mine") for stage in ("judge", "tally", "score")])
    run = Run(name="mine", ruleset="r", digest="d", detector="x/1", epoch="e", created_at=now_ms[0] + 1000)
    assert count_dead_letters(log, run) == 2
    assert count_dead_letters(log, msgspec.structs.replace(run, name="other")) == 0


@pytest.mark.parametrize("ending", [Ending.STOPPED, Ending.CANCELLED, Ending.LIVE])
def test_a_stopped_run_reads_nothing_for_its_result(
    world: LiveWorld, monkeypatch: pytest.MonkeyPatch, ending: Ending
) -> None:
    """It reads neither rows nor dead letters, except for the JSON object, which contains them."""
    run, _ = world.begin(name="mine", detector=DETECTOR)
    read: list[str] = []

    def watched(name: str, work: Callable[..., object], *given: object) -> object:
        read.append(name)
        return work(*given)

    for name, work in (("count_dead_letters", count_dead_letters), ("summary_of", summary_of)):
        monkeypatch.setattr(f"farmwatch.commands.runs.replay.{name}", partial(watched, name, work))
    assert _report_ending(world.log, world.config, run, ending, [], False)[1] == []
    assert read == []
    (line,) = _report_ending(world.log, world.config, run, ending, [], True)[1]
    assert json.loads(line)["run"] == "mine"
    assert read == ["count_dead_letters", "summary_of"]
