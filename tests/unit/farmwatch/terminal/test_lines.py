"""What threads write to stderr at the same time."""

from __future__ import annotations

import subprocess
import sys

_TWO_WRITERS = """
import sys, threading
import structlog
from farmwatch.terminal.messages import message, start_logging
sys.setswitchinterval(1e-6)
start_logging()
_log = structlog.get_logger()
def tell():
    for _ in range(5000):
        _log.info("event")
telling = threading.Thread(target=tell)
telling.start()
for _ in range(5000):
    message("sentence")
telling.join()
"""


def test_lines_of_two_threads_do_not_mix() -> None:
    """Messages and log events of a process stay whole lines, so that a reader of its stderr finds them."""
    said = subprocess.run([sys.executable, "-c", _TWO_WRITERS], stderr=subprocess.PIPE, text=True, check=True).stderr
    lines = said.splitlines()
    assert lines.count("sentence") == 5000
    assert sum(line.startswith("timestamp=") and line.endswith("event=event") for line in lines) == 5000
