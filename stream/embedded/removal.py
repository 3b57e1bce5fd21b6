"""Removes topics, groups and stores of the embedded log, and measures topics.

The first transaction removes all references. Small transactions then delete the rows, so that others can write in
between. The table `removed` lists the rest after a crash.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial

from stream.embedded.database import keep_ids
from stream.embedded.groups import Moment, dissolve, members
from stream.embedded.retention import forget_records
from stream.embedded.topics import row_id
from stream.embedded.writer import Writer
from stream.log.contract import TopicSize, check_idle

_ROWS = 2000  # per transaction
_RECORDS, _STATE = "records", "state"  # kinds of removed things
_CHANGELOG = "state."


def take_out(
    database: sqlite3.Connection,
    prefix: str,
    topics: Iterable[str],
    groups: Sequence[str],
    stores: Sequence[str],
    now: Moment,
) -> tuple[list[int], int]:
    """Remove the references; returns ids and bytes of the topics. Raises StreamError while a group has members."""
    for group in groups:
        check_idle(prefix + group, members(database, prefix + group, now), "it is removed")
    ids = []
    size = 0
    for name in sorted({*topics, *(_CHANGELOG + store for store in stores)}):
        topic_row = database.execute("SELECT id FROM topics WHERE name = ?", (prefix + name,)).fetchone()
        if topic_row is not None:
            ids.append(int(topic_row[0]))
            size += database.execute("SELECT sum(bytes) FROM partitions WHERE topic = ?", topic_row).fetchone()[0]
            keep_ids(database, "topics")
            keep_ids(database, "partitions")
            mine = "SELECT id FROM partitions WHERE topic = ?"
            database.execute(f"INSERT INTO removed SELECT '{_RECORDS}', id FROM ({mine})", topic_row)
            database.execute(f"DELETE FROM offsets WHERE partition IN ({mine})", topic_row)
            database.execute("DELETE FROM partitions WHERE topic = ?", topic_row)
            database.execute("DELETE FROM topics WHERE id = ?", topic_row)
    for store in stores:
        keep_ids(database, "slots")
        database.execute("INSERT INTO removed SELECT ?, id FROM slots WHERE store = ?", (_STATE, prefix + store))
        database.execute("DELETE FROM slots WHERE store = ?", (prefix + store,))
    for group in groups:
        dissolve(database, prefix + group)
    return ids, size


def clear(database: sqlite3.Connection, writer: Writer) -> int:
    """Delete the rows of everything removed, reading through `database`; returns the bytes of the state."""
    freed = 0
    for kind, number in database.execute("SELECT kind, id FROM removed").fetchall():
        step = partial(_clear_some, kind, number)
        more = True
        while more:
            more, size = writer.run(step)
            freed += size
    return freed


def topic_size(database: sqlite3.Connection, prefix: str, topic: str) -> TopicSize | None:
    """The size of a topic; a changelog includes its store's state. None if the topic does not exist."""
    topic_row = database.execute("SELECT id FROM topics WHERE name = ?", (prefix + topic,)).fetchone()
    if topic_row is None:
        return None
    sizes = [
        database.execute(
            "SELECT coalesce(sum(next - first), 0), coalesce(sum(bytes), 0) FROM partitions WHERE topic = ?", topic_row
        ).fetchone()
    ]
    if topic.startswith(_CHANGELOG):
        sizes += database.execute(
            "SELECT count(*), coalesce(sum(length(key) + length(value)), 0) FROM state"
            " WHERE slot IN (SELECT id FROM slots WHERE store = ?)",
            (prefix + topic.removeprefix(_CHANGELOG),),
        ).fetchall()
    return TopicSize(sum(records for records, _ in sizes), sum(size for _, size in sizes))


def _clear_some(kind: str, number: int, database: sqlite3.Connection, _: object) -> tuple[bool, int]:
    """Delete some rows; returns whether there are more, and the bytes of deleted state."""
    size = 0
    if kind == _RECORDS:
        bounds = (row_id(number, 0), row_id(number + 1, 0))
        rows = database.execute(
            "SELECT id FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", (*bounds, _ROWS)
        ).fetchall()
        if rows:
            forget_records(database, number, "id >= ? AND id <= ?", (bounds[0], rows[-1][0]))
    else:
        rows = database.execute(
            "SELECT key, length(key) + length(value) FROM state WHERE slot = ? ORDER BY key LIMIT ?", (number, _ROWS)
        ).fetchall()
        if rows:
            database.execute("DELETE FROM state WHERE slot = ? AND key <= ?", (number, rows[-1][0]))
        size = sum(bytes_ for _, bytes_ in rows)
    if len(rows) < _ROWS:
        database.execute("DELETE FROM removed WHERE kind = ? AND id = ?", (kind, number))
    return len(rows) == _ROWS, size
