"""What the embedded log does when processes are killed, disks are full or bad, and others hold what it wants."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stream.embedded_log import EmbeddedLog
from stream.errors import LogUnavailable, SchemaTooNew, StreamError
from stream.log import Message, Topic
from stream.segments import LogDamaged
from tests.stream.embedded_worker import LARGE_BYTES, LEASE_MS
from tests.stream.worlds import patiently, record, settle, values

ROOT = Path(__file__).resolve().parents[2]
KILLS = 10
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log with the topics that the workers use."""
    log = EmbeddedLog(tmp_path / "log")
    log.create([Topic("in", 1), Topic("out", 2), Topic("pairs", 2)])
    log.close()
    return tmp_path / "log"


@pytest.fixture
def log(folder: Path) -> Iterator[EmbeddedLog]:
    """That log, open."""
    opened = EmbeddedLog(folder, lease_ms=LEASE_MS, lock_timeout_s=0.3)
    yield opened
    opened.close()


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a worker process; all are killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def start(role: str, *more: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.stream.embedded_worker", role, str(folder), *map(str, more)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """What a worker says."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line.strip()


@pytest.mark.kill
def test_nothing_reported_is_lost_and_nothing_half_is_seen(folder: Path, start: Start) -> None:
    """A process is killed ten times amid its commits: what it reported is there once, and every commit whole or not."""
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
        _check_whole(folder, reported)
    assert min(reported.values()) > 0


def note(line: str, reported: dict[str, int]) -> None:
    """Remember what a worker reported."""
    what, _, number = line.partition(" ")
    reported[what] = int(number)


def _check_whole(folder: Path, reported: dict[str, int]) -> None:
    log = EmbeddedLog(folder)
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
    log.close()


def test_segments_of_killed_processes_are_cleaned_up(folder: Path, start: Start) -> None:
    """Values that a killed process wrote and never committed go with the next expire; records keep theirs."""
    for _ in range(3):
        worker = start("count")
        assert "ready" in (said := lines(worker))
        assert len(list(itertools.islice(said, 20))) == 20
        worker.kill()
        worker.wait()
    log = EmbeddedLog(folder)
    (folder / "segments" / "1-0123456789abcdef.segment").write_bytes(b"never committed")
    before = [len(value) for value in values(log.read("out", 1))]
    log.expire(0)
    assert not (folder / "segments" / "1-0123456789abcdef.segment").exists()
    assert [len(value) for value in values(log.read("out", 1))] == before
    log.close()


@pytest.mark.parametrize("size", [200_000, 1000], ids=["segments", "database"])
def test_a_full_disk_is_said_and_left_behind(folder: Path, start: Start, size: int) -> None:
    """A full disk: LogUnavailable says what, where and how to mend; nothing half is visible; with room it goes on."""
    worker = start("fill", size)
    said = list(lines(worker))
    full = [line for line in said if line.startswith("full")]
    assert len(full) == 3
    assert all(str(folder) in line and "free disk space" in line for line in full)
    (count,) = (int(line.split()[1]) for line in said if line.startswith("count"))
    assert f"visible {2 * count}" in said
    assert said[-1] == "done"
    log = EmbeddedLog(folder)
    found = [value.strip() for value in values(log.read("pairs", 0))]
    assert found == [str(n) for n in range(count) for _ in range(2)] + ["room", "room"]
    log.close()


def test_an_owned_partition_is_left_alone_until_its_owner_dies(log: EmbeddedLog, start: Start) -> None:
    """A second process gets nothing of a partition whose owner works longer than its lease, but soon after kill -9."""
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


def test_processes_append_side_by_side(folder: Path, start: Start) -> None:
    """Three processes append at once: no record is lost, offsets have no gap, and each writer's order holds."""
    workers = [start("many", n) for n in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    log = EmbeddedLog(folder)
    for partition, writers in ((0, (0, 2)), (1, (1,))):
        found = list(log.read("pairs", partition))
        assert [m.offset for m in found] == list(range(100 * len(writers)))
        for writer in writers:
            assert values(m for m in found if m.key == b"%d" % writer) == [str(n) for n in range(100)]
    log.close()


def test_a_locked_database_is_said_and_waited_for(folder: Path, log: EmbeddedLog) -> None:
    """While another process holds the database, appends raise LogUnavailable naming it; afterwards they work."""
    holder = sqlite3.connect(folder / "log.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LogUnavailable, match=rf"{folder}.*locked.*another process"):
        log.append([record("in", 0, "k", "x" * 5000)])
    holder.execute("ROLLBACK")
    holder.close()
    assert log.end("in") == [0]
    log.append([record("in", 0, "k", "x" * 5000)])
    assert log.end("in") == [1]


def damage(folder: Path, change: Callable[[Path], object]) -> Path:
    """Write three large records, and change the segment behind the log's back."""
    log = EmbeddedLog(folder)
    log.append([record("in", 0, "k", f"{n}".ljust(5000)) for n in range(3)])
    log.close()
    (segment,) = (folder / "segments").iterdir()
    change(segment)
    return segment


def flip(segment: Path) -> None:
    """Change one byte of the second value."""
    data = bytearray(segment.read_bytes())
    data[7000] ^= 1
    segment.write_bytes(data)


@pytest.mark.parametrize(
    ("change", "what"),
    [(flip, "checksum"), (lambda path: os.truncate(path, 8000), "3000 of 5000 bytes"), (Path.unlink, "missing")],
    ids=["flipped", "torn", "missing"],
)
def test_damaged_segments_are_detected(
    folder: Path, log: EmbeddedLog, change: Callable[[Path], object], what: str
) -> None:
    """Bytes that changed or are gone raise LogDamaged naming the file and the offset, for every way of reading."""
    segment = damage(folder, change)
    where = "0" if what == "missing" else "5000"
    with pytest.raises(LogDamaged, match=rf"{segment}.*byte {where}.*{what}|{segment}.*{what}.*byte {where}"):
        list(log.read("in", 0))
    member = log.join("g", ["in"], member="m")
    with pytest.raises(LogDamaged, match=str(segment)):
        member.poll(1, 10, 1 << 20)
    member.close()


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    """A file that is no database raises LogDamaged naming it."""
    (tmp_path / "log.sqlite").write_bytes(b"this is no database" * 1000)
    with pytest.raises(LogDamaged, match=r"log\.sqlite is damaged"):
        EmbeddedLog(tmp_path)


def test_a_newer_database_is_refused(folder: Path) -> None:
    """A folder of a newer farmwatch raises SchemaTooNew naming both versions."""
    database = sqlite3.connect(folder / "log.sqlite")
    database.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    database.commit()
    database.close()
    with pytest.raises(SchemaTooNew, match=r"schema 99.*up to 1"):
        EmbeddedLog(folder)


def test_nobody_else_may_look_in(folder: Path, log: EmbeddedLog) -> None:
    """The folder, its database and its segments are open to the owner alone."""
    log.append([record("in", 0, "k", "x" * 5000)])
    (segment,) = (folder / "segments").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "segments").stat().st_mode) == 0o700
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("log.sqlite*")} == {0o600}


