"""A source's usage and round on the topic `control`.

`search/<source>` holds its `Usage`, `search/<source>/round` the progress of its scheduled round. Results and progress
go into one append, so a crash neither loses results nor repeats a finished query.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from crawler.sources.source import SourceRefused
from crawler.sources.usage import Usage, next_month_s
from stream.log.contract import Log, Message, Output
from stream.log.errors import BadRecord
from stream.processing.topic_reader import report
from stream.schema.topics import CONTROL

T = TypeVar("T")
Exclusion = Callable[[], AbstractContextManager[object]]  # called for each change; it excludes other threads too


class Round(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Progress of a scheduled round. `started_ms` is its time in the schedule, not the time of its first query."""

    v: int = 1
    started_ms: int = 0
    queries: str = ""  # digest of the queries
    done: int = 0
    total: int = 0

    @property
    def finished(self) -> bool:
        return self.done >= self.total


class Ledger:
    """The records of one source. Methods raise as `Log.append` and `Log.read` do."""

    def __init__(
        self, log: Log, source: str, exclusive: Exclusion = nullcontext, clock: Callable[[], float] = time.time
    ) -> None:
        """Read the records of `source`; the topic must exist. The usage is changed under `exclusive` only."""
        self._log = log
        self._source = source
        self._clock = clock
        self._exclusive = exclusive
        self._usage_key = f"search/{source}".encode()
        self._round_key = f"search/{source}/round".encode()
        self._next = log.beginning(CONTROL)[0]
        self.usage = Usage()
        self.round: Round | None = None
        self._has_usage = False
        self._unreadable_s = 0.0  # when the unreadable usage was written, while no readable one is known
        self.refresh()

    def refresh(self) -> None:
        """Read records appended since, also by other processes."""
        end = self._log.end(CONTROL)[0]
        if end <= self._next:
            return
        for kept in self._log.read(CONTROL, 0, self._next, end):
            if kept.key == self._usage_key:
                usage = _read(kept, Usage)
                if usage is not None or kept.value is None:
                    self.usage, self._has_usage, self._unreadable_s = usage or Usage(), usage is not None, 0.0
                elif not self._has_usage:  # else the last known usage holds
                    self._unreadable_s = kept.timestamp_ms / 1000
            elif kept.key == self._round_key:
                self.round = _read(kept, Round)
        self._next = end

    @property
    def is_readable(self) -> bool:
        """Whether the usage is known. The counts of an unreadable record end with the month in which it was written."""
        return not self._unreadable_s or self._clock() >= next_month_s(self._unreadable_s)

    def change(self, change: Callable[[Usage], Usage]) -> None:
        """Apply `change` to the current usage while no other process does. Raises SourceRefused if it is unreadable."""
        with self._exclusive():
            self.refresh()
            if not self.is_readable:
                reset = datetime.fromtimestamp(next_month_s(self._unreadable_s), UTC)
                raise SourceRefused(
                    f"the usage of {self._source} in the log cannot be read, so its quota is unknown and no request is"
                    f" made: search with the version of this program that wrote it, or wait until the counts reset on"
                    f" {reset:%Y-%m-%d} (UTC)"
                )
            changed = change(self.usage)
            if changed != self.usage:
                self._log.append([Output(CONTROL, 0, self._usage_key, msgspec.msgpack.encode(changed))])
                self.usage = changed

    def keep(self, round_: Round | None = None, outputs: Sequence[Output] = ()) -> None:
        records = list(outputs)
        if round_ is not None:
            records.append(Output(CONTROL, 0, self._round_key, msgspec.msgpack.encode(round_)))
        if records:
            self._log.append(records)
        self.round = round_ or self.round


def _read(message: Message, kind: type[T]) -> T | None:
    if message.value is None:
        return None
    try:
        return msgspec.msgpack.decode(message.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        report(message, BadRecord(message.damage or f"not a {kind.__name__}: {error}"))
        return None


_EVERY = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LEAST_S = 60  # a shorter interval is a mistake, or rude
MOST_S = 366 * 86_400


def interval_s(text: str) -> int:
    """The seconds of `6h`, `90m`, `1d`. Raises ValueError."""
    match = _EVERY.fullmatch(text.strip().lower())
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if not LEAST_S <= seconds <= MOST_S:
        raise ValueError(f"{text[:40]!r}: write a number and a unit from 1m to 366d, such as 90m, 6h, 1d")
    return seconds


def next_round(last: Round | None, queries: str, total: int, every_s: int, now_ms: int) -> tuple[int, Round]:
    """The Unix time (ms) of the next start, and the round as it is then.

    Rounds start at the first start and multiples of the interval after it; missed ones are made up once. `queries` is
    the digest of the `total` queries. An interrupted round resumes; if the queries have changed it starts again as the
    same round, so that results found twice have one id.
    """
    if last is None or last.started_ms > now_ms + every_s * 1000:  # or the clock was set back
        return now_ms, Round(started_ms=now_ms, queries=queries, total=total)
    if not last.finished:
        same = last.queries == queries and last.total == total
        return now_ms, last if same else Round(started_ms=last.started_ms, queries=queries, total=total)
    passed = max(1, (now_ms - last.started_ms) // (every_s * 1000))
    started_ms = last.started_ms + passed * every_s * 1000
    return max(started_ms, now_ms), Round(started_ms=started_ms, queries=queries, total=total)
