"""The processes of replays that the console began: they end with it, and a button or a command resumes them.

Those of a console that was killed finish their replays.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from farmwatch.daemon.supervisor import this_program

_END_S = 10.0  # for a replay to commit what it has


class Replays:
    """Starts `farmwatch replay` for runs that are in the log already."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        """`flags` give the processes the configuration of this one."""
        self._flags = flags
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, run: str) -> None:
        """Work on this run in a process of its own, whose errors are lines of this one."""
        self._processes[run] = subprocess.Popen(
            [*this_program(), "replay", "--name", run, *self._flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        )

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
