"""Group commit: the only way for a process to change the embedded log.

Concurrent callers wait in a queue. The first of them leads the whole queue as a group through two stages: one append
and fdatasync for the large values, and one SQLite transaction. So callers share the cost of syncing. While a group is
in its transaction, the next group already syncs its values, and later callers queue for a third. Large values are on
the disk before the transaction that refers to them, so a crash leaves at worst unreferenced bytes.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from stream.embedded.commit import Insertion, Records
from stream.embedded.database import SEGMENTS, connect, translate, translated_errors
from stream.embedded.segments import Placed, Segment
from stream.log.errors import LogUnavailable, StreamError

_PARTS, _LEAST_BYTES = 16, 1024 * 1024  # segments of a topic's limit by size; the least size of a full one
T = TypeVar("T")
Apply = Callable[[sqlite3.Connection, Insertion], T]
_NO_RECORDS = Records((), 0)


def _taken_lock() -> threading.Lock:
    """A lock that another thread will release: cheaper than an Event when many threads wait."""
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class _Task(Generic[T]):
    """One caller's change: records with values for the segments, and its part of the transaction."""

    apply: Apply[T]
    records: Records
    result: T | None = None
    error: BaseException | None = None
    done: bool = False
    leads: bool = False  # the caller leads the queue, or must do so next
    # who does not lead at once waits for it until the task is done or leads
    turn: threading.Lock = field(default_factory=_taken_lock)


class _Group:
    """Tasks that are committed together."""

    def __init__(self, tasks: Sequence[_Task[Any]]) -> None:
        self.tasks = tasks
        self.written: list[tuple[Segment, int, int]] = []  # segment, its size before and after
        self.retired: list[Segment] = []  # full segments; close them after the earlier groups have committed
        self.error: StreamError | None = None

    def spoil(self) -> None:
        for segment, _, _ in self.written:
            segment.spoiled = True

    def fail(self, error: StreamError) -> None:
        self.error = error
        for task in self.tasks:
            task.error = error
            task.done = True