def test_retention_unlinks_segments_that_nobody_needs(folder: Path) -> None:
    """Expired segments go, those that are written or still hold a kept record stay."""
    log = EmbeddedLog(folder, segment_bytes=15_000)
    log.create([Topic("old", 1, retention_ms=1000)])
    for age in range(6):
        log.append([record("old", 0, "k", "x" * 8000, timestamp_ms=age * 1000)])
    segments = folder / "segments"
    assert len(list(segments.iterdir())) == 3
    other = EmbeddedLog(folder)
    assert other.expire(4000) == 3 * 8001
    assert len(list(segments.iterdir())) == 2
    assert [m.timestamp_ms for m in log.read("old", 0)] == [3000, 4000, 5000]
    other.expire(9000)
    assert len(list(segments.iterdir())) == 1  # the log still writes it
    log.append([record("old", 0, "k", "y" * 8000, timestamp_ms=9000)])
    log.close()
    other.expire(20_000)
    assert list(segments.iterdir()) == []
    other.close()


def test_no_offset_is_passed_over_while_retention_runs_beside(tmp_path: Path) -> None:
    """Each offset comes as a record or is told as expired, once and in order, whatever goes between two looks."""
    log = EmbeddedLog(tmp_path / "log", segment_bytes=12_000)
    log.create([Topic("old", 1, retention_ms=1)])
    count = 400
    for n in range(0, count, 4):
        log.append([record("old", 0, "k", f"{m}".ljust(4000), timestamp_ms=1) for m in range(n, n + 4)])
    log.close()
    reading, expiring = EmbeddedLog(tmp_path / "log"), EmbeddedLog(tmp_path / "log")

    def expire() -> None:
        for stop in range(0, count, 2):
            expiring.expire(2**44, {"old": [stop]})

    thread = threading.Thread(target=expire)
    member = reading.join("g", ["old"], member="m")
    thread.start()
    found: list[Message] = []

    def followed() -> bool:
        following = found[-1].offset + 1 if found else 0
        if reading.beginning("old")[0] >= min(following, count - 2):  # close on retention's heels
            found.extend(member.poll(0.2, 5, 1 << 20))
        return bool(found) and found[-1].offset == count - 1

    patiently(followed, "the last record")
    thread.join()
    member.close()
    following = 0
    for message in found:
        assert message.offset + 1 - (message.expired or 1) == following
        assert message.expired or message.value == f"{message.offset}".ljust(4000).encode()
        following = message.offset + 1
    for opened in (reading, expiring):
        opened.close()


def test_a_forked_child_must_open_its_own(log: EmbeddedLog) -> None:
    """Using a log that the parent opened raises StreamError in the child, for reading and for writing."""
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: log.end("in"), lambda: log.append([record("in", 0, "k")])):
            try:
                use()
            except StreamError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_a_closed_log_says_so(folder: Path) -> None:
    """After close every use raises StreamError; closing again is allowed."""
    log = EmbeddedLog(folder)
    log.close()
    log.close()
    for use in (lambda: log.end("in"), lambda: log.append([record("in", 0, "k")])):
        with pytest.raises(StreamError, match="closed"):
            use()


def test_leases_are_renewed_while_the_caller_works(folder: Path) -> None:
    """The heartbeat renews a lease without polls, and ends with the log."""
    now = [0]
    log = EmbeddedLog(folder, lease_ms=300, clock=lambda: now[0])
    member = log.join("g", ["in"], member="m")
    member.poll(0, 1, 1)
    database = sqlite3.connect(folder / "log.sqlite")
    now[0] = 1000

    def renewed() -> bool:
        time.sleep(0.01)
        return bool(database.execute("SELECT expires_at FROM members").fetchone() == (1300,))

    patiently(renewed, "a heartbeat")
    member.close()
    log.close()
    database.close()
