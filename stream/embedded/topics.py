"""Topics of the embedded log: creates them, and maps names to partition ids."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from stream.embedded.database import OFFSET_BITS, fresh_id
from stream.log.contract import CleanupPolicy, Topic, check_partitions
from stream.log.errors import UnknownTopic


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic in the database. Its partitions have the ids `base` .. `base + partitions - 1`."""

    id: int
    name: str  # without the prefix
    partitions: int
    compact: int  # 0 or 1
    base: int

    def partition_id(self, partition: int) -> int:
        """Id of one partition. Raises UnknownTopic if it is out of range."""
        if not 0 <= partition < self.partitions:
            raise UnknownTopic(
                f"topic {self.name!r} has {self.partitions} partitions, there is no partition {partition}"
            )
        return self.base + partition


def row_id(partition_id: int, offset: int) -> int:
    """Row id of a record."""
    return (partition_id << OFFSET_BITS) + offset


def offset_of(row: int) -> int:
    """Offset of a record within its partition."""
    return row & ((1 << OFFSET_BITS) - 1)


class Topics:
    """Topics under a prefix. `known` caches topics that may have been removed since; transactions check partitions."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, StoredTopic] = {}

    def known(self, database: sqlite3.Connection, name: str) -> StoredTopic:
        """The topic `name`, from the cache if possible. Raises UnknownTopic."""
        return self._known.get(name) or self.find(database, name)

    def cached(self, names: Set[str]) -> Mapping[str, StoredTopic] | None:
        """The topics, for a caller without a database; None if one is not in the cache."""
        known = self._known
        return known if known.keys() >= names else None

    def forget(self) -> None:
        self._known = {}

    def find(self, database: sqlite3.Connection, name: str) -> StoredTopic:
        """Look up the topic `name`. Raises UnknownTopic."""
        for stored in self._select(database, "t.name = ?", self._prefix + name):
            self._known[name] = stored
            return stored
        raise UnknownTopic(f"there is no topic {name!r} under prefix {self._prefix!r}")

    def all(self, database: sqlite3.Connection) -> dict[str, StoredTopic]:
        stored = self._select(database, "substr(t.name, 1, ?) = ?", len(self._prefix), self._prefix)
        return {topic.name: topic for topic in stored}

    def _select(self, database: sqlite3.Connection, where: str, *values: object) -> list[StoredTopic]:
        rows = database.execute(
            "SELECT t.id, substr(t.name, ?), t.partitions, t.compact, min(p.id)"
            f" FROM topics t JOIN partitions p ON p.topic = t.id WHERE {where} GROUP BY t.id",
            (len(self._prefix) + 1, *values),
        )
        return [StoredTopic(*columns) for columns in rows.fetchall()]

    def create(self, database: sqlite3.Connection, topics: Sequence[Topic]) -> None:
        """Create missing topics, in a transaction. Raises TopicMismatch."""
        existing = {name: stored.partitions for name, stored in self.all(database).items()}
        check_partitions(topics, existing)
        for topic in topics:
            if topic.name in existing:
                continue
            rules = (topic.cleanup is CleanupPolicy.COMPACT, topic.retention_ms, topic.retention_bytes)
            name = self._prefix + topic.name
            number, base = fresh_id(database, "topics"), fresh_id(database, "partitions")
            database.execute("INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?)", (number, name, topic.partitions, *rules))
            database.executemany(
                "INSERT INTO partitions (id, topic, partition) VALUES (?, ?, ?)",
                [(base + partition, number, partition) for partition in range(topic.partitions)],
            )

    def definitions(self, database: sqlite3.Connection) -> dict[str, Topic]:
        """The definitions of all topics, by name."""
        rows = database.execute(
            "SELECT substr(name, ?), partitions, compact, retention_ms, retention_bytes FROM topics"
            " WHERE substr(name, 1, ?) = ?",
            (len(self._prefix) + 1, len(self._prefix), self._prefix),
        )
        return {
            name: Topic(name, count, CleanupPolicy.COMPACT if compact else CleanupPolicy.DELETE, *limits)
            for name, count, compact, *limits in rows.fetchall()
        }

    def set_limits(self, database: sqlite3.Connection, topics: Sequence[Topic]) -> None:
        """Set the limits of existing topics, in a transaction."""
        database.executemany(
            "UPDATE topics SET retention_ms = ?, retention_bytes = ? WHERE name = ?",
            [(topic.retention_ms, topic.retention_bytes, self._prefix + topic.name) for topic in topics],
        )
