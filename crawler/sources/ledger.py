"""A source's usage and round on the topic `control`: the log is the truth, a process only follows it.

`search/<source>` holds its `Usage`, `search/<source>/round` how far its scheduled round is. What a round found is
appended in the same append as how far it is then, so a crash neither loses results nor asks a finished query again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeVar

import msgspec

from crawler.sources.machine_lock import Exclusion
from crawler.sources.usage import Usage
from stream.log.contract import Log, Message, Output
from stream.log.errors import BadRecord
from stream.processing.topic_reader import report
from stream.schema.topics import CONTROL

T = TypeVar("T")


class Round(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """How far the scheduled round is. `started_ms` is its place in the schedule, not the second of its first query."""

    v: int = 1
    started_ms: int = 0
    queries: str = ""  # digest of the queries
    done: int = 0
    total: int = 0

    @property
    def finished(self) -> bool:
        """Whether every query was dealt with."""
        return self.done >= self.total


class Ledger:
    """The records of one source. Methods raise as `Log.append` and `Log.read` do."""

    def __init__(self, log: Log, source: str, exclusive: Exclusion = nullcontext) -> None:
        """Read what is kept of `source`; the topic must exist. Only under `exclusive` is its usage changed."""
        self._log = log
        self._exclusive = exclusive
        self._usage_key = f"search/{source}".encode()
        self._round_key = f"search/{source}/round".encode()
        self._next = log.beginning(CONTROL)[0]
        self.usage = Usage()
        self.round: Round | None = None
        self.refresh()

    def refresh(self) -> None:
        """Take in what was appended since, by another process, too: a search by hand counts beside the daemon."""
        end = self._log.end(CONTROL)[0]
        if end <= self._next:
            return
        for kept in self._log.read(CONTROL, 0, self._next, end):
            if kept.key == self._usage_key:
                self.usage = _read(kept, Usage) or Usage()
            elif kept.key == self._round_key:
                self.round = _read(kept, Round)
        self._next = end

    def change(self, change: Callable[[Usage], Usage]) -> None:
        """Make of the usage, as it is now, what `change` says, and no other process in between."""
        with self._exclusive():
            self.refresh()
            changed = change(self.usage)
            if changed != self.usage:
                self._log.append([Output(CONTROL, 0, self._usage_key, msgspec.msgpack.encode(changed))])
                self.usage = changed

    def keep(self, round_: Round | None = None, outputs: Sequence[Output] = ()) -> None:
        """Append how far the round is, and `outputs`, all or nothing."""
        records = list(outputs)
        if round_ is not None:
            records.append(Output(CONTROL, 0, self._round_key, msgspec.msgpack.encode(round_)))
        if records:
            self._log.append(records)
        self.round = round_ or self.round


def _read(message: Message, kind: type[T]) -> T | None:
    """A record, or None where it was removed; one that cannot be read, as of another version, is reported."""
    if message.value is None:
        return None
    try:
        return msgspec.msgpack.decode(message.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        report(message, BadRecord(message.damage or f"not a {kind.__name__}: {error}"))
        return None
