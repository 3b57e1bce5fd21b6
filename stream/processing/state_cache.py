"""Committed values of keyed state that were read or written lately, so that the next batch does not look them up again.

A partition's state is written by its owner only. So what the owner has read or committed is valid until it commits
something else, and all is forgotten when a partition may have had another owner, or a commit's outcome is not known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stream.log.contract import StateChange, StateReader

_ROOM = 2000  # values of a partition, those used longest ago leave; some 24 MB for all of 24 partitions
_VALUE_CAP_BYTES = 1024  # larger values are rare, and would take the room of many
Timed = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Values(OrderedDict[bytes, bytes | None]):
    """None: the key is not there."""

    def keep(self, key: bytes, value: bytes | None) -> None:
        if value is not None and len(value) > _VALUE_CAP_BYTES:
            self.pop(key, None)
            return
        self[key] = value
        if len(self) > _ROOM:
            self.popitem(last=False)


class StateMemory:
    """What one process remembers of the partitions that it owns."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Values] = {}

    def over(self, partition: int, committed: StateReader, timed: Timed = lambda read: read) -> StateReader:
        """The committed state of a partition, read through this memory; `timed` wraps what reads the log."""
        return _Remembered(committed, self._partitions.setdefault(partition, _Values()), timed)

    def committed(self, state: Mapping[int, Sequence[StateChange]]) -> None:
        """Take over what a commit has changed, by partition, of what was looked up: nothing else is."""
        for partition, changes in state.items():
            values = self._partitions.setdefault(partition, _Values())
            for change in changes:
                if change.key in values:
                    values.keep(change.key, change.value)

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget partitions that may have changed without this process."""
        for partition in partitions:
            self._partitions.pop(partition, None)

    def forget_all(self) -> None:
        self._partitions.clear()


class _Remembered:
    """A `StateReader`; look-ups of single keys are remembered."""

    def __init__(self, committed: StateReader, values: _Values, timed: Timed) -> None:
        self._values = values
        self._read = timed(committed.get)
        self.scan = timed(committed.scan)
        self.due = timed(committed.due)
        self.next_due = timed(committed.next_due)

    def get(self, key: bytes) -> bytes | None:
        values = self._values
        if key in values:
            values.move_to_end(key)
            return values[key]
        value: bytes | None = self._read(key)
        values.keep(key, value)
        return value
