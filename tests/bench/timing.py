"""Shared parts of the benches: arguments, times, memory, separate processes, the labelled pages."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import zstandard

from tests.support.paths import data_root


def argument(place: int, default: int) -> int:
    """The number at this place of the command line (1 = the first)."""
    return int(sys.argv[place]) if len(sys.argv) > place else default


def cpu_s(work: Callable[[], object]) -> float:
    return wall_and_cpu_s(work)[1]


def wall_and_cpu_s(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall clock and of CPU of one call."""
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


def memory_mib(field: str = "VmRSS", pid: int | str = "self") -> float:
    """Memory of a process: VmRSS now, VmHWM the largest so far, RssAnon without mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def processes_cpu_s(pid: int) -> float:
    """CPU seconds of a process and its children, with those that have ended."""
    spent = 0
    for process in (pid, *children(pid)):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        spent += sum(map(int, fields[11:15]))  # its own, and that of its ended children
    return spent / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Child processes of all threads of a process."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


def apart(work: Callable[..., Any], *args: Any) -> Any:
    """Call `work` in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a .jsonl.zst file."""
    with path.open("rb") as file:
        for line in zstandard.ZstdDecompressor().stream_reader(file).read().split(b"\n"):
            if line:
                yield json.loads(line)


def labelled_pages_folder() -> Path:
    """The folder of the labelled pages. Ends the process if it is missing."""
    folder = data_root() / "data" / "pages"
    if not folder.is_dir():
        sys.exit(f"the labelled pages are not at {folder}: set FARMWATCH_TEST_DATA")
    return folder
