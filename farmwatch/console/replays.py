"""The processes of replays that the console began: they end with it, and a button or a command resumes them.

Those of a console that was killed finish their replays.
"""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Sequence

import structlog

from farmwatch.daemon.supervisor import this_program

_log = structlog.get_logger()
_END_S = 10.0  # for a replay to commit what it has


class Replays:
    """Starts `farmwatch replay` for runs that are in the log already."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        """`flags` give the processes the configuration of this one."""
        self._flags = flags
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, run: str) -> None:
        """Work on this run in a process of its own."""
        process = subprocess.Popen(
            [*this_program(), "replay", "--name", run, *self._flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        )
        self._processes[run] = process

        def follow() -> None:
            assert process.stderr is not None
            with process.stderr as stream:
                last = deque(stream, 1)
            if code := process.wait():
                _log.warning("replay_ended", run=run, code=code, said="".join(last).strip()[:300])

        threading.Thread(target=follow, name="replay", daemon=True).start()

    def has(self, run: str) -> bool:
        """Whether a process of this run is there."""
        return run in self._processes and self._processes[run].poll() is None

    def any(self) -> bool:
        """Whether one of the processes is there."""
        return any(process.poll() is None for process in list(self._processes.values()))

    def close(self) -> None:
        """End them; what they did is in the log."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
