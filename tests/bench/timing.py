"""What benches measure with: the time of one call, and the labelled pages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import data_root


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    return wall_and_cpu_s(work)[1]


def wall_and_cpu_s(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall clock and of CPU of one call."""
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


def labelled_pages_folder() -> Path:
    """The folder of the labelled pages. Ends the process where it is not there."""
    folder = data_root() / "data" / "pages"
    if not folder.is_dir():
        sys.exit(f"the labelled pages are not at {folder}: set FARMWATCH_TEST_DATA")
    return folder
