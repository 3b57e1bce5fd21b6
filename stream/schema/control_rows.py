"""The rows of the topic `control` as they arrive: runs, orders and the ledger of forgotten hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import msgspec

from stream.log.contract import Log, Message
from stream.log.errors import BadRecord, SchemaTooNew
from stream.schema.topics import CONTROL

READ = 1  # newest schema of rows that are not about runs


class _Versioned(Protocol):
    @property
    def v(self) -> int: ...


T = TypeVar("T", bound=_Versioned)


class ControlRows:
    """The position of one reader of `control`. A log without that topic has no rows yet."""

    def __init__(self, log: Log) -> None:
        """Start at the first row, without reading."""
        self._log = log
        self._next = 0
        self._exists = False
        self._faults: dict[bytes, BadRecord] = {}  # by key: unreadable rows that have not been replaced

    def new(self) -> Iterator[Message]:
        """The rows since the last call that was read to its end; after an error they are repeated."""
        if not self._exists and CONTROL not in self._log.topics():
            return
        self._exists = True
        end = self._log.end(CONTROL)[0]
        if end > self._next:
            yield from self._log.read(CONTROL, 0, self._next, end)
        self._next = max(self._next, end)  # the last offsets may belong to transaction markers

    def take(self, take: Callable[[Message], bool]) -> bool:
        """Give the new rows to `take`, which says whether a row changed something; True if any did.

        Raises SchemaTooNew; BadRecord while a key's newest row is unreadable.
        """
        changed = False
        for message in self.new():
            self._faults.pop(message.key, None)
            try:
                changed |= take(message)
            except BadRecord as error:
                self._faults[message.key] = error
        for fault in self._faults.values():
            raise fault
        return changed


def read_row(message: Message, kind: type[T], what: str, newest: int = READ) -> T:
    """Decode a row of `control`, up to schema `newest`; `what` names it. Raises BadRecord for damage, SchemaTooNew."""
    where = f"topic {CONTROL}, offset {message.offset}, {what}"
    if message.damage:
        raise BadRecord(f"{where}: {message.damage}")
    try:
        row = msgspec.msgpack.decode(message.value or b"", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SchemaTooNew(f"{where}: {error}") from error
    if row.v > newest:
        raise SchemaTooNew(f"{where}: schema {row.v}, this farmwatch reads up to {newest}")
    return row
