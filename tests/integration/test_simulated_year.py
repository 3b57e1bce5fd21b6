"""A year of records with retention, time compressed: disk, state and memory stay within bounds."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from stream.embedded.log import EmbeddedLog
from stream.log.contract import CleanupPolicy, Output, Topic
from tests.support.worlds import TestClock

DAY_MS = 86_400_000
PARTITIONS = 4
BUDGET = 20_000_000  # the size limits of all topics
STEP_DAYS = 5  # between two rounds of retention, or of the loop


def _on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_year_stays_within_its_budget(tmp_path: Path) -> None:
    """With 75 times as many records in spring, the folder exceeds the limits by a third at most, and shrinks again."""
    clock, folder = TestClock(), tmp_path / "log"
    with closing(EmbeddedLog(folder, clock=clock, segment_bytes=500_000)) as log:
        log.create(
            [
                Topic("pages", PARTITIONS, retention_ms=30 * DAY_MS, retention_bytes=BUDGET // 2 // PARTITIONS),
                Topic("features", PARTITIONS, retention_ms=90 * DAY_MS, retention_bytes=BUDGET // 2 // PARTITIONS),
                Topic("sites", PARTITIONS, CleanupPolicy.COMPACT),
            ]
        )
        sizes = []
        for day in [*range(0, 90, STEP_DAYS), *range(90, 100), *range(100, 365, STEP_DAYS)]:
            days = 1 if 90 <= day < 100 else STEP_DAYS
            burst = 75 if 90 <= day < 100 else 1
            outputs = []
            for number in range(8 * burst * days):
                site, partition = f"s{(day + number) % 40}.example".encode(), number % PARTITIONS
                outputs += [
                    Output("pages", partition, site, os.urandom(9000)),
                    Output("features", partition, site, os.urandom(1500)),
                    Output("sites", partition, site, os.urandom(300)),
                ]
            log.append(outputs)
            log.expire(clock.now_ms)
            sizes.append(_on_disk(folder) - (folder / "log.sqlite-wal").stat().st_size)
            clock.turn(days * DAY_MS)
        assert max(sizes) < BUDGET * 4 / 3
        assert max(sizes[-90 // STEP_DAYS :]) < 0.4 * max(sizes)
        assert sum(1 for p in range(PARTITIONS) for _ in log.read("sites", p)) <= 40 * PARTITIONS
        assert max(sizes) > 0.6 * BUDGET  # the burst fills it
