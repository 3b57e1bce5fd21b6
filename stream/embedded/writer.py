"""Group commit: the one way by which a process changes the embedded log.

Callers that arrive while one is at work wait in a queue; the first of them then commits all of them as a group: one
append and fdatasync for their large values, then one SQLite transaction. So the cost of syncing is shared. Large values
are on the disk before the transaction that names them: a crash leaves at worst bytes that nothing refers to.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from stream.embedded.database import SEGMENTS, connect, translate, translated_errors
from stream.embedded.segments import Segment
from stream.log.errors import LogUnavailable, StreamError

T = TypeVar("T")
Placed = tuple[Segment, int]  # a segment and the position of a value in it
Apply = Callable[[sqlite3.Connection, Sequence[Placed]], T]


@dataclass(eq=False)
class _Task(Generic[T]):
    """One caller's change: values for the segments, and what to do within the transaction."""

    apply: Apply[T]
    blobs: Sequence[tuple[int, bytes]] = ()  # (topic id, value)
    places: Sequence[Placed] = ()
    result: T | None = None
    error: BaseException | None = None
    done: bool = False
    turn: threading.Event | None = None  # set when done, or when this caller has to lead; None: it leads at once


class Writer:
    """The writing connection and the open segments of one process; `committed` counts its transactions."""

    def __init__(self, folder: Path, *, segment_bytes: int, lock_timeout_s: float, read_only: bool) -> None:
        self._folder = folder
        self._read_only = read_only
        self._segment_bytes = segment_bytes
        self._lock_timeout_s = lock_timeout_s
        self._database: sqlite3.Connection | None = None
        self._segments: dict[int, Segment] = {}
        self._queue: list[_Task[Any]] = []
        self._closed = False
        self._leading = False  # a caller has the connection and the segments for itself
        self._mutex = threading.Lock()  # of the queue
        self._news = threading.Condition()
        self._pid = os.getpid()
        self.committed = 0

    def run(self, apply: Apply[T], blobs: Sequence[tuple[int, bytes]] = ()) -> T:
        """The result of `apply(database, places)` in a transaction. It must check first and write then.

        Its StreamError is raised, the others of its group commit without it; LogUnavailable: nothing is durable.
        """
        task = _Task(apply, blobs)
        self._submit(task)
        return cast(T, task.result)

    def drop(self, topics: Iterable[int]) -> None:
        """Close the segments of removed topics, so that their files may go."""
        gone: list[Segment] = []
        try:
            self.run(lambda *_: gone.extend(self._segments.pop(topic) for topic in self._segments.keys() & set(topics)))
        finally:
            for segment in gone:
                segment.close()

    def wait(self, seen: int, timeout_s: float) -> None:
        with self._news:
            if self.committed == seen:
                self._news.wait(timeout_s)

    def close(self) -> None:
        if os.getpid() != self._pid:
            return
        with contextlib.suppress(StreamError):
            self._submit(_Task(lambda *_: None), last=True)
        for segment in self._segments.values():
            segment.close()
        self._segments.clear()
        self._drop_connection()

    def _submit(self, task: _Task[Any], *, last: bool = False) -> None:
        """Queue a task, and lead the queue if no other caller does. Raises the task's error."""
        if os.getpid() != self._pid:
            raise StreamError("this log was opened by the parent process: open a log of its own after the fork")
        if self._read_only:
            raise StreamError(f"the log in {self._folder} is open for reading only")
        with self._mutex:
            if self._closed:
                raise StreamError(f"the log in {self._folder} is closed")
            self._closed = last
            self._queue.append(task)
            if self._leading:
                task.turn = threading.Event()
            self._leading = True
        if task.turn is not None:
            self._await_turn(task, task.turn)
        if not task.done:
            self._lead()
        if task.error is not None:
            raise task.error

    def _await_turn(self, task: _Task[Any], turn: threading.Event) -> None:
        """Wait until the task is done or has to lead; a caller that is interrupted meanwhile leaves the queue."""
        try:
            turn.wait()
        except BaseException:
            with self._mutex:
                if task in self._queue:
                    self._queue.remove(task)
                    if turn.is_set():
                        self._pass_lead()
            raise

    def _pass_lead(self) -> None:
        """With the mutex held: the first in the queue leads next."""
        self._leading = bool(self._queue)
        if self._queue and self._queue[0].turn is not None:
            self._queue[0].turn.set()

    def _lead(self) -> None:
        with self._mutex:
            tasks, self._queue = self._queue, []
        try:
            self._commit(tasks)
        finally:
            with self._mutex:
                self._pass_lead()
            for task in tasks:
                if task.turn is not None:
                    task.turn.set()

    def _commit(self, tasks: Sequence[_Task[Any]]) -> None:
        """Commit these as one group; errors go to the tasks."""
        failure: Exception = LogUnavailable(f"the log in {self._folder} was interrupted")
        written: list[tuple[Segment, int]] = []  # and its size before
        try:
            with translated_errors(self._folder):
                self._place(tasks, written)
                self._transact(tasks, written)
            with self._news:
                self.committed += 1
                self._news.notify_all()
        except Exception as error:  # noqa: BLE001  # it is raised to the callers
            failure = error
            for segment, before in written:
                if not segment.spoiled:  # the next append overwrites these values, so that trying again fills no disk
                    segment.cut(before)
        finally:
            for task in tasks:
                if not task.done:
                    task.error, task.done = failure, True

    def _place(self, tasks: Sequence[_Task[Any]], written: list[tuple[Segment, int]]) -> None:
        """Append the values of all tasks to segments, and sync these."""
        values: dict[int, list[bytes]] = {}
        for task in tasks:
            for topic, value in task.blobs:
                values.setdefault(topic, []).append(value)
        places: dict[int, Iterator[Placed]] = {}
        for topic, wanted in values.items():
            segment = self._segment(topic)
            before = segment.size
            places[topic] = zip(repeat(segment), segment.append(wanted), strict=False)
            written.append((segment, before))
        for segment, _ in written:
            segment.sync()
        for task in tasks:
            task.places = [next(places[topic]) for topic, _ in task.blobs]

    def _segment(self, topic: int) -> Segment:
        segment = self._segments.get(topic)
        if segment is None or segment.spoiled or segment.size >= self._segment_bytes:
            if segment is not None:
                self._segments.pop(topic).close()
            segment = self._segments[topic] = Segment(self._folder / SEGMENTS, topic, self._enter)
        return segment

    def _enter(self, file: str) -> int:
        """Enter a new segment before its first write: retention removes no file that the database does not know."""
        with self._transaction() as database:
            row = database.execute("INSERT INTO segments (file, live) VALUES (?, 0)", (file,)).lastrowid
        assert row is not None
        return row

    def _transact(self, tasks: Sequence[_Task[Any]], written: Sequence[tuple[Segment, int]]) -> None:
        """All tasks in one transaction. Where a fault of one caller's data spoils it, each task has one of its own."""
        try:
            self._transact_all(tasks, written)
        except Exception as error:
            if len(tasks) == 1 or isinstance(translate(error, self._folder), StreamError):
                raise
            for task in tasks:
                try:
                    self._transact_all([task], written)
                except Exception as own:  # noqa: BLE001  # it is raised to its caller
                    task.error, task.done = translate(own, self._folder), True

    def _transact_all(self, tasks: Sequence[_Task[Any]], written: Sequence[tuple[Segment, int]]) -> None:
        try:
            with self._transaction() as database:
                for task in tasks:
                    try:
                        task.result = task.apply(database, task.places)
                    except StreamError as error:
                        task.error = error
        except BaseException as error:
            # Interrupted, or failed by the disk: the commit may be there, or come back in a crash. Its values stay.
            if not isinstance(error, Exception) or _code(error) == sqlite3.SQLITE_IOERR:
                for segment, _ in written:
                    segment.spoiled = True
            for task in tasks:
                task.error = task.result = None
            raise
        for task in tasks:
            task.done = True

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, rolled back where an error leaves the block; after one of SQLite the connection goes."""
        if self._database is None:
            self._database = connect(self._folder, self._lock_timeout_s)
            self._database.execute("PRAGMA busy_timeout = 0")  # see `_begin`
        database = self._database
        _begin(database, self._lock_timeout_s)
        try:
            yield database
            database.execute("COMMIT")
        except BaseException as error:
            try:
                if database.in_transaction:
                    database.execute("ROLLBACK")
            except sqlite3.Error:
                self._drop_connection()
            if isinstance(error, sqlite3.DatabaseError):
                self._drop_connection()
            raise

    def _drop_connection(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(sqlite3.Error):
                database.close()


def _code(error: Exception) -> int:
    """The primary code of an error of SQLite; 0 for another error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _begin(database: sqlite3.Connection, lock_timeout_s: float) -> None:
    """Start a write transaction. SQLite's own waiting backs off to 100 ms, which starves one of several processes."""
    deadline = time.monotonic() + lock_timeout_s
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.0003, 0.0015))  # noqa: S311  # spreads the askers, no secret
