"""Consumer groups of the embedded log: members with a heartbeat, and leases on partitions with an epoch.

Everything here runs in write transactions, so the steps of members are serialised. A group never reuses an epoch: a
lease that was lost and regained has a new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stream.embedded.commit import check_partitions, write_offsets
from stream.log.contract import check_idle
from stream.log.errors import Fenced
from stream.log.shares import next_step


class Moment(NamedTuple):
    """The present time. A membership that ends after `latest` was renewed by a wrong clock: it counts as expired."""

    now_ms: int
    lease_ms: int

    @property
    def expires_at(self) -> int:
        return self.now_ms + self.lease_ms

    @property
    def latest(self) -> int:
        return self.now_ms + 2 * self.lease_ms


def join(database: sqlite3.Connection, group: str, member: str, expires_at: int) -> int:
    """Join the group; returns the epoch. Leases under this name get new epochs, which fence the previous holder."""
    database.execute("INSERT INTO groups VALUES (?, 0, 0) ON CONFLICT DO NOTHING", (group,))
    epoch = _next_epoch(database, group)
    database.execute(
        "INSERT INTO members VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET epoch = excluded.epoch, expires_at = excluded.expires_at",
        (group, member, epoch, expires_at),
    )
    held = database.execute("SELECT partition FROM leases WHERE grp = ? AND member = ?", (group, member)).fetchall()
    _grant(database, group, member, [partition for (partition,) in held])
    _touch(database, group)
    return epoch


def take_step(
    database: sqlite3.Connection, group: str, member: str, epoch: int, partitions: int, now: Moment
) -> tuple[int, dict[int, int]]:
    """Renew the membership, remove expired members, and move towards a fair share.

    Returns the group's version and the leases. Raises Fenced.
    """
    row = database.execute("SELECT epoch FROM members WHERE grp = ? AND name = ?", (group, member)).fetchone()
    if row is not None and row[0] != epoch:
        raise Fenced(
            f"another process joined group {group!r} as member {member!r}: give each process a name of its own"
        )
    database.execute(
        "INSERT INTO members VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at",
        (group, member, epoch, now.expires_at),
    )
    changed = remove_expired(database, group, now) > 0 or row is None
    members = [name for (name,) in database.execute("SELECT name FROM members WHERE grp = ?", (group,))]
    owners = dict(database.execute("SELECT partition, member FROM leases WHERE grp = ?", (group,)).fetchall())
    step = next_step(member, members, owners, partitions)
    database.executemany(
        "DELETE FROM leases WHERE grp = ? AND partition = ?", [(group, partition) for partition in step.give_up]
    )
    _grant(database, group, member, step.take)
    if changed or step.give_up or step.take:
        _touch(database, group)
    (version,) = database.execute("SELECT version FROM groups WHERE name = ?", (group,)).fetchone()
    leases = database.execute("SELECT partition, epoch FROM leases WHERE grp = ? AND member = ?", (group, member))
    return version, dict(leases.fetchall())


def beat(members: Sequence[tuple[str, str, int]], expires_at: int, database: sqlite3.Connection, _: object) -> None:
    """Renew memberships (group, member, epoch), except fenced or removed ones."""
    database.executemany(
        "UPDATE members SET expires_at = ? WHERE grp = ? AND name = ? AND epoch = ?",
        [(expires_at, *member) for member in members],
    )


def leave(database: sqlite3.Connection, group: str, member: str, epoch: int) -> None:
    """Give up membership and leases, unless another process has joined under this name."""
    gone = database.execute(
        "DELETE FROM members WHERE grp = ? AND name = ? AND epoch = ?", (group, member, epoch)
    ).rowcount
    if gone:
        database.execute("DELETE FROM leases WHERE grp = ? AND member = ?", (group, member))
        _touch(database, group)


def remove_expired(database: sqlite3.Connection, group: str, now: Moment) -> int:
    """Remove members that missed their heartbeat, and their leases; returns their number."""
    names = database.execute(
        "SELECT name FROM members WHERE grp = ? AND expires_at NOT BETWEEN ? AND ?", (group, now.now_ms, now.latest)
    ).fetchall()
    database.executemany("DELETE FROM leases WHERE grp = ? AND member = ?", [(group, name) for (name,) in names])
    database.executemany("DELETE FROM members WHERE grp = ? AND name = ?", [(group, name) for (name,) in names])
    return len(names)


def members(database: sqlite3.Connection, group: str, now: Moment) -> list[str]:
    """Names of the live members."""
    rows = database.execute(
        "SELECT name FROM members WHERE grp = ? AND expires_at BETWEEN ? AND ? ORDER BY name",
        (group, now.now_ms, now.latest),
    ).fetchall()
    return [name for (name,) in rows]


def names(database: sqlite3.Connection, prefix: str) -> list[str]:
    """Sorted names of the groups with this prefix."""
    rows = database.execute("SELECT name FROM groups UNION SELECT grp FROM offsets ORDER BY 1").fetchall()
    return [name for (name,) in rows if name.startswith(prefix)]


def reset(database: sqlite3.Connection, group: str, offsets: Mapping[int, int], now: Moment) -> None:
    """Set committed offsets by partition id. Raises UnknownTopic, and StreamError while the group has live members."""
    check_idle(group, members(database, group, now), "its offsets are reset")
    check_partitions(database, offsets)
    if remove_expired(database, group, now):
        _touch(database, group)
    write_offsets(database, group, offsets)


def dissolve(database: sqlite3.Connection, group: str) -> None:
    """Remove members, leases and offsets. The group's row stays, so that epochs are never reused."""
    for table in ("members", "leases", "offsets"):
        database.execute(f"DELETE FROM {table} WHERE grp = ?", (group,))
    _touch(database, group)


def _grant(database: sqlite3.Connection, group: str, member: str, partitions: Sequence[int]) -> None:
    for partition in partitions:
        database.execute(
            "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)",
            (group, partition, member, _next_epoch(database, group)),
        )


def _next_epoch(database: sqlite3.Connection, group: str) -> int:
    database.execute("UPDATE groups SET epoch = epoch + 1 WHERE name = ?", (group,))
    (epoch,) = database.execute("SELECT epoch FROM groups WHERE name = ?", (group,)).fetchone()
    return int(epoch)


def _touch(database: sqlite3.Connection, group: str) -> None:
    database.execute("UPDATE groups SET version = version + 1 WHERE name = ?", (group,))
