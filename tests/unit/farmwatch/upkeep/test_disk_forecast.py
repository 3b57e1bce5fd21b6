"""The forecast of `farmwatch log topics`: pace, end of the growth, full disk, and what retention removes."""

from __future__ import annotations

import pytest

from farmwatch.upkeep.disk_forecast import forecast, topic_growths
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.memory.log import MemoryLog
from tests.support.worlds import NOON

DAY_MS = 86_400_000
MIB = 1 << 20


def _log(days: int, **limits: int) -> MemoryLog:
    """A log of a MiB a day in the topic `a` and a quarter of it in the compacted topic `c`, written until NOON."""
    log = MemoryLog()
    log.create([Topic("a", 2, CleanupPolicy.DELETE, **limits), Topic("c", 1, CleanupPolicy.COMPACT)])
    for day in range(days, 0, -1):
        at = NOON - day * DAY_MS
        log.append([Output("a", p, b"k", bytes(MIB // 2), timestamp_ms=at) for p in range(2)])
        log.append([Output("c", 0, b"%d" % day, bytes(MIB // 4), timestamp_ms=at)])
    return log


def test_the_disk_is_full_when_the_growth_has_taken_what_is_free() -> None:
    """Ten days of 1.25 MiB: 25 MiB more last 20 days. A topic at its limit grows no more: then 100 days."""
    growths, age_days = topic_growths(_log(10), NOON)
    assert age_days == 10
    found = forecast(growths, 25 * MIB)
    assert found.full_in_days == pytest.approx(20, abs=0.1)
    assert found.bytes_a_day == pytest.approx(1.25 * MIB, rel=0.01)
    growths, _ = topic_growths(_log(10, retention_ms=10 * DAY_MS), NOON)
    assert forecast(growths, 25 * MIB).full_in_days == pytest.approx(100, abs=1)


def test_retention_by_time_and_by_size_ends_the_growth() -> None:
    """Without compacted topics a limit keeps the disk from ever filling."""
    for limits in ({"retention_ms": 4 * DAY_MS}, {"retention_bytes": 2 * MIB}):
        growths, _ = topic_growths(_log(10, **limits), NOON)
        assert forecast([growth for growth in growths if growth.name == "a"], 1).full_in_days is None


def test_a_young_log_has_no_pace() -> None:
    """Records of an hour say nothing of a day."""
    log = MemoryLog()
    log.create([Topic("a", 1)])
    log.append([Output("a", 0, b"k", bytes(MIB), timestamp_ms=NOON - 3_600_000)])
    ((growth,), age_days) = topic_growths(log, NOON)
    assert growth.bytes_a_day == 0
    assert age_days < 1
    assert forecast([growth], 1).full_in_days is None
