"""An embedded log opened for reading only needs no write permission and leaves no trace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stream.embedded.log import EmbeddedLog
from stream.log.contract import At, Commit, StateChange, Topic
from stream.log.errors import LogUnavailable, StreamError
from tests.support.logs.embedded_worker import worker_process
from tests.support.worlds import drain, record, values

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A log with small and large records and state, in a folder that others may read."""
    place = Path(tempfile.mkdtemp(prefix="farmwatch-reading-"))
    place.chmod(0o755)
    (place / "log").mkdir(mode=0o755)
    log = EmbeddedLog(place / "log")
    log.create([Topic("in", 1), Topic("out", 2), Topic("pairs", 2)])
    log.append([record("in", 0, "k", "small"), record("in", 0, "k", "L" * 5000)])
    member = log.join("g", ["in"], member="m", store="s")
    drain(member, 2)
    member.commit(Commit(offsets={At("in", 0): 1}, state={0: [StateChange(b"k", b"v")]}))
    member.close()
    log.close()
    yield place / "log"
    shutil.rmtree(place)


def look(folder: Path) -> int:
    """Read all records; returns the number of records of `in`."""
    with closing(EmbeddedLog(folder, read_only=True)) as log:
        found = [len(value) for value in values(log.read("in", 0))]
        assert found[:2] == [5, 5000]
        assert (log.beginning("in"), log.end("in"), log.committed("g", "in")) == ([0], [len(found)], [1])
        assert (log.topics(), log.members("g")) == ({"in": 1, "out": 2, "pairs": 2}, [])
        assert list(log.scan_state("s", 0)) == [(b"k", b"v")]
        with log.read_state("s", 0) as state:
            assert state.get(b"k") == b"v"
        assert log.offset_at("in", 0) == [0]
        assert log.sizes(["in"])["in"].records == len(found)
        return len(found)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


def as_another_user(folder: Path, action: Callable[[], int], rights: int = 0o555) -> int:
    """The result of `action` in a process with these permissions on the folder; by default, it may only read."""
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(rights)
    child = os.fork()
    if child == 0:
        code = 255
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            assert not os.access(folder, os.W_OK)
            code = action()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    folder.chmod(0o755)
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return code


def test_reading_changes_no_file(folder: Path) -> None:
    """Reading a log without writers does not change its files or their times."""
    before = snapshot(folder)
    log = EmbeddedLog(folder, read_only=True)
    assert len(values(log.read("in", 0))) == 2
    assert snapshot(folder) == before
    log.close()
    assert look(folder) == 2
    assert snapshot(folder) == before


def test_a_log_is_read_without_the_right_to_write(folder: Path) -> None:
    """A user without write permission on the folder reads all of it; while another process writes, its commits too."""
    assert as_another_user(folder, lambda: look(folder)) == 2
    with closing(EmbeddedLog(folder)) as writer:
        writer.append([record("in", 0, "k", "third")])
        assert as_another_user(folder, lambda: look(folder)) == 3


def test_a_killed_log_is_read_without_the_right_to_write(folder: Path) -> None:
    """After kill -9 the commits in the WAL are read, and the database is not changed."""
    with worker_process("count", folder) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "count 5\n":
            pass
    before = (folder / "log.sqlite").read_bytes()

    def count() -> int:
        return EmbeddedLog(folder, read_only=True).end("out")[0]

    assert 5 <= as_another_user(folder, count) == count()
    assert (folder / "log.sqlite").read_bytes() == before


def test_an_open_reader_follows_writers_that_come_and_go(folder: Path) -> None:
    """A reader opened without a writer sees later records, for any order of writers' starts and ends."""
    log = EmbeddedLog(folder, read_only=True)
    for count in range(3, 8):
        assert log.end("in") == [count - 1]
        writer = EmbeddedLog(folder)
        writer.append([record("in", 0, "k", "x" * 9000)])
        if count % 2:
            assert len(list(log.read("in", 0))) == count
        writer.close()
        assert len(list(log.read("in", 0))) == count
    log.close()


def test_nothing_is_written_by_a_reader(folder: Path) -> None:
    """Every call that would write raises StreamError with the name of the log."""
    before = snapshot(folder)
    log = EmbeddedLog(folder, read_only=True)
    calls: list[Callable[[], object]] = [
        lambda: log.create([Topic("new", 1)]),
        lambda: log.append([record("in", 0, "k")]),
        lambda: log.join("g", ["in"], member="m"),
        lambda: log.reset("g", "in", [0]),
        lambda: log.expire(2**44),
        lambda: log.remove(["in"]),
    ]
    for call in calls:
        with pytest.raises(StreamError, match=f"the log in {folder} is open for reading only"):
            call()
    log.close()
    assert snapshot(folder) == before


def test_a_folder_that_may_not_be_read_is_reported(folder: Path) -> None:
    """A user without permissions on the folder gets LogUnavailable with the folder and the missing permission."""

    def refused() -> int:
        denied = f"{folder}.*Permission denied.*user read rights on the folder and on log"
        with pytest.raises(LogUnavailable, match=denied):
            look(folder)
        return 7

    assert as_another_user(folder, refused, rights=0) == 7


@pytest.mark.parametrize("left", ["nothing", "a folder", "an empty file"])
def test_where_there_is_no_log_none_is_made(tmp_path: Path, left: str) -> None:
    """Without a log, or with an incomplete one, opening raises StreamError and creates nothing."""
    folder = tmp_path / "log"
    if left != "nothing":
        (folder / "segments").mkdir(parents=True)
    if left == "an empty file":
        (folder / "log.sqlite").touch()
    before = set(tmp_path.rglob("*"))
    with pytest.raises(StreamError, match=f"there is no log in {folder}"):
        EmbeddedLog(folder, read_only=True)
    assert set(tmp_path.rglob("*")) == before
