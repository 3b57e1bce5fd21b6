"""backup, restore and copy of a log."""

from __future__ import annotations

import os
import signal
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.archive.copy import copy_log
from stream.log.contract import Topic
from stream.opening import open_log
from stream.schema.topics import HITS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.logs.tallied_log import tallied
from tests.support.runs.cutover_world import cutover_world
from tests.support.worlds import record


@pytest.mark.slow
def test_the_restored_log_has_the_same_tables_and_a_clean_audit(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the log is open for writing: `sites`, `rate` and `audit` of the restored log print the same."""
    with cutover_world("embedded", tmp_path, monkeypatch) as world:
        tallied(world)
        url = world.config.log.url
        assert farmwatch("log", "backup", "kept", "--log", url).code == Exit.OK
        ran = farmwatch("log", "restore", "kept", "--log", "sqlite:new")
        assert (ran.code, ran.err) == (
            Exit.OK,
            "restored into sqlite:new; `farmwatch doctor audit --log sqlite:new` proves it\n",
        )
        for command in (["sites"], ["rate", "--json"], ["log", "topics"], ["doctor", "audit"]):
            expected = farmwatch(*command, "--log", url)
            found = farmwatch(*command, "--log", "sqlite:new")
            assert (found.code, found.out, found.err) == (expected.code, expected.out, expected.err), command
        assert farmwatch("doctor", "audit", "--log", "sqlite:new").err.endswith("audit: clean\n")


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_log_on_kafka_is_refused_with_the_tools_for_it(farmwatch: Runner, tmp_path: Path, command: str) -> None:
    """Nothing is asked of the broker; replication, mirroring and `copy` are named."""
    (tmp_path / "folder").mkdir()
    ran = farmwatch("log", command, "folder", "--log", "kafka:127.0.0.1:9")
    assert (ran.code, "replication and mirroring; `farmwatch log copy`" in ran.err) == (Exit.USAGE, True)


def test_a_missing_log_or_backup_is_named(farmwatch: Runner, tmp_path: Path) -> None:
    """No empty backup is made of a wrong folder."""
    ran = farmwatch("log", "backup", "kept", "--log", "sqlite:nowhere")
    assert (ran.code, "sqlite:nowhere: there is no log to back up" in ran.err) == (Exit.UNAVAILABLE, True)
    ran = farmwatch("log", "restore", "kept", "--log", "sqlite:new")
    assert (ran.code, ran.err) == (Exit.USAGE, "farmwatch: kept: no such folder\n")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_copy_is_refused_by_every_command(farmwatch: Runner, tmp_path: Path) -> None:
    """After kill -9 of the command: commands name the unfinished copy; the same command completes it."""
    source = open_log("sqlite:a")
    source.create([Topic(HITS, PARTITIONS)])
    source.append([record(HITS, 0, "k", "v")])
    source.close()
    child = os.fork()
    if child == 0:
        copy_log(
            open_log("sqlite:a", read_only=True), open_log("sqlite:b"), lambda _: os.kill(os.getpid(), signal.SIGKILL)
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    for command in (
        ["rate"],
        ["doctor", "audit"],
        ["log", "topics", "--create"],
        ["log", "backup", "kept"],
        ["status"],
    ):
        ran = farmwatch(*command, "--log", "sqlite:b")
        assert (ran.code, "unfinished copy: run the same" in ran.err) == (Exit.UNAVAILABLE, True)
    assert "unfinished copy: run the same" in farmwatch("doctor", "--log", "sqlite:b").out.replace("\n" + " " * 19, " ")
    ran = farmwatch("log", "copy", "--from", "sqlite:a", "--to", "sqlite:b")
    assert (ran.code, ran.err.splitlines()[0]) == (Exit.OK, "copied 1 record and 0 entries of state")
    assert farmwatch("log", "topics", "--log", "sqlite:b").code == Exit.OK


def test_a_folder_without_a_log_is_named(farmwatch: Runner, tmp_path: Path) -> None:
    """A folder without a log is named and stays unchanged; a copy of a log onto itself is refused."""
    ran = farmwatch("log", "copy", "--from", "sqlite:a", "--to", "sqlite:b")
    assert (ran.code, ran.err) == (Exit.UNAVAILABLE, "farmwatch: sqlite:a: there is no log to copy\n")
    assert farmwatch("log", "copy", "--from", "sqlite:a", "--to", "sqlite:a").code == Exit.USAGE
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_copied_under_another_prefix(farmwatch: Runner) -> None:
    """--to-prefix is that of the target, log.prefix that of the source: a message names where no log was found."""
    with closing(open_log("sqlite:a")) as source:
        source.create([Topic(HITS, PARTITIONS)])
    ran = farmwatch("log", "copy", "--from", "sqlite:a", "--to", "sqlite:b", "--to-prefix", "demo.")
    assert ran.code == Exit.OK
    assert "`farmwatch doctor audit --log sqlite:b --set log.prefix=demo.` proves the copy" in ran.err
    with closing(open_log("sqlite:b", prefix="demo.")) as target:
        assert set(target.topics()) == {HITS}
    back = ["log", "copy", "--from", "sqlite:b", "--to", "sqlite:c"]
    said = "farmwatch: sqlite:b, log.prefix '': there is no log to copy; that of the target is --to-prefix\n"
    assert farmwatch(*back).err == said
    assert farmwatch(*back, "--set", "log.prefix=demo.").code == Exit.OK


@pytest.mark.kafka
def test_a_log_is_copied_to_another_prefix_of_its_broker(farmwatch: Runner) -> None:
    """A used broker takes an embedded log under a prefix, and that copy again under another one."""
    from tests.support.kafka_broker import broker

    with closing(open_log("sqlite:a")) as source:
        source.create([Topic(HITS, PARTITIONS)])
    place, one, other = f"kafka:{broker()}", f"p{uuid.uuid4().hex[:8]}.", f"p{uuid.uuid4().hex[:8]}."
    first = ["log", "copy", "--from", "sqlite:a", "--to", place, "--to-prefix", one]
    assert farmwatch(*first).code == Exit.OK
    assert "such as --to-prefix copy." in farmwatch(*first).err  # it is used
    again = ["log", "copy", "--from", place, "--to", place, "--set", f"log.prefix={one}"]
    assert "on one broker give --to-prefix" in farmwatch(*again).err
    assert farmwatch(*again, "--to-prefix", other).code == Exit.OK
