"""A replay in its own process: it ends in order when the readers of its output leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream.embedded.log import EmbeddedLog
from stream.schema.runs import RunStatus
from tests.support.runs.replay_process import Command, flags_of
from tests.support.runs.replay_world import LiveWorld, live_world

pytestmark = pytest.mark.slow

_PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWorld]:
    """A log where live has judged some pages; each test has its own run."""
    folder = tmp_path_factory.mktemp("replay")
    log = EmbeddedLog(folder / "log")
    yield live_world(folder, 4, 10, log)
    log.close()


def test_a_follower_ends_when_its_reader_leaves(world: LiveWorld, tmp_path: Path) -> None:
    """With `2>&1 | head` it exits with 0, leaves its groups, and has committed its work."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    flags = ("--ruleset", world.rules, "--full-speed", *flags_of(world.config, ()))
    process = Command(pipe, "replay", *flags, "--name", "left", "--to", "follow")
    with pipe.open() as said:
        for line in said:
            if "caught up" in line:
                break
    assert process.code() == 0
    assert world.log.members("judge.left") == world.log.members("tally.left") == []
    assert world.row("left").state == RunStatus.RUNNING
    assert world.row("left").error == ""
    assert world.outcome("left")[0] != []
    assert sum(map(int, filter(None, world.log.committed("judge.left", "features")))) == sum(world.log.end("features"))


def test_a_bounded_run_is_done_without_a_reader(world: LiveWorld) -> None:
    """With `| head` the exit code reports the finished run, without a message about the pipe.

    The log of its stages is not among its messages, which name the address of the metrics once.
    """
    reader, unread = os.pipe()
    os.close(reader)
    flags = ("--ruleset", world.rules, "--full-speed", *flags_of(world.config, ()))
    command = [sys.executable, "-m", "farmwatch", "replay", *flags, "--name", "unread"]
    ran = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, text=True, timeout=_PATIENCE_S, check=True)
    os.close(unread)
    assert world.row("unread").state == RunStatus.DONE
    assert "BrokenPipe" not in ran.stderr and "event=" not in ran.stderr
    assert ran.stderr.count("http:") == 1
