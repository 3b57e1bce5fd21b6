"""`copy` as a command: killed, repeated, and refused."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from farmwatch.archive.copy import copy_log
from stream.log.contract import Topic
from stream.opening import open_log
from stream.schema.topics import HITS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.worlds import record


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
    for command in (["rate"], ["audit"], ["topics", "--create"], ["backup", "kept"], ["status"]):
        ran = farmwatch(*command, "--log", "sqlite:b")
        assert (ran.code, "unfinished copy: run the same" in ran.err) == (Exit.UNAVAILABLE, True)
    assert "unfinished copy: run the same" in farmwatch("doctor", "--log", "sqlite:b").out.replace("\n" + " " * 19, " ")
    ran = farmwatch("copy", "--from", "sqlite:a", "--to", "sqlite:b")
    assert (ran.code, ran.err.splitlines()[0]) == (Exit.OK, "copied 1 record and 0 entries of state")
    assert farmwatch("topics", "--log", "sqlite:b").code == Exit.OK


def test_a_folder_without_a_log_is_named(farmwatch: Runner, tmp_path: Path) -> None:
    """A folder without a log is named and stays unchanged; a copy of a log onto itself is refused."""
    ran = farmwatch("copy", "--from", "sqlite:a", "--to", "sqlite:b")
    assert (ran.code, ran.err) == (Exit.UNAVAILABLE, "farmwatch: sqlite:a: there is no log to copy\n")
    assert farmwatch("copy", "--from", "sqlite:a", "--to", "sqlite:a").code == Exit.USAGE
    assert list(tmp_path.iterdir()) == []
