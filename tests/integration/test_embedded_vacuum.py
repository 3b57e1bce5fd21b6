"""The embedded log: space that retention frees returns to the file system."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from stream.embedded.log import EmbeddedLog
from stream.embedded.vacuum import rewrite
from stream.log.contract import Output, Topic
from stream.log.errors import LogUnavailable
from tests.support.worlds import NOON, TestClock

DAY_MS = 86_400_000
CLOCK = TestClock()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log with 40 MB of records of ten days, of which retention keeps one."""
    CLOCK.now_ms = NOON
    with closing(EmbeddedLog(tmp_path / "log", clock=CLOCK, lock_timeout_s=0.2)) as made:
        made.create([Topic("a", 2, retention_ms=DAY_MS)])
        for _ in range(10):
            made.append([Output("a", p, b"k", os.urandom(2000)) for p in range(2) for _ in range(1000)])
            CLOCK.turn(DAY_MS)
        yield made


def _database(log: EmbeddedLog) -> Path:
    return log._folder / "log.sqlite"


def _size_after(log: EmbeddedLog) -> int:
    """Size of the database once the log is closed, and so its WAL is written back."""
    database = _database(log)
    log.close()
    return database.stat().st_size


def test_the_file_shrinks_while_others_write(log: EmbeddedLog) -> None:
    """After retention the file has lost most of its free pages; appends meanwhile succeed, and all kept is intact."""
    ended = threading.Event()
    appended = []

    def write() -> None:
        while not ended.is_set():
            value = os.urandom(100)
            log.append([Output("a", 0, b"k", value)])
            appended.append(value)

    writer = threading.Thread(target=write)
    writer.start()
    log.expire(CLOCK.now_ms)
    ended.set()
    writer.join()
    found = {message.value for message in log.read("a", 0)}
    assert found >= set(appended)
    with closing(sqlite3.connect(_database(log))) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert _size_after(log) < 12_000_000


def test_few_free_pages_stay_for_the_next_records(log: EmbeddedLog) -> None:
    """Where retention frees little, the file keeps its size: moving pages to and fro would only cost writes."""
    log.set_limits([Topic("a", 2, retention_ms=9 * DAY_MS + 1)])
    assert log.expire(CLOCK.now_ms) > 3_000_000
    assert _size_after(log) > 40_000_000


def test_a_rewrite_needs_room_and_waits_for_no_writer(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, or on a disk without room for a copy, it is refused and changes nothing."""
    with closing(sqlite3.connect(_database(log), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogUnavailable, match="stays locked"):
            rewrite(log._folder, 0.2)
        other.execute("ROLLBACK")
    assert len(list(log.read("a", 0))) == 10_000
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=50_000_000))
    with pytest.raises(LogUnavailable, match=r"needs 0\.1 GB, 0\.1 GB"):
        rewrite(log._folder, 0.2)
