"""Faults of the embedded log: changed files, and processes to start and kill.

A process is `python -m tests.support.logs.embedded_worker ROLE FOLDER [NUMBER]`.
"""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from stream.embedded.commit import Records
from stream.embedded.log import EmbeddedLog
from stream.log.contract import At, Commit, Output, StateChange
from stream.log.errors import LogUnavailable
from tests.support.paths import ROOT

LEASE_MS = 1000
LARGE_BYTES = 20_000


@contextmanager
def worker_process(role: str, folder: Path, *more: object) -> Iterator[subprocess.Popen[str]]:
    """A worker process; it is killed at the end of the block."""
    command = [sys.executable, "-m", "tests.support.logs.embedded_worker", role, str(folder), *map(str, more)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def sql(folder: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one statement on the log's database, and commit it."""
    with closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def lose_page(folder: Path, value: bytes) -> None:
    """Overwrite the first 16 KiB page that holds only `value`, which must be long."""
    sql(folder, "PRAGMA wal_checkpoint(TRUNCATE)")
    file = folder / "log.sqlite"
    data = bytearray(file.read_bytes())
    page = data.index(value * 16_000) // 16_384 * 16_384
    data[page : page + 4] = b"\xff\xff\xff\xff"  # the number of the next page
    file.write_bytes(data)


def damage_pages(folder: Path, first: int = 80) -> None:
    """Overwrite three pages of the database, as a failing disk does."""
    with (folder / "log.sqlite").open("r+b") as file:
        assert file.seek(0, os.SEEK_END) > 16_384 * (first + 3)
        file.seek(16_384 * first)
        file.write(random.Random(1).randbytes(3 * 16_384))


def segments(folder: Path) -> set[Path]:
    return set((folder / "segments").iterdir())


def say(line: str) -> None:
    """Print a line at once. A line this short is written to the pipe whole or not at all, also at a kill."""
    os.write(1, f"{line}\n".encode())


def count(folder: Path) -> None:
    """Commit 0, 1, 2, …: a small record, a large one, a count in state and an offset; print each once it is durable.

    Two threads append concurrently, so that commits share groups.
    """
    log = EmbeddedLog(folder, segment_bytes=400_000)
    member = log.join("g", ["in"], member="counter", store="s")
    while not member.assignment():
        member.poll(0.05, 1, 1)
    for name in ("x", "y"):
        threading.Thread(target=_append, args=(log, name), daemon=True).start()
    number = int(member.state(0).get(b"count") or b"0")
    say("ready")
    while True:
        text = b"%d" % number
        outputs = [Output("out", 0, b"k", text), Output("out", 1, b"k", text.ljust(LARGE_BYTES, b"."))]
        number += 1
        member.commit(Commit(outputs, {At("in", 0): number}, {0: [StateChange(b"count", b"%d" % number, number)]}))
        say(f"count {number}")


def _append(log: EmbeddedLog, name: str) -> None:
    number = sum(1 for _ in log.read("pairs", "xy".index(name))) // 2
    while True:
        value = (f"{number}" if number % 2 else f"{number}".ljust(5000)).encode()
        log.append([Output("pairs", "xy".index(name), name.encode(), value)] * 2)
        number += 1
        say(f"{name} {number}")


def hold(folder: Path) -> None:
    """Own all partitions, then do not poll for a long time."""
    log = EmbeddedLog(folder, lease_ms=LEASE_MS)
    member = log.join("g", ["in"], member="holder")
    while not member.assignment():
        member.poll(0.05, 1, 1)
    say("ready")
    time.sleep(600)


def fill(folder: Path, size: int) -> None:
    """Append records of `size` bytes until the disk is full, print the error, make room, and append once more."""
    log = EmbeddedLog(folder)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))  # a later write fails, as on a full disk
    number = 0
    errors = 0
    while errors < 3:
        try:
            log.append([Output("pairs", 0, b"k", (b"%d" % number).ljust(size)) for _ in range(2)])
            number += 1
        except LogUnavailable as error:
            errors += 1
            say(f"full {error}")
    say(f"count {number}")
    say(f"visible {sum(1 for _ in log.read('pairs', 0))}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    log.append([Output("pairs", 0, b"k", b"room".ljust(size)) for _ in range(2)])
    log.close()
    say("done")


def remove(folder: Path) -> None:
    log = EmbeddedLog(folder)
    say("ready")
    log.remove(["pairs"], ["g"], ["s"])
    say("done")


def die(folder: Path) -> None:
    """Write a large value, and die in the transaction that would have committed it."""
    log = EmbeddedLog(folder)
    records = Records((), 0)
    records.blobs.append((1, b"never committed"))
    log._writer.run(lambda *_: os._exit(0), records)


def many(folder: Path, partition: int) -> None:
    """Append 100 records to a partition one by one, while other processes do the same."""
    log = EmbeddedLog(folder)
    for number in range(100):
        log.append([Output("pairs", partition % 2, b"%d" % partition, b"%d" % number)])
    log.close()


ROLES = {"die": die, "remove": remove, "count": count, "hold": hold, "fill": fill, "many": many}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))  # type: ignore[operator]
