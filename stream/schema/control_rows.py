"""The rows of the topic `control` as they arrive: runs, orders and the ledger of forgotten hosts."""

from __future__ import annotations

from collections.abc import Iterator

from stream.log.contract import Log, Message
from stream.schema.topics import CONTROL


class ControlRows:
    """The position of one reader of `control`. A log without that topic has no rows yet."""

    def __init__(self, log: Log) -> None:
        """Start at the first row, without reading."""
        self._log = log
        self._next = 0
        self._exists = False

    def new(self) -> Iterator[Message]:
        """The rows since the last call that was read to its end; after an error they are repeated."""
        if not self._exists and CONTROL not in self._log.topics():
            return
        self._exists = True
        end = self._log.end(CONTROL)[0]
        if end > self._next:
            yield from self._log.read(CONTROL, 0, self._next, end)
        self._next = max(self._next, end)  # the last offsets may belong to transaction markers
