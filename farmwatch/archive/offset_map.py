"""Translates offsets of a log to those of its copy; only offsets named by groups, runs and dead letters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from stream.log.contract import At, Message
from stream.log.errors import BadRecord
from stream.processing.dead_letters import DeadLetter
from stream.schema.control import RUN_KEY
from stream.schema.runs import Run
from stream.schema.topics import CONTROL, DEAD_LETTERS

_GONE = -1  # in the header of a dead letter: its record is not in the copy
_ORIGIN_OFFSET = "origin-offset"


class OffsetMap:
    """Use in this order: note every offset, add the copied records partition by partition, then translate."""

    def __init__(self) -> None:
        self._noted: dict[At, set[int]] = {}
        self._sorted: dict[At, list[int]] = {}
        self._found: dict[At, dict[int, int]] = {}
        self._exact: set[tuple[At, int]] = set()

    def note(self, topic: str, offsets: Sequence[int | None]) -> None:
        """Note one offset per partition."""
        for partition, offset in enumerate(offsets):
            if offset is not None:
                self._noted.setdefault(At(topic, partition), set()).add(offset)

    def note_message(self, message: Message) -> None:
        """Note the offsets in a record of `control` or a dead letter."""
        if letter := _letter_in(message):
            self._noted.setdefault(At(letter.topic, letter.partition), set()).add(letter.offset)
        if run := _run_in(message):
            for window in (run.start, run.stop):
                for topic, offsets in window.items():
                    self.note(topic, offsets)

    def add(self, at: At, offsets: Sequence[int], copied: Sequence[int]) -> None:
        """Note that records at these offsets have been copied to those offsets."""
        noted = self._sorted.setdefault(at, sorted(self._noted.get(at, ())))
        translated = self._found.setdefault(at, {})
        for offset in noted[len(translated) : bisect_left(noted, offsets[-1] + 1)]:
            place = bisect_left(offsets, offset)
            translated[offset] = copied[place]
            if offsets[place] == offset:
                self._exact.add((at, offset))

    def end(self, at: At, first: int, end: int) -> None:
        """Note that the partition is copied. `first`: of the log; offsets below it become 0. `end`: of the copy."""
        translated = self._found.setdefault(at, {})
        for offset in self._noted.get(at, ()):
            translated[offset] = 0 if offset < first else translated.get(offset, end)

    def offsets(self, topic: str, offsets: Sequence[int | None]) -> list[int]:
        """The offsets of the copy, one per partition: of the same record, or else of the next copied one."""
        return [
            0 if offset is None else self._found.get(At(topic, partition), {}).get(offset, 0)
            for partition, offset in enumerate(offsets)
        ]

    def message(self, message: Message) -> Message:
        """A record of `control` or a dead letter, with the offsets of the copy."""
        if letter := _letter_in(message):
            at = At(letter.topic, letter.partition)
            offset = self._found[at][letter.offset] if (at, letter.offset) in self._exact else _GONE
            headers = {**message.headers, _ORIGIN_OFFSET: str(0 if letter.expired else offset)}
            return msgspec.structs.replace(message, headers=headers)
        if run := _run_in(message):
            moved = msgspec.structs.replace(run, start=self._window(run.start), stop=self._window(run.stop))
            return msgspec.structs.replace(message, value=msgspec.msgpack.encode(moved))
        return message

    def _window(self, window: Mapping[str, list[int]]) -> dict[str, list[int]]:
        return {topic: self.offsets(topic, offsets) for topic, offsets in window.items()}


def _letter_in(message: Message) -> DeadLetter | None:
    if message.topic == DEAD_LETTERS:
        with suppress(BadRecord):  # it is copied unchanged
            return DeadLetter.read(message)
    return None


def _run_in(message: Message) -> Run | None:
    if message.topic != CONTROL or not message.key.startswith(RUN_KEY) or message.value is None:
        return None
    return msgspec.msgpack.decode(message.value, type=Run)