class Writer:
    """The writing connection and the open segments of one process; `committed` counts transactions."""

    def __init__(self, folder: Path, *, segment_bytes: int, lock_timeout_s: float, read_only: bool) -> None:
        self._folder = folder
        self._read_only = read_only
        self._segment_bytes = segment_bytes
        self._lock_timeout_s = lock_timeout_s
        self._database: sqlite3.Connection | None = None
        self._segments: dict[int, Segment] = {}
        self._dropped: set[int] = set()
        self._queue: list[_Task[Any]] = []
        self._leading = False
        self._closed = False
        self._mutex = threading.Lock()
        self._committing = threading.Lock()  # held for a transaction
        self._appending = threading.Lock()  # held to write or cut segments
        self._news = threading.Condition()
        self._pid = os.getpid()
        self.committed = 0

    def run(self, apply: Apply[T], records: Records = _NO_RECORDS) -> T:
        """Run `apply(database, insertion)` in a transaction; returns its result. It must check before it writes.

        It may add `records` to the insertion, when their large values are on the disk.

        Raises its StreamError; the rest of its group commits. Raises LogUnavailable if nothing is durable.
        """
        task = _Task(apply, records)
        self._submit(task)
        return cast(T, task.result)

    def drop(self, topics: Iterable[int]) -> None:
        """Close the segments of removed topics, so that their files can be removed."""
        with self._appending:
            self._dropped.update(topics)
        self.run(lambda *_: None)  # its group retires them

    def wait(self, seen: int, timeout_s: float) -> None:
        with self._news:
            if self.committed == seen:
                self._news.wait(timeout_s)

    def close(self) -> None:
        if os.getpid() != self._pid:
            return
        with contextlib.suppress(StreamError):
            self._submit(_Task(lambda *_: None, _NO_RECORDS), last=True)
        for segment in self._segments.values():
            segment.close()
        self._segments.clear()
        self._drop_connection()

    def check_usable(self) -> None:
        """Raises StreamError in a forked child, and after the log was closed."""
        if os.getpid() != self._pid:
            raise StreamError("this log was opened by the parent process: open a log of its own after the fork")
        if self._closed:
            raise StreamError(f"the log in {self._folder} is closed")

    def _submit(self, task: _Task[Any], *, last: bool = False) -> None:
        """Queue a task; lead the queue if no other caller does. Raises the task's error."""
        self.check_usable()  # the mutex of a forked child may be locked for ever
        with self._mutex:
            self.check_usable()
            self._closed = last
            if self._read_only:
                raise StreamError(f"the log in {self._folder} is open for reading only")
            self._queue.append(task)
            task.leads, self._leading = not self._leading, True
        if not task.leads:
            try:
                task.turn.acquire()
            except BaseException:  # an interrupted caller leaves the queue
                with self._mutex:
                    if task in self._queue:
                        self._queue.remove(task)
                        if task.leads:
                            self._pass_lead()
                raise
        if not task.done:
            self._lead()
        if task.error is not None:
            raise task.error

    def _pass_lead(self) -> None:
        """Let the first in the queue lead next. The caller holds the mutex."""
        self._leading = bool(self._queue)
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].turn.release()

    def _lead(self) -> None:
        """Take the queue through both stages; the next group starts when this one is in its transaction."""
        with self._mutex:
            group, self._queue = self._queue, []
        try:
            self._run_group(_Group(group))
        finally:
            for task in group:
                if not task.done:
                    task.error = task.error or LogUnavailable(f"the log in {self._folder} was interrupted")
                    task.done = True
                if not task.leads:
                    task.turn.release()

    def _run_group(self, group: _Group) -> None:
        try:
            self._place(group)
            self._committing.acquire()
        except BaseException:
            with self._mutex:
                self._pass_lead()
            raise
        try:
            with self._mutex:
                self._pass_lead()
            self._commit(group)
        finally:
            self._committing.release()

    def _place(self, group: _Group) -> None:
        values: dict[int, list[bytes]] = {}
        for task in group.tasks:
            for topic, value in task.records.blobs:
                values.setdefault(topic, []).append(value)
        places: dict[int, Iterator[Placed]] = {}
        try:
            with self._appending, translated_errors(self._folder):
                group.retired += [self._segments.pop(topic) for topic in self._dropped & self._segments.keys()]
                self._dropped.clear()
                for topic, wanted in values.items():
                    segment = self._segment(topic, group)
                    before = segment.size
                    places[topic] = zip(repeat(segment), segment.append(wanted), strict=False)
                    group.written.append((segment, before, segment.size))
                for segment, _, _ in group.written:
                    segment.sync()
        except StreamError as error:
            group.fail(error)
            return
        for task in group.tasks:
            task.records.places = [next(places[topic]) for topic, _ in task.records.blobs]

    def _segment(self, topic: int, group: _Group) -> Segment:
        segment = self._segments.get(topic)
        if segment is not None and (segment.spoiled or segment.size >= segment.full_bytes):
            group.retired.append(segment)
            segment = None
        if segment is None:
            segment = self._segments[topic] = Segment(self._folder / SEGMENTS, topic, partial(self._enter, topic))
        return segment

    def _enter(self, topic: int, file: str) -> tuple[int, int]:
        """Enter a new segment before its first write: retention only removes files known to the database.

        Returns its id, and its size when it is full: a small part of the topic's limit, because a file goes as a whole.
        """
        with contextlib.closing(self._connect()) as database:
            _begin(database, self._lock_timeout_s)
            row = database.execute("INSERT INTO segments (file, live) VALUES (?, 0)", (file,)).lastrowid
            (limit,) = database.execute(
                "SELECT max(retention_bytes * partitions) FROM topics WHERE id = ?", (topic,)
            ).fetchone()
            database.execute("COMMIT")
        assert row is not None
        part = self._segment_bytes if limit is None else max(_LEAST_BYTES, limit // _PARTS)
        return row, min(self._segment_bytes, part)

    def _connect(self) -> sqlite3.Connection:
        """A connection whose `BEGIN` does not wait, see `_begin`."""
        database = connect(self._folder, self._lock_timeout_s)
        database.execute("PRAGMA busy_timeout = 0")
        return database

    def _commit(self, group: _Group) -> None:
        for segment in group.retired:  # the values of earlier groups in it are committed
            segment.close()
        if group.error is None:
            try:
                with translated_errors(self._folder):
                    self._transact(group)
            except StreamError as error:
                group.fail(error)
        if group.error is None:
            with self._news:
                self.committed += 1
                self._news.notify_all()
            return
        with self._appending:  # let the next append overwrite these values, so that retries do not fill the disk
            for segment, before, after in group.written:
                if segment.size == after and not segment.spoiled:
                    segment.cut(before)

    def _transact(self, group: _Group) -> None:
        """Run all tasks in one transaction. If the data of one task breaks it, run each task in its own transaction."""
        try:
            self._transact_all(group, group.tasks)
        except Exception as error:
            if len(group.tasks) == 1 or isinstance(translate(error, self._folder), StreamError):
                raise
            for task in group.tasks:
                try:
                    self._transact_all(group, [task])
                except Exception as own:  # noqa: BLE001  # it is raised to its caller
                    task.error = translate(own, self._folder)
                    task.done = True

    def _transact_all(self, group: _Group, tasks: Sequence[_Task[Any]]) -> None:
        database = self._database
        if database is None:
            database = self._database = self._connect()
        _begin(database, self._lock_timeout_s)
        ends = False
        insertion = Insertion(database)
        try:
            for task in tasks:
                if not task.records.rows:  # it may read or remove those of the tasks before it
                    insertion.insert()
                try:
                    task.result = task.apply(database, insertion)
                except StreamError as error:
                    task.error = error
            insertion.insert()
            ends = True
            database.execute("COMMIT")
        except BaseException as error:
            is_of_disk = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
            # After an interrupt or an error of the disk, the commit may be there, or be restored by a crash: its values
            # must not be overwritten.
            if not isinstance(error, Exception) or (ends and is_of_disk):
                group.spoil()
            for task in tasks:
                task.error = task.result = None
            self._roll_back(error)
            raise
        for task in tasks:
            task.done = True

    def _roll_back(self, error: BaseException) -> None:
        """Roll back; after an error of the disk, use a new connection."""
        try:
            if self._database is not None and self._database.in_transaction:
                self._database.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop_connection()
            return
        if isinstance(error, sqlite3.DatabaseError) and isinstance(translate(error, self._folder), StreamError):
            self._drop_connection()

    def _drop_connection(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(sqlite3.Error):
                database.close()


def _begin(database: sqlite3.Connection, lock_timeout_s: float) -> None:
    """Start a write transaction. SQLite's own wait backs off to 100 ms, which starves one of several processes."""
    deadline = time.monotonic() + lock_timeout_s
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.0003, 0.0015))  # noqa: S311  # spreads the askers, no secret
