"""Fetched records that a poll had no room for: they wait here in order, by partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable

from stream.log import Message


class FetchBuffer:
    """A queue of messages from which partitions may be held back or dropped."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()

    def add(self, messages: Iterable[Message]) -> None:
        """Put behind what waits."""
        self._waiting.extend(messages)

    def take(self, flowing: Container[int], max_records: int, max_bytes: int) -> list[Message]:
        """Next messages of the `flowing` partitions within both limits, at least one if there is any."""
        taken: list[Message] = []
        held: list[Message] = []
        size = 0
        while self._waiting and len(taken) < max_records:
            message = self._waiting.popleft()
            if message.partition not in flowing:
                held.append(message)
                continue
            size += len(message.key) + len(message.value or b"")
            if taken and size > max_bytes:
                self._waiting.appendleft(message)
                break
            taken.append(message)
        self._waiting.extendleft(reversed(held))
        return taken

    def drop(self, partitions: Container[int]) -> None:
        """Throw away what waits of these partitions."""
        self._waiting = deque(message for message in self._waiting if message.partition not in partitions)

    def clear(self) -> None:
        """Throw away all."""
        self._waiting.clear()

    def holds(self, partition: int) -> bool:
        """True when something of this partition waits."""
        return any(message.partition == partition for message in self._waiting)
