"""The screen of `up` on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.front_door import PARTITIONS
from tests.support.paths import ROOT

_PROGRAM = """
import os, sys, threading, time
import structlog
from farmwatch.commands.start import up_screen
from farmwatch.config.config import load
from stream.schema.roles import Role
up_screen._EVERY_S = 0.2
stop = threading.Event()
config = load(None, ["log.url=" + sys.argv[1], "log.partitions=" + sys.argv[2], "console.token=t0ken"], {}).config
with up_screen.up_screen(config, list(Role), stop) as last_lines:
    structlog.get_logger().info("an_event")
    os.system("echo of a child >&2")
    time.sleep(4)
    if sys.argv[3] == "signal":
        stop.set()
        time.sleep(0.5)
if sys.argv[3] == "failure":
    print(*last_lines())
"""


@pytest.mark.parametrize("end", ["signal", "failure"])
def test_the_terminal_shows_the_state_and_a_file_gets_the_log(finished: str, end: str) -> None:
    """The console's address first, the status, the file of the log at the end; the file's last lines on failure."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _PROGRAM, finished, str(PARTITIONS), end]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT)
    os.close(theirs)
    seen = b""
    while (more := _read(ours)) and (seen := seen + more):
        pass
    assert process.wait() == 0
    shown = seen.decode().replace("\r\n", "")  # long paths are folded
    file = Path(finished.partition(":")[2]) / "up.log"
    assert shown.index("http://127.0.0.1:9480/?token=t0ken") < shown.index("share  ") < shown.rindex(f"log    {file}")
    assert ("draining; Ctrl-C again ends it at once" in shown) == (end == "signal")
    assert ("event=an_event" in shown) == ("of a child" in shown) == (end == "failure")
    written = file.read_text()
    assert "event=an_event role=supervisor" in written and "of a child" in written


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # its other side is closed
        return b""
