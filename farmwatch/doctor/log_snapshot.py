"""A log whose offsets and sizes stand still for one look at it.

On a broker each question is a request, and checks ask the same ones: `status` would wait for a hundred of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stream.log.contract import Log, Message, Topic, TopicSize
from stream.log.forwarding import ForwardingLog
from stream.schema.topics import CONTROL


class LogSnapshot(ForwardingLog):
    """Asks `log` once for each offset, size and row of `control`."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._known: dict[tuple[str, ...], Any] = {}

    def _once(self, name: str, *about: str) -> Any:
        if (name, *about) not in self._known:
            self._known[name, *about] = getattr(self._log, name)(*about)
        return self._known[name, *about]

    def definitions(self) -> Mapping[str, Topic]:
        known: Mapping[str, Topic] = self._once("definitions")
        return known

    def topics(self) -> Mapping[str, int]:
        known: Mapping[str, int] = self._once("topics")
        return known

    def beginning(self, topic: str) -> list[int]:
        known: list[int] = self._once("beginning", topic)
        return known

    def end(self, topic: str) -> list[int]:
        known: list[int] = self._once("end", topic)
        return known

    def committed(self, group: str, topic: str) -> list[int | None]:
        known: list[int | None] = self._once("committed", group, topic)
        return known

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        if ("sizes",) not in self._known:
            self._known["sizes",] = self._log.sizes(list(self.topics()))
        return {topic: size for topic, size in self._known["sizes",].items() if topic in topics}

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        if topic != CONTROL:
            return self._log.read(topic, partition, start, stop)
        if ("read",) not in self._known:
            self._known["read",] = list(self._log.read(CONTROL, 0))
        return (row for row in self._known["read",] if start <= row.offset and (stop is None or row.offset < stop))
