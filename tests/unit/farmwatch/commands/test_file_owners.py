"""Files that root makes in the log of another user: that user's processes must be able to use them."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.console.access import kept_token
from stream.embedded.backup import back_up, restore
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Topic
from stream.log.file_lock import file_lock
from tests.support.front_door import Runner
from tests.support.logs.embedded_worker import segments
from tests.support.worlds import record

OWNER = 54_321
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for others")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of another user, without a log."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, OWNER, OWNER)
    return home


def owners(folder: Path) -> set[int]:
    found = [folder, *folder.rglob("*")]
    assert len(found) > 3
    return {path.stat().st_uid for path in found}


def test_a_log_that_root_writes_stays_its_owners(home: Path) -> None:
    """The database with its WAL, segments, locks and the console's token belong to the owner of the folder above."""
    with closing(EmbeddedLog(home / "log")) as log:
        log.create([Topic("in", 1)])
        log.append([record("in", 0, "k", "L" * 5000)])
        with file_lock(home / "log" / "x.lock"):
            kept_token(home / "log")
        assert {"log.sqlite-wal", "log.sqlite-shm"} <= {path.name for path in (home / "log").iterdir()}
        assert segments(home / "log") and owners(home) == {OWNER}


def test_a_log_that_root_restores_is_its_owners(home: Path, tmp_path: Path) -> None:
    """So is every file of a restored log."""
    with closing(EmbeddedLog(tmp_path / "log")) as log:
        log.create([Topic("in", 1)])
        log.append([record("in", 0, "k", "L" * 5000)])
    back_up(tmp_path / "log", tmp_path / "backup")
    restore(tmp_path / "backup", home / "log")
    assert segments(home / "log") and owners(home) == {OWNER}


def test_commands_that_root_runs_leave_no_file_of_root(home: Path, farmwatch: Runner, tmp_path: Path) -> None:
    """Commands that read, and commands that write."""
    (tmp_path / "hits.csv").write_text("url\nhttps://a.example/x\n")
    log = ["--log", f"sqlite:{home / 'log'}"]
    assert farmwatch("log", "topics", "--create", *log).code == 0
    for command in (["status"], ["doctor"], ["search", "--hits", "hits.csv"], ["exclude", "b.example"], ["audit"]):
        farmwatch(*command, *log)
        assert owners(home) == {OWNER}, command
