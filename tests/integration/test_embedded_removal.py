"""Removal from the embedded log: its result, a kill during it, and other writers."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stream.embedded.database import DATABASE
from stream.embedded.log import EmbeddedLog
from stream.log.contract import At, CleanupPolicy, Commit, StateChange, Topic
from stream.log.errors import UnknownTopic
from tests.support.logs.embedded_worker import sql, worker_process
from tests.support.waiting import wait_until
from tests.support.worlds import record, settle, values

RECORDS, KEYS = 12_000, 6_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def log(folder: Path) -> Iterator[EmbeddedLog]:
    """A log with a topic, a group and a store to remove, and others that stay."""
    opened = EmbeddedLog(folder)
    opened.create([Topic("stays", 1), Topic("pairs", 2), Topic("state.s", 1, CleanupPolicy.COMPACT)])
    opened.append([record("stays", 0, "k", "v")])
    opened.append([record("pairs", n % 2, "k", b"v" * 20) for n in range(RECORDS)])
    opened.append([record("pairs", n, "k", b"L" * 9000) for n in range(2)])
    member = opened.join("g", ["stays"], member="m", store="s")
    settle([member], 1)
    changes = [StateChange(b"%d" % n, b"v", n) for n in range(KEYS)]
    member.commit(Commit(offsets={At("stays", 0): 1}, state={0: changes}))
    member.close()
    yield opened
    opened.close()


def rows(folder: Path) -> dict[str, int]:
    tables = ("topics", "partitions", "records", "state", "slots", "offsets", "segments", "removed")
    return {table: sql(folder, f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def test_nothing_is_left_of_what_was_removed(log: EmbeddedLog, folder: Path) -> None:
    """Rows and segment files are gone, and the returned bytes are those of records and state."""
    held = log.sizes(["pairs", "state.s"])
    assert log.remove(["pairs"], ["g"], ["s"]) == held["pairs"].bytes + held["state.s"].bytes
    left = {table: count for table, count in rows(folder).items() if count}
    assert left == {"topics": 1, "partitions": 1, "records": 1}
    assert list((folder / "segments").iterdir()) == []


@pytest.mark.kill
def test_a_removal_that_is_killed_is_finished_later(log: EmbeddedLog, folder: Path) -> None:
    """After a kill at any moment, all records exist or none is visible; the next expire deletes the rest."""
    dice = random.Random(3)
    for attempt in range(6):
        with worker_process("remove", folder) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(dice.uniform(0, 0.012))
        if "pairs" in log.topics():
            assert sum(1 for p in range(2) for _ in log.read("pairs", p)) == RECORDS + 2
            assert len(list(log.scan_state("s", 0))) == KEYS
            assert log.committed("g", "stays") == [1]
        else:
            assert list(log.scan_state("s", 0)) == []
            assert log.committed("g", "stays") == [None]
            log.create([Topic("pairs", 2), Topic("state.s", 1, CleanupPolicy.COMPACT)])
            assert values(log.read("pairs", 0)) == []
            log.append([record("pairs", 0, "k", str(attempt))])
            assert values(log.read("pairs", 0)) == [str(attempt)]
            log.expire(0)
            assert values(log.read("pairs", 0)) == [str(attempt)]
            assert values(log.read("stays", 0)) == ["v"]
            break
    log.remove(["pairs"], ["g"], ["s"])
    found = rows(folder)
    assert (found["records"], found["state"], found["removed"]) == (1, 0, 0)


def test_others_commit_while_much_is_removed(log: EmbeddedLog) -> None:
    """Removal uses many small transactions: appends of another thread run in between, and none is lost."""
    stop = threading.Event()
    appended = 0

    def append() -> None:
        nonlocal appended
        while not stop.is_set():
            log.append([record("stays", 0, "k", str(appended))])
            appended += 1

    thread = threading.Thread(target=append)
    thread.start()
    before = appended
    log.remove(["pairs"], ["g"], ["s"])
    during = appended - before
    stop.set()
    thread.join()
    assert during >= 3
    assert values(log.read("stays", 0)) == ["v", *map(str, range(appended))]


def test_no_record_is_accepted_after_the_removal_in_one_transaction(folder: Path, log: EmbeddedLog) -> None:
    """Of an append, a removal and an append that are committed together, the last one is refused."""
    errors = dict[int, Exception]()

    def append(n: int) -> None:
        try:
            log.append([record("pairs", 0, "k", "v")])
        except UnknownTopic as error:
            errors[n] = error

    appends = [threading.Thread(target=append, args=(n,)) for n in range(4)]
    threads = [*appends[:3], threading.Thread(target=log.remove, args=(["pairs"],)), appends[3]]
    with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for n, thread in enumerate(threads):  # the first two lead groups of their own, the others are one
            thread.start()
            wait_until(lambda n=n: len(log._writer._queue) == max(n - 1, 0), what="the thread waits")
        other.execute("ROLLBACK")
    for thread in threads:
        thread.join()
    assert list(errors) == [3]
    assert rows(folder)["removed"] == 0
