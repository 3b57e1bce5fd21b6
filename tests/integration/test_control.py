"""Runs on the topic `control`, on every log: read by all, changed by one process at a time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stream.log.contract import CleanupPolicy, Log, Topic
from stream.log.errors import Fenced, StreamError, UnknownTopic
from stream.schema.control import Control, Scorers, exclusive, write_scorers
from stream.schema.runs import Alias, Cutover, Run, RunStatus
from stream.schema.topics import CONTROL
from tests.support.waiting import PATIENCE_S, wait_until
from tests.support.worlds import World, record

RUN = Run(
    name="tight",
    ruleset="strict",
    digest="d1",
    detector="chars-1",
    epoch="e1",
    start={"features": [3, 4]},
    stop={"features": [30, 40]},
    from_at=5,
    to_at=6,
    created_by="a@b",
    why="fewer lists",
)
ALIAS = Alias(run="tight", before="live", at=7, number=1)
CUTOVER = Cutover(number=1, at=7, by="a@b", from_run="live", to_run="tight", why="better", lag=2)


@pytest.fixture
def controlled(world: World) -> World:
    world.log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    return world


def put(log: Log, *rows: Run | Alias | Cutover) -> None:
    with exclusive(log) as writer:
        writer.put(*rows)


def test_a_log_without_control_has_no_runs(world: World) -> None:
    """Without the topic, no run is live, and a change raises UnknownTopic; once the topic is created, changes work."""
    control = Control(world.log)
    assert (control.live, control.runs, control.cutovers) == (None, {}, [])
    assert control.alias == Alias()
    with pytest.raises(UnknownTopic, match="control"), exclusive(world.log):
        pass
    world.again().create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    put(world.log, RUN)
    assert control.refresh()
    assert control.runs == {"tight": RUN}


def test_rows_are_read_back_as_they_were_put(controlled: World) -> None:
    """Another process reads runs, alias, cutovers and rulesets unchanged, and finds the live run by its alias."""
    with exclusive(controlled.log) as writer:
        writer.put(RUN, ALIAS, CUTOVER, rulesets=[("d1", "[rules]\nname = 'ü'\n")])
    control = Control(controlled.again())
    assert (control.runs, control.alias, control.cutovers) == ({"tight": RUN}, ALIAS, [CUTOVER])
    assert control.live == RUN
    assert control.ruleset_text(RUN) == "[rules]\nname = 'ü'\n"


def test_refresh_takes_in_what_another_process_wrote(controlled: World) -> None:
    """refresh() reads changed rows, removed runs and cutovers, each once; a retried change shows one cutover."""
    control = Control(controlled.log)
    assert not control.refresh()
    other = controlled.again()
    put(other, RUN)
    assert control.refresh()
    assert not control.refresh()
    done = Run(name="tight", ruleset="strict", digest="d1", detector="chars-1", epoch="e1", state=RunStatus.DONE)
    back = Cutover(number=2, at=9, by="c", from_run="tight", to_run="live", back=True)
    with exclusive(other) as writer:
        writer.put(done, CUTOVER)
        writer.put(CUTOVER, back)
    assert control.refresh()
    assert (control.runs, control.cutovers) == ({"tight": done}, [CUTOVER, back])
    with exclusive(other) as writer:
        writer.forget("tight")
    assert control.refresh()
    assert control.runs == {}


def test_compaction_keeps_what_counts(controlled: World) -> None:
    """After compaction the newest rows and every cutover exist, also for a late first reader."""
    world = controlled
    late = Control(world.log)
    again = Cutover(number=2, at=8, by="b", from_run="tight", to_run="live", back=True)
    put(world.log, RUN, ALIAS, CUTOVER)
    newer = Alias(run="live", before="tight", at=8, number=2)
    for number in range(5):
        put(world.log, Run(name="tight", ruleset="strict", digest="d1", detector="c", epoch="e", created_at=number))
    put(world.log, newer, again)
    world.log.expire(world.clock.now_ms)
    late.refresh()
    for control in (late, Control(world.again())):
        assert control.runs["tight"].created_at == 4
        assert control.alias == newer
        assert control.cutovers == [CUTOVER, again]


def test_of_two_at_once_one_wins(controlled: World) -> None:
    """The first is fenced once the second begins: its rows are never visible, its end disturbs nobody."""
    with contextlib.ExitStack() as second_ends:
        with exclusive(controlled.log) as first:
            second = second_ends.enter_context(exclusive(controlled.again()))
            with pytest.raises(Fenced, match="this change was not written"):
                first.put(RUN, Alias(run="mine"), rulesets=[("d", "x")])
            with pytest.raises(StreamError, match="start over"):
                first.put(Alias(run="mine"))
        second.put(ALIAS, CUTOVER)
    control = Control(controlled.again())
    assert (control.alias, control.runs, control.rulesets, control.cutovers) == (ALIAS, {}, {}, [CUTOVER])


def test_changes_of_many_at_once_are_made_one_after_the_other(controlled: World) -> None:
    """Three writers that read, add one, and retry when fenced write each number exactly once."""
    logs = [controlled.again() for _ in range(3)]
    turns = 4 if controlled.embedded else 2
    failures: list[Exception] = []

    def add_some(log: Log) -> None:
        made = 0
        try:
            while made < turns:
                try:
                    with exclusive(log) as writer:
                        number = len(Control(log).cutovers) + 1
                        writer.put(Cutover(number=number, at=0, by="t", from_run="a", to_run="b"))
                    made += 1
                except Fenced:
                    time.sleep(random.uniform(0, 0.5))
        except Exception as error:  # noqa: BLE001  # told by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=add_some, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == []
    rows = [m.key for m in controlled.log.read(CONTROL, 0) if m.key.startswith(b"cutover/")]
    assert rows == [b"cutover/%08d" % number for number in range(1, 3 * turns + 1)]


def test_a_row_of_others_on_the_topic_is_passed_over(controlled: World) -> None:
    """Unknown keys on the topic change nothing and stop nothing."""
    control = Control(controlled.log)
    controlled.log.append([record(CONTROL, 0, "note/1", b"\xff"), record(CONTROL, 0, "\x00", None)])
    assert not control.refresh()
    put(controlled.log, RUN)
    control.refresh()
    assert control.runs == {"tight": RUN}


_KILLED = """
import os, sys
from pathlib import Path
from stream.schema.control import exclusive
from stream.schema.runs import Alias
from tests.integration.test_control import open_at
with exclusive(open_at(*sys.argv[1:])) as writer:
    writer.put(Alias(run="before"))
    os.write(1, b"in\\n")
    sys.stdin.read()
