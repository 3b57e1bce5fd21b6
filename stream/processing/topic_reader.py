"""Reads records outside of a stage's loop; unreadable records are reported and skipped.

`on_bad` receives them, or else the function given to `reporting_to`; the default logs a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TypeVar

import structlog

from stream.log.contract import Log, Message
from stream.log.errors import BadRecord
from stream.processing.dead_letters import DeadLetter
from stream.processing.heartbeat import is_heartbeat
from stream.schema.records import R, read
from stream.text.wording import counted

_log = structlog.get_logger()
T = TypeVar("T")
OnBad = Callable[[Message, BadRecord], None]


def messages_at(log: Log, topic: str, partition: int, offsets: Sequence[int], near: int) -> Iterator[Message]:
    """The stored messages at these ascending offsets. Gaps of at most `near` offsets are read over."""
    cuts = [place for place, (one, other) in enumerate(pairwise(offsets), 1) if other - one > near]
    for first, end in pairwise([0, *cuts, len(offsets)] if offsets else []):
        wanted = set(offsets[first:end])
        read_over = log.read(topic, partition, offsets[first], offsets[end - 1] + 1)
        yield from (message for message in read_over if message.offset in wanted)


def records_of(kind: type[R], messages: Iterable[Message], on_bad: OnBad | None = None) -> Iterator[tuple[Message, R]]:
    """The records of `messages` without heartbeats and tombstones; `on_bad` receives unreadable ones and may raise."""
    return ((message, record) for message, record in rows_of(kind, messages, on_bad) if record is not None)


def rows_of(
    kind: type[R], messages: Iterable[Message], on_bad: OnBad | None = None
) -> Iterator[tuple[Message, R | None]]:
    """As `records_of`, with tombstones: their record is None."""
    rows = (message for message in messages if not is_heartbeat(message))
    return _parsed(lambda message: None if message.value is None else read(kind, message), rows, on_bad)


def dead_letters_of(messages: Iterable[Message], on_bad: OnBad | None = None) -> Iterator[tuple[Message, DeadLetter]]:
    """As `records_of`, for the topic of dead letters."""
    return _parsed(DeadLetter.read, messages, on_bad)


def _parsed(
    parse: Callable[[Message], T], messages: Iterable[Message], on_bad: OnBad | None
) -> Iterator[tuple[Message, T]]:
    for message in messages:
        try:
            parsed = parse(message)
        except BadRecord as error:
            report(message, error, on_bad)
        else:
            yield message, parsed


def report(message: Message, error: BadRecord, on_bad: OnBad | None = None) -> None:
    """Report an unreadable message, as `records_of` does."""
    (on_bad or _on_bad.get())(message, error)


@contextmanager
def reporting_to(on_bad: OnBad) -> Iterator[None]:
    """Within the block and its thread, `on_bad` receives unreadable records."""
    token = _on_bad.set(on_bad)
    try:
        yield
    finally:
        _on_bad.reset(token)


class UnreadableCounter:
    """Counts unreadable records by topic, each once."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}  # topic -> place and fault of the first one
        self._places: dict[str, set[tuple[int, int]]] = {}

    def __call__(self, message: Message, error: BadRecord) -> None:
        self._first.setdefault(message.topic, f"partition {message.partition} offset {message.offset}: {error}")
        self._places.setdefault(message.topic, set()).add((message.partition, message.offset))

    def lines(self) -> list[str]:
        """One line per topic: number of unreadable records, and place and fault of the first one."""
        return [
            f"{counted(len(places), 'record')} of {topic} could not be read:"
            f" {'the first is ' if len(places) > 1 else ''}{self._first[topic]}"
            for topic, places in self._places.items()
        ]


def _warn(message: Message, error: BadRecord) -> None:
    place = {"topic": message.topic, "partition": message.partition, "offset": message.offset}
    _log.warning("record_unreadable", **place, error=str(error)[:300])


_on_bad: ContextVar[OnBad] = ContextVar("on_bad", default=_warn)
