"""Dead letters: their format, and the breaker that stops a stage after too many."""

from __future__ import annotations

from collections import deque

import msgspec

from stream.log.contract import Message, Output
from stream.log.errors import BadRecord, StreamError
from stream.schema.topics import DEAD_LETTERS

_ERROR_CHARS = 500  # of an error's text; it may quote crawled content


class BreakerOpen(StreamError):
    """Too many records fail: the stage waits. The operator reads the cause, fixes it, and restarts."""

    retriable = True


_ORIGIN = {"topic": "origin-topic", "partition": "origin-partition", "offset": "origin-offset"}  # names of headers


class DeadLetter(msgspec.Struct, frozen=True, rename=_ORIGIN):
    """A decoded dead letter: the origin of the record and the error."""

    topic: str
    partition: int
    offset: int
    stage: str
    error: str
    attempts: int
    key: bytes
    value: bytes | None
    run: str = ""  # the stage's run, or else the record's; "" = none
    expired: int = 0  # number of offsets from `offset` that expired unread; 0 = a single record
    retries: int = 0  # how often its record was retried before
    reason: str = ""  # class of the error

    @classmethod
    def read(cls, message: Message) -> DeadLetter:
        if message.damage:
            raise BadRecord(message.damage)
        reason = message.headers.get("error", "").partition(":")[0]  # of letters of version 0.1, which lack the header
        content = {"reason": reason, **message.headers, "key": message.key, "value": message.value}
        try:
            return msgspec.convert(content, cls, strict=False)
        except msgspec.ValidationError as error:
            raise BadRecord(f"not a dead letter: {error}") from error


def dead_letter(message: Message, stage: str, error: Exception, attempts: int, run: str = "") -> Output:
    """The dead letter of `message`, with origin and error in headers; for an expired span, the first offset."""
    reason = type(error).__name__
    text = "".join(c if c.isprintable() else " " for c in f"{reason}: {error}")
    headers = {
        **message.headers,
        "origin-topic": message.topic,
        "origin-partition": str(message.partition),
        "origin-offset": str(message.offset - max(0, message.expired - 1)),
        "stage": stage,
        "error": text[:_ERROR_CHARS],
        "reason": reason,
        "attempts": str(attempts),
        **({"run": run} if run else {}),
        **({"expired": str(message.expired)} if message.expired else {}),
    }
    return Output(DEAD_LETTERS, message.partition, message.key, message.value, headers)


class Breaker:
    """Opens when more than `share` of the last `window` records failed (and at least `least` of them)."""

    def __init__(self, *, window: int, share: float, least: int) -> None:
        self._outcomes: deque[bool] = deque(maxlen=window)
        self._share = share
        self._least = least

    def check(self, failed: list[bool], last_error: Exception | None = None) -> None:
        """Raise BreakerOpen with the last error if too many of the recent records, including `failed`, have failed."""
        recent = [*self._outcomes, *failed][-(self._outcomes.maxlen or 0) :]
        dead = sum(recent)
        if dead >= self._least and dead > self._share * len(recent):
            why = f"; the last one: {type(last_error).__name__}: {last_error}" if last_error is not None else ""
            raise BreakerOpen(f"{dead} of the last {len(recent)} records failed: the stage waits{why}")

    def committed(self, failed: list[bool]) -> None:
        self._outcomes.extend(failed)
