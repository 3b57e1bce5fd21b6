"""The embedded log with killed processes, full or damaged disks, and foreign locks."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream.embedded.backup import back_up
from stream.embedded.log import EmbeddedLog
from stream.embedded.reader import RecordReader, StoredRow
from stream.embedded.segments import LogDamaged
from stream.log.contract import At, CleanupPolicy, Message, Topic, wall_ms
from stream.log.errors import LogUnavailable, SchemaTooNew, StreamError
from tests.support.logs.embedded_worker import (
    LARGE_BYTES,
    LEASE_MS,
    damage_pages,
    lose_page,
    segments,
    sql,
    worker_process,
)
from tests.support.sizes import LONG
from tests.support.waiting import wait_until
from tests.support.worlds import record, settle, values

KILLS = 30 if LONG else 5
DAY_MS = 86_400_000
Start = Callable[..., "subprocess.Popen[str]"]
Open = Callable[..., EmbeddedLog]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(EmbeddedLog(tmp_path / "log")) as log:
        log.create([Topic("in", 1), Topic("out", 2), Topic("pairs", 2)])
    return tmp_path / "log"


@pytest.fixture
def again(folder: Path) -> Iterator[Callable[..., EmbeddedLog]]:
    """Opens the log as another process would; all are closed in the end."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(closing(EmbeddedLog(folder, **options)))


