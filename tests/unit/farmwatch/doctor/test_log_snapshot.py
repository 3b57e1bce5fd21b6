"""A look at a log: what `status` asks it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from farmwatch.config.config import Config
from farmwatch.doctor.status import StatusReader
from stream.log.contract import Log
from stream.log.forwarding import ForwardingLog
from stream.memory.log import MemoryLog
from stream.schema.topics import all_topics

ASKED = ("topics", "definitions", "beginning", "end", "committed", "sizes", "read")


class _Counting(ForwardingLog):
    """Counts what it is asked."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.asked: Counter[tuple[Any, ...]] = Counter()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ASKED:
            return found

        def counted(*about: Any, **more: Any) -> Any:
            self.asked[name, *map(str, about)] += 1
            return found(*about, **more)

        return counted


def test_a_status_asks_for_each_offset_once() -> None:
    """On a broker each question is a request: none is asked twice in a look, whatever checks need its answer."""
    log = _Counting(MemoryLog())
    log.create(all_topics(4, "e"))
    reader = StatusReader(log, Config())
    log.asked.clear()
    reader.read()
    assert {about: count for about, count in log.asked.items() if count > 1} == {}
    assert log.asked["end", "hits"] == 1
