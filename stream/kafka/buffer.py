"""A buffer for fetched records beyond a poll's limits, in order; background topics have their own queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Container, Iterable

from stream.log.contract import Message


class FetchBuffer:
    """A queue of messages; partitions can be held back or dropped."""

    def __init__(self, background: Collection[str] = ()) -> None:
        self._background = background
        self._live: deque[Message] = deque()
        self._later: deque[Message] = deque()  # of background topics

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            (self._later if message.topic in self._background else self._live).append(message)

    def take(
        self, flowing: Container[int], max_records: int, max_bytes: int, *, background: bool = False
    ) -> list[Message]:
        """Take the next messages of the `flowing` partitions within both limits, at least one if available."""
        waiting = self._later if background else self._live
        taken: list[Message] = []
        held: list[Message] = []
        size = 0
        while waiting and len(taken) < max_records:
            message = waiting.popleft()
            if message.partition not in flowing:
                held.append(message)
                continue
            size += len(message.key) + len(message.value or b"")
            if taken and size > max_bytes:
                waiting.appendleft(message)
                break
            taken.append(message)
        waiting.extendleft(reversed(held))
        return taken

    def drop(self, partitions: Container[int]) -> None:
        self._live = deque(message for message in self._live if message.partition not in partitions)
        self._later = deque(message for message in self._later if message.partition not in partitions)

    def clear(self) -> None:
        self._live.clear()
        self._later.clear()

    def holds(self, partition: int) -> bool:
        return any(message.partition == partition for waiting in (self._live, self._later) for message in waiting)

    def holds_background(self) -> bool:
        return bool(self._later)