@pytest.fixture
def log(again: Open) -> EmbeddedLog:
    return again(lease_ms=LEASE_MS, lock_timeout_s=0.3)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a worker process; all are killed in the end."""
    with ExitStack() as stack:
        yield lambda role, *more: stack.enter_context(worker_process(role, folder, *more))


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.strip()


def kill_a_writer(start: Start) -> None:
    """Kill a process after some of its commits."""
    worker = start("count")
    assert "ready" in (said := lines(worker))
    assert len(list(itertools.islice(said, 20))) == 20
    worker.kill()
    worker.wait()


@pytest.mark.kill
def test_nothing_reported_is_lost_and_nothing_half_is_seen(log: EmbeddedLog, start: Start) -> None:
    """A process is killed often during commits: each reported record is there once, each commit whole or absent."""
    dice = random.Random(7)
    reported = {"count": 0, "x": 0, "y": 0}
    for _ in range(KILLS):
        worker = start("count")
        said = lines(worker)
        assert "ready" in said
        for line in itertools.islice(said, dice.randrange(3, 60)):
            note(line, reported)
        time.sleep(dice.uniform(0, 0.01))
        os.kill(worker.pid, signal.SIGKILL)
        for line in said:
            note(line, reported)
        worker.wait()
        _check_whole(log, reported)
    assert min(reported.values()) > 0


def note(line: str, reported: dict[str, int]) -> None:
    what, _, number = line.partition(" ")
    reported[what] = int(number)


def _check_whole(log: EmbeddedLog, reported: dict[str, int]) -> None:
    state = dict(log.scan_state("s", 0))
    count = int(state.get(b"count", b"0"))
    small, large = (values(log.read("out", p)) for p in range(2))
    assert small == [str(n) for n in range(count)]
    assert [value.rstrip(".") for value in large] == small
    assert all(len(value) == LARGE_BYTES for value in large)
    assert log.committed("g", "in") == [count or None]
    assert count >= reported["count"]
    for partition, name in enumerate("xy"):
        pairs = [int(value) for value in values(log.read("pairs", partition))]
        assert pairs == [n for n in range(len(pairs) // 2) for _ in range(2)]
        assert len(pairs) // 2 >= reported[name]


def test_segments_of_killed_processes_are_cleaned_up(folder: Path, log: EmbeddedLog, start: Start) -> None:
    """Values that a killed process never committed are removed after a day; records keep theirs."""
    for _ in range(3):
        kill_a_writer(start)
    kept = segments(folder)
    start("die").wait()
    (orphan,) = segments(folder) - kept
    assert orphan.read_bytes() == b"never committed"
    before = [len(value) for value in values(log.read("out", 1))]
    log.expire(wall_ms() + DAY_MS - 60_000)
    assert orphan in segments(folder)
    log.expire(wall_ms() + DAY_MS + 1)
    assert orphan not in segments(folder)
    assert [len(value) for value in values(log.read("out", 1))] == before


def test_segments_that_the_database_never_knew_stay(folder: Path, log: EmbeddedLog, again: Open) -> None:
    """After a restore of an older log.sqlite, newer segments stay for at least a day, also ones that grew since."""
    log.create([Topic("old", 1, retention_ms=1000)])
    log.append([record("old", 0, "k", "x" * 5000, timestamp_ms=0)])
    sql(folder, "VACUUM INTO ?", str(folder.parent / "backup"))
    (grown,) = segments(folder)
    log.append([record("old", 0, "k", "y" * 5000)])
    log.append([record("in", 0, "k", "z" * 5000)])
    log.close()
    made = segments(folder) - {grown}
    (folder / "log.sqlite").write_bytes((folder.parent / "backup").read_bytes())
    restored = again()
    restored.expire(wall_ms())
    assert list(restored.read("old", 0)) == []
    assert segments(folder) == made | {grown}
    restored.expire(wall_ms() + 1000 * DAY_MS)
    assert segments(folder) == made


@pytest.mark.parametrize("left", ["nothing", "an empty file", "no tables"])
def test_segments_without_their_database_are_refused(folder: Path, log: EmbeddedLog, left: str) -> None:
    """Segments without log.sqlite, or with one without tables, are LogDamaged, and nothing changes."""
    log.append([record("in", 0, "k", "x" * 5000)])
    log.close()
    database = folder / "log.sqlite"
    database.unlink()
    if left == "an empty file":
        database.touch()
    if left == "no tables":
        with sqlite3.connect(database) as made:
            made.execute("PRAGMA journal_mode = WAL")
        made.close()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for _ in range(2):
        with pytest.raises(LogDamaged, match=rf"{database} is missing or empty.*segments.*restore.*move the folder"):
            EmbeddedLog(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("left", ["a folder", "segments", "an empty database"])
def test_an_opening_that_was_killed_is_resumed(tmp_path: Path, left: str) -> None:
    """If a process died while creating the folder, `segments` or log.sqlite, the next one opens a new log."""
    if left != "a folder":
        (tmp_path / "segments").mkdir()
    if left == "an empty database":
        (tmp_path / "log.sqlite").touch()
    with closing(EmbeddedLog(tmp_path)) as log:
        assert log.topics() == {}


def test_a_new_folder_is_opened_by_many_at_once(tmp_path: Path) -> None:
    """When many processes open a new log, none takes the segments of another for those of a lost database."""
    for number in range(10):
        folder, start = tmp_path / str(number), threading.Barrier(6)

        def begin(folder: Path = folder, start: threading.Barrier = start) -> None:
            start.wait()
            with closing(EmbeddedLog(folder)) as log:
                log.create([Topic("in", 1)])
                log.append([record("in", 0, "k", "x" * 5000)])

        with ThreadPoolExecutor(6) as pool:
            for opened in [pool.submit(begin) for _ in range(6)]:
                opened.result()
        with closing(EmbeddedLog(folder)) as log:
            assert log.end("in") == [6]


@pytest.mark.parametrize("size", [200_000, 1000], ids=["segments", "database"])
def test_a_full_disk_is_reported_and_left_behind(folder: Path, log: EmbeddedLog, start: Start, size: int) -> None:
    """A full disk is LogUnavailable with place and remedy; no partial commit is visible; with room the log resumes."""
    worker = start("fill", size)
    said = list(lines(worker))
    full = [line for line in said if line.startswith("full")]
    assert len(full) == 3
    assert all(str(folder) in line and "free disk space" in line for line in full)
    (count,) = (int(line.split()[1]) for line in said if line.startswith("count"))
    assert f"visible {2 * count}" in said
    assert said[-1] == "done"
    found = [value.strip() for value in values(log.read("pairs", 0))]
    assert found == [str(n) for n in range(count) for _ in range(2)] + ["room", "room"]


def test_an_owned_partition_is_left_alone_until_its_owner_dies(log: EmbeddedLog, start: Start) -> None:
    """A second process gets a partition only after its owner is killed, even if the owner works beyond its lease."""
    holder = start("hold")
    assert "ready" in lines(holder)
    log.append([record("in", 0, "k", "v")])
    second = log.join("g", ["in"], member="second")
    deadline = time.monotonic() + 2.5 * LEASE_MS / 1000
    while time.monotonic() < deadline:
        assert second.poll(0.1, 10, 1 << 20) == []
        assert second.assignment() == {}
    holder.kill()
    settle([second], 1)
    assert values(second.poll(5, 10, 1 << 20)) == ["v"]
    second.close()


def test_processes_append_side_by_side(log: EmbeddedLog, start: Start) -> None:
    """Three processes append concurrently: no record is lost, offsets have no gap, and each writer's order holds."""
    workers = [start("many", n) for n in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    for partition, writers in ((0, (0, 2)), (1, (1,))):
        found = list(log.read("pairs", partition))
        assert [m.offset for m in found] == list(range(100 * len(writers)))
        for writer in writers:
            assert values(m for m in found if m.key == b"%d" % writer) == [str(n) for n in range(100)]


def test_a_locked_database_is_reported_and_waited_for(folder: Path, log: EmbeddedLog, again: Open) -> None:
    """While another process holds the database, it can be opened and read, and appends raise LogUnavailable."""
    with closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogUnavailable, match=rf"{folder}.*locked.*another process"):
            log.append([record("in", 0, "k", "x" * 5000)])
        assert again(lock_timeout_s=0.1).end("in") == [0]
    log.append([record("in", 0, "k", "x" * 5000)])
    assert log.end("in") == [1]


