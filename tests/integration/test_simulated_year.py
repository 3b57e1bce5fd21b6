"""A year of records with retention in compressed time: the disk stays within its budget, and the database shrinks."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from stream.embedded.log import EmbeddedLog
from stream.log.contract import CleanupPolicy, Output, Topic
from tests.support.worlds import TestClock

DAY_MS = 86_400_000
PARTITIONS = 4
BUDGET = 40_000_000  # the size limits of all topics


def _on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_year_stays_within_its_budget(tmp_path: Path) -> None:
    """Records of every size arrive for 365 days, 150 times as many in spring, with retention once a day.

    The folder never exceeds the limits by more than a third, and shrinks in the months after the burst.
    """
    clock, folder = TestClock(), tmp_path / "log"
    with closing(EmbeddedLog(folder, clock=clock, segment_bytes=1_000_000)) as log:
        log.create(
            [
                Topic("pages", PARTITIONS, retention_ms=30 * DAY_MS, retention_bytes=BUDGET // 2 // PARTITIONS),
                Topic("features", PARTITIONS, retention_ms=90 * DAY_MS, retention_bytes=BUDGET // 2 // PARTITIONS),
                Topic("sites", PARTITIONS, CleanupPolicy.COMPACT),
            ]
        )
        sizes = []
        for day in range(365):
            burst = 150 if 90 <= day < 100 else 1
            outputs = []
            for number in range(8 * burst):
                site, partition = f"s{(day + number) % 40}.example".encode(), number % PARTITIONS
                outputs += [
                    Output("pages", partition, site, os.urandom(9000)),
                    Output("features", partition, site, os.urandom(1500)),
                    Output("sites", partition, site, os.urandom(300)),
                ]
            log.append(outputs)
            log.expire(clock.now_ms)
            sizes.append(_on_disk(folder) - (folder / "log.sqlite-wal").stat().st_size)
            clock.turn(DAY_MS)
        assert max(sizes) < BUDGET * 4 / 3
        assert max(sizes[240:]) < 0.4 * max(sizes)
        assert sum(1 for p in range(PARTITIONS) for _ in log.read("sites", p)) <= 40 * PARTITIONS
        assert max(sizes) > 0.6 * BUDGET  # the burst fills it
