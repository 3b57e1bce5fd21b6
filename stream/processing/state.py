"""Keyed state of a partition: a cache of committed values, and the staged changes of a batch.

Nothing is written until the loop commits `changes()`. Only the owner writes a partition's state, so cached values are
valid until ownership may have changed or the outcome of a commit is unknown.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stream.log.contract import NONE_REFUSED, Output, StateChange, StateReader, check_size
from stream.log.errors import RecordTooLarge

_ROOM = 2000  # cached values per partition (LRU); some 24 MB for 24 partitions
_VALUE_CAP_BYTES = 1024  # larger values are not cached
_READ_PAST = 16  # staged deletions covered by one read of a scan


class KeyedState:
    """key -> bytes, with an optional due time and an index on it. Keys order as bytes."""

    def __init__(
        self, committed: StateReader, topic: str = "", refused: Mapping[str, RecordTooLarge] = NONE_REFUSED
    ) -> None:
        """`topic`: where the log may keep the changes; `refused`: see `check_size`."""
        self._committed = committed
        self._topic = topic
        self._refused = refused
        self._staged: dict[bytes, StateChange] = {}
        self._order: list[bytes] = []  # the staged keys, sorted, so that a scan is cheap
        self._journal: list[tuple[bytes, StateChange | None]] = []  # the value before each change, to undo it

    def get(self, key: bytes) -> bytes | None:
        change = self._staged.get(key)
        return change.value if change is not None else self._committed.get(key)

    def put(self, key: bytes, value: bytes, due_at: int | None = None) -> None:
        """Set key to value; `due_at` (ms) enters the due index, None leaves it. Raises RecordTooLarge."""
        if self._refused:
            check_size(Output(self._topic, 0, key, value), "row", self._refused)
        self._stage(StateChange(key, value, due_at))

    def delete(self, key: bytes) -> None:
        self._stage(StateChange(key, None))

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        if limit <= 0:
            return []
        start = bisect.bisect_left(self._order, prefix)
        if start == len(self._order) or not self._order[start].startswith(prefix):
            return self._committed.scan(prefix, limit, after)
        if after is not None:
            start = max(start, bisect.bisect_right(self._order, after))
        staged = list(itertools.takewhile(lambda key: key.startswith(prefix), self._order[start:]))
        rows = [(key, value) for key in staged if (value := self._staged[key].value) is not None]
        read_past = min(len(staged) - len(rows), _READ_PAST)
        rows.extend(itertools.islice(self._scan_committed(prefix, limit + read_past, after), limit))
        rows.sort()  # each key occurs once
        return rows[:limit]

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        timed = [
            (change.due_at, key, change.value)
            for key, change in self._staged.items()
            if change.due_at is not None and change.value is not None
        ]
        staged = sorted(row for row in timed if row[0] <= now_ms)
        # rows that have a due time now had one before, and as many rows are in the way
        merged = heapq.merge(self._due_committed(now_ms, limit, len(timed)), staged)
        return [(key, value, due_at) for (due_at, key, value), _ in zip(merged, range(limit), strict=False)]

    def changes(self) -> list[StateChange]:
        return list(self._staged.values())

    def mark(self) -> int:
        return len(self._journal)

    def undo(self, mark: int) -> None:
        while len(self._journal) > mark:
            key, before = self._journal.pop()
            if before is not None:
                self._staged[key] = before
            else:
                del self._staged[key]
                del self._order[bisect.bisect_left(self._order, key)]

    def next_due(self) -> int | None:
        """The earliest due time, or None; may be too early after staged removals, never too late."""
        staged = [c.due_at for c in self._staged.values() if c.due_at is not None and c.value is not None]
        committed = self._committed.next_due()
        return min([*staged, *([] if committed is None else [committed])], default=None)

    def _stage(self, change: StateChange) -> None:
        key = change.key
        before = self._staged.get(key)
        if before is None:
            bisect.insort(self._order, key)
        self._journal.append((key, before))
        self._staged[key] = change

    def _due_committed(self, now_ms: int, limit: int, spare: int) -> list[tuple[int, bytes, bytes]]:
        """The first `limit` committed rows that are due and not staged; at first, `spare` more rows are read."""
        wanted = limit + spare
        while True:
            rows = self._committed.due(now_ms, wanted)
            unstaged = [(due_at, key, value) for key, value, due_at in rows if key not in self._staged]
            if len(unstaged) >= limit or len(rows) < wanted:
                return unstaged
            wanted += max(limit, len(rows))

    def _scan_committed(self, prefix: bytes, limit: int, after: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows without the staged keys, read page by page if staged deletions leave too few."""
        while True:
            rows = self._committed.scan(prefix, limit, after)
            for key, value in rows:
                if key not in self._staged:
                    yield key, value
            if len(rows) < limit:
                return
            after = rows[-1][0]


_Values = OrderedDict[bytes, bytes | None]  # None: the key does not exist


def _keep(values: _Values, key: bytes, value: bytes | None) -> None:
    values[key] = value
    if value is not None and len(value) > _VALUE_CAP_BYTES:
        del values[key]
    elif len(values) > _ROOM:
        values.popitem(last=False)


class StateMemory:
    """One process's cache of committed values of its partitions."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Values] = {}

    def over(self, partition: int, committed: StateReader) -> StateReader:
        """The committed state of a partition, read through this cache."""
        return _Remembered(committed, self._partitions.setdefault(partition, _Values()))

    def committed(self, state: Mapping[int, Sequence[StateChange]]) -> None:
        """Apply the changes of a commit, by partition, to cached keys."""
        for partition, changes in state.items():
            values = self._partitions.setdefault(partition, _Values())
            for change in changes:
                if change.key in values:
                    _keep(values, change.key, change.value)

    def forget(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._partitions.pop(partition, None)

    def forget_all(self) -> None:
        self._partitions.clear()


class _Remembered:
    """A `StateReader` that caches look-ups of single keys."""

    def __init__(self, committed: StateReader, values: _Values) -> None:
        self._values = values
        self._read = committed.get
        self.scan = committed.scan
        self.due = committed.due
        self.next_due = committed.next_due

    def get(self, key: bytes) -> bytes | None:
        values = self._values
        if key in values:
            values.move_to_end(key)
            return values[key]
        value = self._read(key)
        _keep(values, key, value)
        return value
