"""Group commit: the one way by which a process changes the embedded log.

Callers that arrive while a transaction is under way wait in a queue; the first of them then leads all of them through
one append to the segments, one fdatasync and one SQLite transaction with one fsync. So the cost of syncing is shared,
and grows with the number of groups rather than of callers. Large values are on the disk before the transaction that
names them, so a crash at any instant leaves at worst bytes that nothing refers to.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from stream.embedded_schema import SEGMENTS, connect, told, translate
from stream.errors import LogUnavailable, StreamError
from stream.segments import Segment

T = TypeVar("T")
Placed = tuple[Segment, int]  # a segment and the position of a value in it
Apply = Callable[[sqlite3.Connection, Sequence[Placed]], T]


class _Task(Generic[T]):
    """One caller's change: values for the segments, and what to do within the transaction."""

    def __init__(self, apply: Apply[T], blobs: Sequence[tuple[int, bytes]]) -> None:
        self.apply = apply
        self.blobs = blobs  # (topic id, value)
        self.places: list[Placed] = []
        self.result: T | None = None
        self.error: BaseException | None = None
        self.done = False
        self.turn = threading.Event()  # set when done, or when this caller has to lead


class Writer:
    """The writing connection and the open segments of one process.

    `committed` counts transactions; `wait` lets readers of the same process sleep until it moves.
    """

    def __init__(self, folder: Path, *, segment_bytes: int, lock_timeout_s: float) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._lock_timeout_s = lock_timeout_s
        self._database: sqlite3.Connection | None = None
        self._segments: dict[int, Segment] = {}
        self._sizes: dict[int, int] = {}  # of the segments before the group under way
        self._fresh: list[Segment] = []  # got their row in the transaction under way
        self._queue: list[_Task[Any]] = []
        self._leading = False
        self._closed = False
        self._mutex = threading.Lock()
        self._news = threading.Condition()
        self._pid = os.getpid()
        self.committed = 0

    def run(self, apply: Apply[T], blobs: Sequence[tuple[int, bytes]] = ()) -> T:
        """Run `apply(database, places)` in a transaction, `places` being where the blobs lie; returns its result.

        It must check first and write then: when it raises a StreamError, the others of its group commit without it.
        Raises that error, or LogUnavailable when nothing could be made durable.
        """
        if os.getpid() != self._pid:
            raise StreamError("this log was opened by the parent process: open a log of its own after the fork")
        task = _Task(apply, blobs)
        with self._mutex:
            if self._closed:
                raise StreamError(f"the log in {self._folder} is closed")
            self._queue.append(task)
            leads, self._leading = not self._leading, True
        if not leads:
            self._await_turn(task)
        if not task.done:
            self._lead()
        if task.error is not None:
            raise task.error
        return cast(T, task.result)

    def wait(self, seen: int, timeout_s: float) -> None:
        """Sleep until `committed` is no longer `seen`, or until the time is up."""
        with self._news:
            if self.committed == seen:
                self._news.wait(timeout_s)

    def close(self) -> None:
        """Finish what is queued, then close connection and segments."""
        with contextlib.suppress(StreamError):
            self.run(lambda *_: self._shut())
        self._drop_connection()

    def _shut(self) -> None:
        with self._mutex:
            self._closed = True
        for topic in list(self._segments):
            self._drop_segment(topic)

    def _await_turn(self, task: _Task[Any]) -> None:
        """Wait until the task is done or has to lead; a caller that is interrupted meanwhile leaves the queue."""
        try:
            task.turn.wait()
        except BaseException:
            with self._mutex:
                if task in self._queue:
                    self._queue.remove(task)
                    if task.turn.is_set():
                        self._pass_lead()
            raise

    def _pass_lead(self) -> None:
        """With the mutex held: the first in the queue leads next."""
        self._leading = bool(self._queue)
        if self._queue:
            self._queue[0].turn.set()

    def _lead(self) -> None:
        """Commit all that is queued, then hand the lead to the first of those who came meanwhile."""
        with self._mutex:
            group, self._queue = self._queue, []
        try:
            self._commit(group)
        finally:
            for task in group:
                if not task.done:
                    task.error = task.error or LogUnavailable(f"the log in {self._folder} was interrupted")
                    task.done = True
            with self._mutex:
                self._pass_lead()
            for task in group:
                task.turn.set()

    def _commit(self, group: Sequence[_Task[Any]]) -> None:
        self._sizes = {}
        try:
            with told(self._folder):
                self._place(group)
                self._transact(group)
        except StreamError as error:
            self._take_back()
            _fail(group, error)
        except Exception as error:  # noqa: BLE001  # a fault of one caller's data: the others must not pay for it
            if len(group) == 1:
                _fail(group, error)
                return
            for task in group:
                self._commit([task])
            return
        for task in group:
            task.done = True
        with self._news:
            self.committed += 1
            self._news.notify_all()

    def _place(self, group: Sequence[_Task[Any]]) -> None:
        """Append the large values of a group to the segments of their topics, and sync these."""
        by_topic: dict[int, list[tuple[_Task[Any], int]]] = {}
        for task in group:
            if len(task.places) != len(task.blobs):
                task.places = [cast(Placed, None)] * len(task.blobs)
                for index, (topic, _) in enumerate(task.blobs):
                    by_topic.setdefault(topic, []).append((task, index))
        for topic, wanted in by_topic.items():
            segment = self._segment(topic)
            self._sizes[topic] = segment.size
            positions = segment.append([task.blobs[index][1] for task, index in wanted])
            for (task, index), position in zip(wanted, positions, strict=True):
                task.places[index] = (segment, position)
        for topic in by_topic:
            try:
                self._segments[topic].sync()
            except OSError:
                # Nobody knows now which bytes of the file are on the disk: never append to it again.
                self._drop_segment(topic)
                raise

    def _take_back(self) -> None:
        """Let the next append overwrite the values of a group that failed, so that trying again fills no disk."""
        for topic, size in self._sizes.items():
            if topic in self._segments:
                self._segments[topic].cut(size)

    def _segment(self, topic: int) -> Segment:
        segment = self._segments.get(topic)
        if segment is not None and segment.size >= self._segment_bytes:
            self._drop_segment(topic)
            segment = None
        if segment is None:
            segment = self._segments[topic] = Segment(self._folder / SEGMENTS, topic)
        return segment

    def _drop_segment(self, topic: int) -> None:
        segment = self._segments.pop(topic, None)
        if segment is not None:
            segment.close()

    def _transact(self, group: Sequence[_Task[Any]]) -> None:
        database = self._begin()
        self._fresh = []
        try:
            for task in group:
                try:
                    self._give_rows(database, task.places)
                    task.result = task.apply(database, task.places)
                except StreamError as error:
                    task.error = error
            self._end(database)
        except BaseException as error:
            for segment in self._fresh:
                segment.row = None
            for task in group:
                task.error = task.result = None
            self._roll_back(error)
            raise

    def _end(self, database: sqlite3.Connection) -> None:
        try:
            database.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR:
                # Perhaps a crash now would bring the commit back: its values must not be overwritten.
                for topic in list(self._segments):
                    self._drop_segment(topic)
            raise

    def _give_rows(self, database: sqlite3.Connection, places: Sequence[Placed]) -> None:
        for segment, _ in places:
            if segment.row is None:
                segment.row = database.execute(
                    "INSERT INTO segments (file, live) VALUES (?, 0)", (segment.file,)
                ).lastrowid
                self._fresh.append(segment)

    def _begin(self) -> sqlite3.Connection:
        """Start a write transaction; while another process writes, ask again every millisecond or so.

        SQLite's own waiting backs off to 100 ms, which starves one of several busy processes.
        """
        database = self._database
        if database is None:
            database = self._database = connect(self._folder, self._lock_timeout_s)
        database.execute("PRAGMA busy_timeout = 0")
        deadline = time.monotonic() + self._lock_timeout_s
        while True:
            try:
                database.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.0003, 0.0015))  # noqa: S311  # spreads the askers, no secret
        return database

    def _roll_back(self, error: BaseException) -> None:
        """Undo the transaction; after an error of the disk, continue on a new connection."""
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


def _fail(group: Sequence[_Task[Any]], error: Exception) -> None:
    for task in group:
        task.error = error
        task.done = True