"""


def open_at(kind: str, place: str, prefix: str) -> Log:
    if kind == "embedded":
        from stream.embedded.log import EmbeddedLog

        return EmbeddedLog(Path(place), lease_ms=600_000)
    from stream.kafka.log import KafkaLog

    return KafkaLog(place, prefix=prefix, state_folder=Path("unused"))


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_after_a_killed_writer_the_next_gets_in(kind: str, tmp_path: Path) -> None:
    """A killed writer of `control` does not block the next one, even while its lease is valid."""
    place, prefix = str(tmp_path / "log"), ""
    if kind == "kafka":
        from tests.support.kafka_broker import broker

        place, prefix = broker(), f"{tmp_path.name}."
    log = open_at(kind, place, prefix)
    log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, kind, place, prefix], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        os.kill(holder.pid, signal.SIGKILL)
    put(log, Alias(run="after", before="before"))
    control = Control(log)
    assert control.alias == Alias(run="after", before="before")
    wait_until(lambda: log.members("control") == [], "the writer to leave")
    log.close()


def test_what_score_runs_is_recorded_without_fencing_anybody(controlled: World) -> None:
    """The last row of SCORE's detectors counts; writing it does not fence a writer that changes runs."""
    control = Control(controlled.log)
    assert control.scorers is None
    with exclusive(controlled.log) as writer:
        for identities in (["a/1"], ["a/1", "b/2"]):
            write_scorers(controlled.again(), Scorers(detectors=identities, at=7))
        writer.put(RUN)
    assert control.refresh()
    assert control.scorers == Scorers(detectors=["a/1", "b/2"], at=7)
    assert control.runs == {"tight": RUN}