def flip(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[7000] ^= 1
    segment.write_bytes(data)


@pytest.mark.parametrize(
    ("change", "what"),
    [(flip, "checksum"), (lambda path: os.truncate(path, 8000), "3000 of 5000 bytes"), (Path.unlink, "missing")],
    ids=["flipped", "torn", "missing"],
)
def test_damaged_values_are_reported_and_the_others_read(
    folder: Path, log: EmbeddedLog, change: Callable[[Path], object], what: str
) -> None:
    """Changed or missing bytes are damage with file, byte and fault, for every way of reading; others are unchanged."""
    log.append([record("in", 0, "k", f"{n}".ljust(5000)) for n in range(3)])
    (segment,) = segments(folder)
    change(segment)
    bad = {"checksum": [1], "3000 of 5000 bytes": [1, 2], "missing": [0, 1, 2]}[what]
    member = log.join("g", ["in"], member="m")
    for read in (log.read("in", 0), log.read_all({At("in", 0): (0, 3)}), member.poll(1, 10, 1 << 20)):
        found = list(read)
        assert [m.offset for m in found] == [0, 1, 2]
        assert [m.offset for m in found if m.damage] == bad
        assert all((m.value or b"").strip() == (b"" if m.damage else b"%d" % m.offset) for m in found)
        first = found[bad[0]].damage
        assert f"segment {segment} is damaged at byte {5000 * bad[0]}: " in first
        assert what in first
    member.close()


def test_rows_that_retention_takes_meanwhile_are_no_damage(
    log: EmbeddedLog, again: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that is removed with its rows during a read is skipped without a report."""
    log.create([Topic("old", 1, retention_ms=1000)])
    log.append([record("old", 0, "k", "x" * 8000, timestamp_ms=0), record("old", 0, "k", "kept", timestamp_ms=9000)])
    log.close()
    other = again()
    rows = RecordReader.rows

    def then_expired(self: RecordReader, *args: Any) -> list[StoredRow]:
        found = rows(self, *args)
        other.expire(9000)
        return found

    monkeypatch.setattr(RecordReader, "rows", then_expired)
    assert [(m.offset, m.value, m.damage) for m in again().read("old", 0)] == [(1, b"kept", "")]


INLINE = [
    ("value", "x'76617564'", "the checksum of 4 bytes differs"),
    ("value", "x'76616c7565'", "5 of 4 bytes are there"),
    ("value", "NULL", "0 of 4 bytes are there"),
    ("key", "x'6c'", "the checksum of 4 bytes differs"),
    ("headers", "x'81a161a162'", "the checksum of 4 bytes differs"),
    ("headers", "NULL", "the checksum of 4 bytes differs"),
    ("headers", "x'c1'", "the checksum of 4 bytes differs"),
    ("timestamp_ms", "timestamp_ms + 1", "the checksum of 4 bytes differs"),
    ("timestamp_ms", "1.5", "its timestamp is no number"),
    ("key", "'k'", ""),
    ("size", "5", "4 of 5 bytes are there"),
    ("checksum", "7", "the checksum of 4 bytes differs"),
    ("checksum", "NULL", "the checksum of 4 bytes differs"),
    ("checksum", "x'ff'", "the checksum of 4 bytes differs"),
]


def alter(folder: Path, column: str, value: str, offset: int = 1) -> None:
    """Change a column of a record of partition 0 of `in`; `value` is SQL."""
    sql(folder, f"UPDATE records SET {column} = {value} WHERE id = (SELECT min(id) FROM records) + ?", offset)


@pytest.mark.parametrize(("column", "value", "fault"), INLINE)
def test_a_small_record_that_changed_is_reported(
    folder: Path, log: EmbeddedLog, column: str, value: str, fault: str
) -> None:
    """A change of key, headers or value in the database is damage that names the file and the row; others are read."""
    log.append([record("in", 0, "k", "valu", headers={"run": "r"}) for _ in range(3)])
    alter(folder, column, value)
    found = list(log.read("in", 0))
    assert [bool(m.damage) for m in found] == [False, bool(fault), False]
    log.append([record("in", 0, "k", None)])
    alter(folder, "key", "x'6c'", 3)
    assert [(m.value, bool(m.damage)) for m in log.read("in", 0, 3)] == [(b"", True)]  # the change removes nothing
    if not fault:  # the same bytes as text: no byte is lost
        assert (found[1].key, found[1].value) == (b"k", b"valu")
        return
    assert (found[1].offset, found[1].value) == (1, b"")
    assert f"{folder / 'log.sqlite'} is damaged in row " in found[1].damage
    assert fault in found[1].damage


@pytest.mark.parametrize("column", ["timestamp_ms", "segment"])
def test_a_row_that_sqlite_cannot_return_is_one_damaged_record(folder: Path, log: EmbeddedLog, column: str) -> None:
    """A row with text that is not UTF-8, which SQLite cannot return, is damage; the others are read."""
    log.append([record("in", 0, "k", "valu") for _ in range(4)])
    alter(folder, column, "CAST(x'ff' AS TEXT)")
    member = log.join("g", ["in"], member="m")
    for found in (list(log.read("in", 0)), member.poll(1, 10, 1 << 20)):
        assert [(m.offset, bool(m.damage)) for m in found] == [(0, False), (1, True), (2, False), (3, False)]
        assert "row" in found[1].damage
        assert "SQLite cannot read it" in found[1].damage
    assert log.offset_at("in", 0) == [0]
    assert log.offset_at("in", 2**60) == [4]
    member.close()


def test_a_value_in_lost_pages_is_one_damaged_record(folder: Path, log: EmbeddedLog, again: Open) -> None:
    """If overflow pages of a long value are overwritten, that record is damaged, and the others are read."""
    log.create([Topic("newest", 1, CleanupPolicy.COMPACT)])
    log.append([record("newest", 0, f"{n}", f"{n}" * 100_000) for n in range(3)])
    log.close()
    lose_page(folder, b"1")
    assert [(m.key, bool(m.damage)) for m in again().read("newest", 0)] == [(b"0", False), (b"", True), (b"2", False)]


def test_a_record_in_the_row_of_another_is_damaged(folder: Path, log: EmbeddedLog) -> None:
    """A record with a changed row id is damaged, because its checksum covers the offset."""
    log.append([record("in", 0, "k", "valu") for _ in range(3)])
    alter(folder, "id", "id + 4", 2)
    sql(folder, "UPDATE partitions SET next = 10")
    assert [(m.offset, bool(m.damage)) for m in log.read("in", 0)] == [(0, False), (1, False), (6, True)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("timestamp_ms", "'soon'"),
        ("timestamp_ms", "CAST(x'ff' AS TEXT)"),
        ("timestamp_ms", "-1"),
        ("size", "'big'"),
        ("size", "-(1 << 60)"),
        ("size", "1 << 60"),
        ("segment", "CAST(x'ff' AS TEXT)"),
        ("headers", "7"),
    ],
)
@pytest.mark.parametrize("cleanup", CleanupPolicy)
def test_a_damaged_row_does_not_stop_retention(
    folder: Path, log: EmbeddedLog, column: str, value: str, cleanup: CleanupPolicy
) -> None:
    """With damage in any column, expired records of this and other partitions are removed."""
    log.remove(["in", "out"])
    log.create([Topic("in", 1, cleanup, retention_ms=1000), Topic("out", 2, retention_ms=1000)])
    log.append([record("in", 0, "k", None if n == 1 else "valu", timestamp_ms=0) for n in range(3)])
    log.append([record("out", 0, "k", "valu", timestamp_ms=0)])
    alter(folder, column, value)
    log.expire(5000)
    assert log.beginning("in") == [2 if cleanup is CleanupPolicy.COMPACT else 3]
    assert log.beginning("out")[0] == 1
    ((size,),) = sql(folder, "SELECT bytes FROM partitions ORDER BY id LIMIT 1")
    assert abs(size) < 20


def test_a_partition_that_cannot_be_read_does_not_stop_retention(folder: Path, log: EmbeddedLog, again: Open) -> None:
    """Damage in one partition is logged; other partitions expire, and segments without records are removed."""
    log.create([Topic("newest", 1, CleanupPolicy.COMPACT), Topic("last", 1, retention_ms=1000)])
    log.append([record("newest", 0, "k", f"{n}" * 100_000) for n in range(3)])
    log.append([record("last", 0, "k", "x" * 5000, timestamp_ms=0)])
    log.close()
    (segment,) = segments(folder)
    lose_page(folder, b"0")
    opened = again()
    with capture_logs() as logged:
        opened.expire(wall_ms())
    (line,) = [line for line in logged if line["event"] == "retention_failed"]
    assert line["topic"] == "newest"
    assert "malformed" in line["error"]
    assert opened.beginning("last") == opened.end("last") == [1]
    assert segment not in segments(folder)


def test_a_damaged_or_newer_database_is_reported(folder: Path, tmp_path: Path) -> None:
    """A file that is not a database raises LogDamaged with its name, a newer one SchemaTooNew with both versions."""
    (tmp_path / "log.sqlite").write_bytes(b"this is no database" * 1000)
    with pytest.raises(LogDamaged, match=r"log\.sqlite is damaged"):
        EmbeddedLog(tmp_path)
    sql(folder, "UPDATE meta SET value = 99 WHERE name = 'schema'")
    with pytest.raises(SchemaTooNew, match=r"schema 99.*up to 2"):
        EmbeddedLog(folder)


@pytest.fixture
def damaged(folder: Path, start: Start) -> Path:
    """A log whose writer was killed, and three pages in the middle of its database overwritten."""
    with closing(EmbeddedLog(folder)) as log:
        log.append([record("in", 0, "k", "small" * 200) for _ in range(2000)])
    kill_a_writer(start)
    damage_pages(folder)
    return folder


def test_a_database_that_was_damaged_by_an_unclean_end_is_not_written_to(damaged: Path, tmp_path: Path) -> None:
    """Each opening for writing and each backup is refused, with the remedy; the log can still be read, to copy it."""
    for _ in range(2):
        with pytest.raises(LogDamaged, match="restore the folder from a backup"):
            EmbeddedLog(damaged)
    with closing(EmbeddedLog(damaged, read_only=True)) as log:
        assert log.end("in") == [2000]
        with pytest.raises(LogDamaged):
            log.require_sound()
    with pytest.raises(LogDamaged, match=r"log\.sqlite is damaged"):
        back_up(damaged, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_an_unclean_end_alone_is_no_damage(folder: Path, start: Start) -> None:
    """After a kill the log opens, by several at once."""
    kill_a_writer(start)
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: EmbeddedLog(folder), range(4)))
    for log in opened:
        assert log.end("out")[0] > 0
        log.close()


def test_nobody_else_may_look_in(folder: Path, log: EmbeddedLog) -> None:
    """Only the owner can open the folder, its database and its segments."""
    log.append([record("in", 0, "k", "x" * 5000)])
    (segment,) = segments(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "segments").stat().st_mode) == 0o700
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("log.sqlite*")} == {0o600}


def test_retention_unlinks_segments_that_nobody_needs(folder: Path, again: Open) -> None:
    """Expired segments are removed; those being written, or with a kept record, stay."""
    log = again(segment_bytes=15_000)
    log.create([Topic("old", 1, retention_ms=1000)])
    for age in range(6):
        log.append([record("old", 0, "k", "x" * 8000, timestamp_ms=age * 1000)])
    assert len(segments(folder)) == 3
    other = again()
    assert other.expire(4000) == 3 * 8001
    assert len(segments(folder)) == 2
    assert [m.timestamp_ms for m in log.read("old", 0)] == [3000, 4000, 5000]
    other.expire(9000)
    assert len(segments(folder)) == 1  # the log is still writing it
    log.append([record("old", 0, "k", "y" * 8000, timestamp_ms=9000)])
    log.close()
    other.expire(20_000)
    assert segments(folder) == set()


def test_the_files_of_a_small_limit_are_small(folder: Path, again: Open) -> None:
    """With the usual segments, a topic takes little more disk than its limit by size, also that of an open writer."""
    log, limit = again(), 16 << 20
    log.create([Topic("small", 2, retention_bytes=limit // 2)])
    for number in range(40):
        log.append([record("small", number % 2, "k", "x" * (1 << 20))])
        log.expire(wall_ms())
    assert sum(path.stat().st_size for path in segments(folder)) <= 1.25 * limit
    assert log.end("small") == [20, 20]
    assert all(begin <= 20 - 7 for begin in log.beginning("small"))


def test_no_offset_is_passed_over_while_retention_runs_beside(again: Open) -> None:
    """At any pace of retention, each offset is read as a record or reported as expired, once and in order."""
    log = again(segment_bytes=12_000)
    log.create([Topic("old", 1, retention_ms=1)])
    count = 400
    for n in range(0, count, 4):
        log.append([record("old", 0, "k", f"{m}".ljust(4000), timestamp_ms=1) for m in range(n, n + 4)])
    log.close()
    reading, expiring = again(), again()

    def expire() -> None:
        for stop in range(0, count, 2):
            expiring.expire(2**44, {"old": [stop]})

    thread = threading.Thread(target=expire)
    member = reading.join("g", ["old"], member="m")
    thread.start()
    found: list[Message] = []

    def followed() -> bool:
        following = found[-1].offset + 1 if found else 0
        if reading.beginning("old")[0] >= min(following, count - 2):  # close behind retention
            found.extend(member.poll(0.2, 5, 1 << 20))
        return bool(found) and found[-1].offset == count - 1

    wait_until(followed, "the last record")
    thread.join()
    member.close()
    following = 0
    for message in found:
        assert message.offset + 1 - (message.expired or 1) == following
        assert message.expired or message.value == f"{message.offset}".ljust(4000).encode()
        following = message.offset + 1


def test_a_forked_child_and_a_closed_log_refuse_every_use(log: EmbeddedLog) -> None:
    """In a forked child and after close, reading and writing raise StreamError; a second close is allowed."""
    uses: list[Callable[[], object]] = [lambda: log.end("in"), lambda: log.append([record("in", 0, "k")])]
    child = os.fork()
    if child == 0:
        refused = 0
        for use in uses:
            try:
                use()
            except StreamError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    log.close()
    log.close()
    for use in uses:
        with pytest.raises(StreamError, match="closed"):
            use()
