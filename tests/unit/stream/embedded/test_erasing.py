"""Erasing removes the bytes from segments and database, also of already removed records, and no others."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from stream.embedded.log import EmbeddedLog
from stream.log.contract import At, CleanupPolicy, Commit, Message, Output, StateChange, Topic, partition_of
from stream.log.errors import LogUnavailable
from tests.support.worlds import TestClock

HOST, OTHER = "gone.example", "kept.example"
_DAY_MS = 86_400_000


def output(host: str, topic: str, size: int, mark: str = "") -> Output:
    value = f"{host} {mark} ".encode() + os.urandom(size).hex().encode()
    return Output(topic, partition_of(host, 2), host.encode(), value)


def files_with(folder: Path, word: bytes) -> list[str]:
    """The files whose bytes contain a word."""
    return [path.name for path in sorted(folder.rglob("*")) if path.is_file() and word in path.read_bytes()]


def make(folder: Path, clock: TestClock) -> EmbeddedLog:
    log = EmbeddedLog(folder, clock=clock)
    log.create([Topic("in", 2, retention_ms=_DAY_MS), Topic("rows", 2, CleanupPolicy.COMPACT)])
    log.create([Topic("state.s", 2, CleanupPolicy.COMPACT)])
    return log


def test_bytes_of_removed_records_go_too(tmp_path: Path) -> None:
    """Bytes that retention, compaction and state changes left in segments, free pages and the WAL are overwritten."""
    clock = TestClock()
    with closing(make(tmp_path, clock)) as log:
        for size in (20, 5000):
            log.append([output(HOST, "in", size, "first"), output(OTHER, "rows", size)])
        member = log.join("g", ["in"], member="m", store="s")
        while len(member.assignment()) < 2:
            member.poll(0.05, 1, 1)
        for value in (HOST.encode() * 50, b"short"):
            member.commit(Commit(state={0: [StateChange(b"some key", value)]}))
        clock.turn(2 * _DAY_MS)
        kept = [output(OTHER, "in", size, "kept") for size in (20, 5000)]
        log.append(kept)
        log.expire(clock())
        assert not [m for p in range(2) for m in log.read("in", p) if m.key == HOST.encode()]
        assert {name.rpartition(".")[2] for name in files_with(tmp_path, HOST.encode())} >= {"segment"}
        log.erase([HOST])
        assert files_with(tmp_path, HOST.encode()) == []
        found = [m for p in range(2) for m in log.read("in", p) if m.value]
        assert sorted(m.value or b"" for m in found) == sorted(each.value or b"" for each in kept)
        assert not any(m.damage for m in found) and list(log.read("rows", partition_of(OTHER, 2)))
        member.close()


def test_values_of_a_commit_under_way_are_spared(tmp_path: Path) -> None:
    """A value of an open transaction in another process is kept, even before that process has committed it."""
    clock = TestClock()
    with closing(make(tmp_path, clock)) as log, closing(EmbeddedLog(tmp_path, clock=clock)) as other:
        log.append([output(OTHER, "in", 5000)])
        (segment,) = (tmp_path / "segments").iterdir()
        with segment.open("ab") as file:  # behind the committed size
            file.write(b"of a commit under way")
        other.erase([HOST])
        assert segment.read_bytes().endswith(b"of a commit under way")
    with closing(EmbeddedLog(tmp_path, clock=clock)) as log:  # its writer is dead, so no commit will name it
        log.erase([HOST])
        assert not segment.read_bytes().strip(b"\0").endswith(b"way")


def test_a_member_reads_on_without_a_gap(tmp_path: Path) -> None:
    """Erased records that a group has not read are read as tombstones: none is reported as expired."""
    with closing(make(tmp_path, TestClock())) as log:
        for _ in range(3):
            log.append([output(HOST, "in", 3000), output(OTHER, "in", 3000)])
        log.erase([HOST])
        member = log.join("g", ["in"], member="m")
        found: list[Message] = []
        while len(found) < 6:
            found += member.poll(0.1, 100, 1 << 20)
        assert not any(message.expired or message.damage for message in found)
        assert sum(message.value is None for message in found) == 3
        last = {At("in", message.partition): message.offset + 1 for message in found}
        member.commit(Commit(offsets=last))
        assert not any(member.lag().values())
        member.close()
        assert log.erase([HOST]).records == 0


def test_erasing_needs_room_for_a_copy_of_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk it is refused before the copy fills it for all others; the next call completes it."""
    with closing(make(tmp_path, TestClock())) as log:
        log.append([output(HOST, "in", 20)])
        with monkeypatch.context() as full:
            full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
            with pytest.raises(LogUnavailable, match=r"needs 0\.\d GB, 0\.0 GB are free"):
                log.erase([HOST])
        log.erase([HOST])
        assert files_with(tmp_path, HOST.encode()) == []
