"""Backups of an embedded log: taken while it runs, killed in the middle, and restored."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from stream.embedded.backup import back_up, restore
from stream.embedded.log import EmbeddedLog
from stream.embedded.segments import LogDamaged
from stream.log.contract import Erased, Topic
from stream.log.errors import LogUnavailable, SchemaTooNew
from stream.text.checksums import SUMS, UnfinishedFolder
from stream.text.user_errors import UsageError
from tests.support.logs.embedded_worker import LARGE_BYTES, segments, sql, worker_process
from tests.support.paths import ROOT
from tests.support.worlds import record, values

LARGE = "L" * 5000
FAR_MS = 2**43  # everything is older


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log with a small and three large records, each of these in a segment of its own."""
    with closing(EmbeddedLog(tmp_path / "log", segment_bytes=1)) as log:
        log.create([Topic("in", 1, retention_ms=1), Topic("out", 2), Topic("pairs", 2)])
        log.append([record("in", 0, "k", "small")])
        for _ in range(3):
            log.append([record("in", 0, "k", LARGE)])
    return tmp_path / "log"


def content(folder: Path) -> list[str]:
    with closing(EmbeddedLog(folder, read_only=True)) as log:
        return values(log.read("in", 0))


def killed(action: Callable[[Callable[[int], None]], object]) -> None:
    """Run the action in a process that is killed (-9) after its first copied bytes."""
    child = os.fork()
    if child == 0:
        try:
            action(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_restored_backup_equals_the_log(folder: Path, tmp_path: Path) -> None:
    """All records are there, the backup is private to its owner, and the log may be used on."""
    assert back_up(folder, tmp_path / "backup") == []
    assert {path.stat().st_mode & 0o077 for path in [tmp_path / "backup", *segments(tmp_path / "backup")]} == {0}
    restore(tmp_path / "backup", tmp_path / "new")
    assert content(tmp_path / "new") == content(folder) == ["small", LARGE, LARGE, LARGE]
    with closing(EmbeddedLog(tmp_path / "new")) as log:
        log.append([record("in", 0, "k", LARGE)])
        assert log.end("in") == [5]


@pytest.mark.slow
def test_a_backup_of_a_running_log_is_the_log_of_one_moment(folder: Path, tmp_path: Path) -> None:
    """While a process commits: counts in records, state and offsets agree in each copy, and no value is damaged."""
    with worker_process("count", folder) as process, closing(EmbeddedLog(folder)) as log:
        assert process.stdout is not None
        seen = 0
        for number in range(4):
            while process.stdout.readline() != f"count {(number + 1) * 10}\n":
                pass
            back_up(folder, tmp_path / f"backup-{number}", lambda _: time.sleep(0))
            restore(tmp_path / f"backup-{number}", tmp_path / f"new-{number}")
            with closing(EmbeddedLog(tmp_path / f"new-{number}", read_only=True)) as copy:
                small, large = (list(copy.read("out", partition)) for partition in range(2))
                count = int(dict(copy.scan_state("s", 0))[b"count"])
                assert (len(small), len(large), copy.committed("g", "in")) == (count, count, [count])
                assert all(len(message.value or b"") == LARGE_BYTES for message in large)
                for partition in range(2):
                    pairs = list(copy.read("pairs", partition))
                    assert len(pairs) % 2 == 0 and not any(message.damage for message in pairs)
                assert count > seen
                seen = count
        assert log.end("out")[0] > seen


def test_segments_that_retention_removes_meanwhile_are_not_needed(folder: Path, tmp_path: Path) -> None:
    """Retention takes all records once the first segment is copied: the backup is that of the log afterwards."""
    with closing(EmbeddedLog(folder)) as log:
        log.append([record("in", 0, "k", "late")])

        def expire(_: int) -> None:
            log.expire(FAR_MS, {"in": [4]})

        assert back_up(folder, tmp_path / "backup", expire) == []
    restore(tmp_path / "backup", tmp_path / "new")
    assert content(tmp_path / "new") == ["late"]
    assert segments(tmp_path / "new") == set()


def test_a_host_that_is_forgotten_during_a_backup_is_whole_in_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backup is the log before; the erasure waits for its end, or gives up, and then leaves nothing of the host."""
    with closing(EmbeddedLog(folder)) as log, ThreadPoolExecutor(1) as other:
        erased: list[Future[Erased]] = []

        def erase(_: int) -> None:
            if not erased:
                with monkeypatch.context() as impatient, pytest.raises(LogUnavailable, match="completes the removal"):
                    impatient.setattr("stream.embedded.erasing._LOCK_WAIT_S", 0.0)
                    log.erase(["k"])
                erased.append(other.submit(log.erase, ["k"]))

        assert back_up(folder, tmp_path / "backup", erase) == []
        assert erased[0].result().records == 4
    restore(tmp_path / "backup", tmp_path / "new")
    with closing(EmbeddedLog(tmp_path / "new", read_only=True)) as copy:
        assert [(m.value, m.damage) for m in copy.read("in", 0)] == [(v.encode(), "") for v in ("small", *[LARGE] * 3)]
    assert content(folder) == ["-"] * 4


def test_a_log_without_its_segments_is_named(folder: Path, tmp_path: Path) -> None:
    """If the folder of segments is missing, the message names the log, and no backup is left."""
    shutil.rmtree(folder / "segments")
    with pytest.raises(LogUnavailable, match=f"the log in {folder} cannot be used: .*{folder / 'segments'}"):
        back_up(folder, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


_ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from stream.embedded.backup import back_up
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
back_up(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_full_disk_of_the_backup_is_named(folder: Path, tmp_path: Path) -> None:
    """If the copy of the database cannot be written, the message names its folder, and not the log."""
    command = [sys.executable, "-c", _ON_A_FULL_DISK, str(folder), str(tmp_path / "backup")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stderr.splitlines()[-1]
    assert f"LogUnavailable: {tmp_path / 'backup' / 'log.sqlite'} cannot be written" in said and "full" in said
    assert not (tmp_path / "backup").exists()


def test_a_segment_that_the_log_lacks_is_named(folder: Path, tmp_path: Path) -> None:
    """A log that has lost a file can be backed up: the backup has lost it too."""
    lost = sorted(segments(folder))[0]
    lost.unlink()
    assert back_up(folder, tmp_path / "backup") == [lost.name]
    restore(tmp_path / "backup", tmp_path / "new")
    assert sorted(content(tmp_path / "new")) == sorted(["small", LARGE, LARGE, ""])


def test_a_killed_backup_is_refused_by_restore(folder: Path, tmp_path: Path) -> None:
    """After kill -9 the folder has no checksums; nothing is made of it, and it is named."""
    killed(lambda advance: back_up(folder, tmp_path / "backup", advance))
    assert segments(tmp_path / "backup")
    with pytest.raises(UnfinishedFolder, match=f"{tmp_path / 'backup'} has no {SUMS}: it is no finished backup"):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(UsageError, match=f"{tmp_path / 'backup'} is not empty"):
        back_up(folder, tmp_path / "backup")


def test_a_killed_restore_leaves_no_log(folder: Path, tmp_path: Path) -> None:
    """After kill -9 no command takes the folder for a log; once it is emptied, the restore succeeds."""
    back_up(folder, tmp_path / "backup")
    killed(lambda advance: restore(tmp_path / "backup", tmp_path / "new", advance))
    for read_only in (True, False):
        with pytest.raises(LogDamaged, match=r"log\.sqlite is missing or empty"):
            EmbeddedLog(tmp_path / "new", read_only=read_only)
    with pytest.raises(UsageError, match=f"{tmp_path / 'new'} is not empty"):
        restore(tmp_path / "backup", tmp_path / "new")


@pytest.fixture
def backup(folder: Path, tmp_path: Path) -> Iterator[Path]:
    back_up(folder, tmp_path / "backup")
    yield tmp_path / "backup"
    assert not (tmp_path / "new").exists()


def test_a_failed_copy_leaves_nothing(backup: Path, folder: Path, tmp_path: Path) -> None:
    """When the disk is full in the middle, the new folder is gone again."""

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for action, source in ((back_up, folder), (restore, backup)):
        with pytest.raises(LogUnavailable, match="free disk space"):
            action(source, tmp_path / "new", fail)
        assert not (tmp_path / "new").exists()


def test_a_backup_with_a_rotten_or_missing_file_is_refused(backup: Path, tmp_path: Path) -> None:
    """One flipped byte of a segment, or none of it: the file is named, and no log is made."""
    *_, bad = sorted(segments(backup))
    bad.write_bytes(bad.read_bytes()[:-1] + b"?")
    with pytest.raises(LogDamaged, match=f"{bad} differs from its checksum"):
        restore(backup, tmp_path / "new")
    bad.unlink()
    with pytest.raises(UnfinishedFolder, match=f"{bad} is missing"):
        restore(backup, tmp_path / "new")


@pytest.mark.parametrize(
    ("sums", "said"),
    [
        ("", "lists no log.sqlite"),
        ("rubbish", "is no checksum and path"),
        (f"{'0' * 64}  ../../etc/passwd\n", "is no checksum and path"),
        (f"{'0' * 64}  log\0.sqlite\n", "is no checksum and path"),
        (f"{'0' * 64}  segments/\udcff.segment\n", "is no checksum and path"),
        (f"{'0' * 64}  log.sqlite\n{'0' * 64}  console.token\n", "lists console.token, which is no file of a log"),
        (f"{'0' * 64}  log.sqlite\n{'0' * 64}  segments\n", "lists segments, which is no file of a log"),
    ],
)
def test_a_folder_that_is_no_backup_is_refused(backup: Path, tmp_path: Path, sums: str, said: str) -> None:
    """Checksums without a database, malformed ones, paths that leave the folder, and files that no log has."""
    (backup / SUMS).write_text(sums, errors="surrogateescape")
    with pytest.raises(UnfinishedFolder, match=said):
        restore(backup, tmp_path / "new")


def test_a_used_folder_and_a_backup_of_a_newer_farmwatch_are_refused(
    backup: Path, folder: Path, tmp_path: Path
) -> None:
    """Neither a log nor another file is overwritten; the schema is looked at before anything is copied."""
    before = content(folder)
    with pytest.raises(UsageError, match="is not empty: name an empty or a new folder"):
        restore(backup, folder)
    assert content(folder) == before
    sql(backup, "UPDATE meta SET value = 99 WHERE name = 'schema'")
    with pytest.raises(SchemaTooNew, match="schema 99"):
        restore(backup, tmp_path / "new")
