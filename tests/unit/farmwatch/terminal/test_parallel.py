"""Results of several processes come in order, and every process ends."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from farmwatch.terminal.parallel import ordered_map
from stream.text.user_errors import FarmwatchError
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

_PARENT = """
import sys, time
sys.path.insert(0, "tests/unit/farmwatch/terminal")
from test_parallel import ident, prepare
from farmwatch.terminal.parallel import ordered_map
if __name__ == "__main__":
    print(next(ordered_map(ident, iter(range(100)), 1, prepare, 0)), flush=True)
    time.sleep(600)
"""
_added: list[int] = []


def prepare(number: int) -> None:
    """Runs in each worker process."""
    _added.append(number)


def late_first(item: int) -> int:
    """The first item takes longest."""
    time.sleep(0.3 if item == 0 else 0)
    return item + _added[0]


def ident(_item: int) -> int:
    """The process id of the worker."""
    return os.getpid()


def die(_item: int) -> int:
    """Kills its own process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_results_come_in_the_order_of_the_work() -> None:
    """The first item ends last and is the first result; each process was prepared."""
    assert list(ordered_map(late_first, range(20), 2, prepare, 100)) == list(range(100, 120))


def test_little_is_read_ahead() -> None:
    """An endless input is read only as needed."""
    endless = itertools.count()
    results = ordered_map(ident, endless, 1, prepare, 0)
    next(results)
    assert next(endless) == 3


def test_a_killed_process_is_told() -> None:
    """A killed process (often for lack of memory) is one line, not a traceback or a hang."""
    with pytest.raises(FarmwatchError, match="--jobs"):
        list(ordered_map(die, [1], 1, prepare, 0))


def test_processes_end_with_a_killed_parent(tmp_path: Path) -> None:
    """After kill -9 of the command, no worker process is left."""
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, str(script)], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
    finally:
        parent.kill()
    wait_until(lambda: not _alive(worker), "the end of the worker")
    parent.communicate()


def _alive(pid: int) -> bool:
    """True for a running process; a zombie that waits to be reaped by init is not one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False
