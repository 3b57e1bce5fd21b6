"""Dead letters in the console's index: where each is, its reason, and what settles it. The records stay in the log."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from replay.rows.dead_letters import LetterState, group_of
from stream.log.contract import Log, Message
from stream.processing.retries import settlement_of
from stream.processing.topic_reader import dead_letters_of
from stream.schema.forgotten import site_of_key
from stream.schema.topics import DEAD_LETTERS, RETRIES

Readers = Mapping[str, Callable[[sqlite3.Connection, Sequence[Message]], None]]  # by topic
TABLES = """
CREATE TABLE letter (stage TEXT, run TEXT, reason TEXT, partition INTEGER, at INTEGER, site TEXT NOT NULL,
    time_ms INTEGER NOT NULL, PRIMARY KEY (stage, run, reason, partition, at)) WITHOUT ROWID;
CREATE TABLE settlement (partition INTEGER, letter INTEGER, site TEXT NOT NULL, retry_at INTEGER,
    PRIMARY KEY (partition, letter)) WITHOUT ROWID;
"""


@dataclass(slots=True)
class LetterCounts:
    """The letters of a stage and run with the same reason."""

    stage: str
    run: str
    reason: str
    states: Counter[LetterState]
    newest: tuple[int, int, int]  # time (ms), partition, offset


def count_letters(db: sqlite3.Connection, log: Log) -> list[LetterCounts]:
    """The letters that are still in the log, by stage, run and reason; see `letter_groups`."""
    topics = log.topics()
    if DEAD_LETTERS not in topics:
        return []
    read: dict[tuple[str, str], list[int | None]] = {}

    def is_read(stage: str, run: str, partition: int, at: int) -> bool:
        if (stage, run) not in read:
            read[stage, run] = log.committed(group_of(stage, run), RETRIES)
        return (read[stage, run][partition] or 0) > at

    db.create_function("is_read", 4, is_read)
    first = enumerate(log.beginning(DEAD_LETTERS))
    are_left = " AND ".join(
        f"(letter.partition <> {partition} OR at >= {start})" for partition, start in first if start
    )
    query = f"""
        SELECT stage, run, reason, letter.partition, MIN(at), COUNT(*), COUNT(settlement.letter), COUNT(retry_at),
            COALESCE(SUM(CASE WHEN retry_at IS NOT NULL THEN is_read(stage, run, letter.partition, retry_at) END), 0),
            MAX(time_ms)
        FROM letter LEFT JOIN settlement ON settlement.partition = letter.partition AND settlement.letter = at
        WHERE {are_left or "TRUE"} GROUP BY 1, 2, 3, 4"""
    groups: dict[tuple[str, str, str], LetterCounts] = {}
    rows = sorted(db.execute(query), key=lambda row: row[3:5])  # groups in the order of their first letters
    for stage, run, reason, partition, _, letters, settled, retries, done, newest_ms in rows:
        place = newest_ms, partition, 0
        group = groups.setdefault((stage, run, reason), LetterCounts(stage, run, reason, Counter(), place))
        group.newest = max(group.newest, place)
        states = {LetterState.OPEN: letters - settled, LetterState.DROPPED: settled - retries}
        group.states += Counter({**states, LetterState.RETRIED: done, LetterState.WAITING: retries - done})
    last = "SELECT MAX(at) FROM letter WHERE (stage, run, reason, partition, time_ms) = (?, ?, ?, ?, ?)"
    for group in groups.values():
        time_ms, partition, _ = group.newest
        (at,) = db.execute(last, [group.stage, group.run, group.reason, partition, time_ms]).fetchone()
        group.newest = time_ms, partition, at
    return list(groups.values())


def _take_letters(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    values = (
        (of.stage, of.run, of.error.partition(":")[0], m.partition, m.offset, site_of_key(m.key), m.timestamp_ms)
        for m, of in dead_letters_of(messages)
    )
    db.executemany("INSERT OR REPLACE INTO letter VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def _take_settlements(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    values = (
        (m.partition, found.letter, site_of_key(m.key), found.offset if found.is_retry else None)
        for m in messages
        if (found := settlement_of(m)) is not None
    )
    db.executemany("INSERT OR REPLACE INTO settlement VALUES (?, ?, ?, ?)", values)


OF_LETTERS: Readers = {DEAD_LETTERS: _take_letters, RETRIES: _take_settlements}
