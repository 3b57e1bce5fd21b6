"""A process per role, restarted when one dies, drained together on one signal.

The supervisor holds no log and no state: it only starts, watches and stops. Each child leads a process group, so that
Ctrl-C reaches it through the supervisor only, and what it leaves behind is cleared away with it. Each child holds the
read end of a pipe as its standard input; when the supervisor dies, however suddenly, the pipe ends and the child drains
by itself (`follow_parent`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from farmwatch.config.settings import UpSettings
from stream.text.user_errors import Exit

_log = structlog.get_logger()
_LOOK_S = 0.1  # between looks at the children
_HEALTHY_S = 60.0  # a child that lived this long starts its back-off anew
_RESTARTS = "RESTARTS_OF_THIS_ROLE"  # variable by which a child hears how often it was started before


@dataclass(slots=True)
class _Child:
    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0  # when to start (again)
    failures: int = 0
    starts: int = 0


class Supervisor:
    """Keeps the children running until told to stop."""

    def __init__(
        self,
        children: Mapping[str, Sequence[str]],
        settings: UpSettings,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the command line of each child, by its name in the logs; nothing starts before `run`."""
        self._children = [_Child(name, command) for name, command in children.items()]
        self._settings = settings
        self._monotonic = monotonic

    def run(self, stop: threading.Event, hurry: threading.Event | None = None) -> Exit:
        """Start all and watch until `stop`, then drain; `hurry` cuts the drain short.

        Returns OK, USAGE when a child refused its configuration, PROBLEM when one had to be killed.
        """
        outcome = Exit.OK
        try:
            while not stop.is_set():
                for child in self._children:
                    if self._look_after(child) == Exit.USAGE:
                        outcome = Exit.USAGE
                        stop.set()
                        break
                stop.wait(_LOOK_S)
        finally:
            clean = self._drain(hurry or threading.Event())
        return outcome if clean or outcome != Exit.OK else Exit.PROBLEM

    def pids(self) -> dict[str, int]:
        """Name -> process id of the children that run now."""
        return {child.name: child.process.pid for child in self._children if child.process is not None}

    def _look_after(self, child: _Child) -> int | None:
        now = self._monotonic()
        if child.process is None:
            if now >= child.due_at:
                self._start(child, now)
            return None
        code = _ended(child.process)
        if code is None:
            return None
        child.process = None
        if code == Exit.USAGE:  # it said why; trying again cannot help
            _log.error("role_refused", role=child.name, code=code)
            return code
        lived_s = now - child.started_at
        child.failures = 1 if lived_s >= _HEALTHY_S else child.failures + 1
        wait_s = min(self._settings.restart_max_s, self._settings.restart_min_s * 2.0 ** min(child.failures - 1, 20))
        child.due_at = now + wait_s
        _log.warning("role_died", role=child.name, code=code, lived_s=round(lived_s, 1), restart_in_s=wait_s)
        return None

    def _start(self, child: _Child, now: float) -> None:
        child.process = subprocess.Popen(
            list(child.command),
            stdin=subprocess.PIPE,
            process_group=0,
            env={**os.environ, _RESTARTS: str(child.starts)},
        )
        child.starts += 1
        child.started_at = now
        _log.info("role_started", role=child.name, pid=child.process.pid)

    def _drain(self, hurry: threading.Event) -> bool:
        """Ask all to finish, wait, kill what is left; True if nothing had to be killed."""
        running = {child.name: child.process for child in self._children if child.process is not None}
        for process in running.values():
            with suppress(ProcessLookupError):
                process.terminate()
        started = self._monotonic()
        deadline = started + self._settings.drain_s
        # looked at once more at the end: a hurry must not kill, nor blame, what has ended meanwhile
        while running := {name: process for name, process in running.items() if _ended(process) is None}:
            if self._monotonic() >= deadline or hurry.is_set():
                break
            hurry.wait(_LOOK_S)
        for name, process in running.items():
            drained_s = round(self._monotonic() - started, 1)
            _log.error("role_killed", role=name, drained_s=drained_s, hurried=hurry.is_set())
            _kill_group(process.pid)
            process.wait()
        for child in self._children:
            child.process = None
        return not running


def restarts() -> int:
    """In a child: how often the supervisor has started this role again; 0 without a supervisor."""
    said = os.environ.get(_RESTARTS, "")
    return int(said) if said.isdecimal() else 0


def follow_parent(stop: threading.Event, deadline_s: float, descriptor: int = 0) -> None:
    """In a child: set `stop` when the pipe on standard input ends, that is when the supervisor is gone.

    What does not end within `deadline_s` then is ended from here, so that no orphan holds partitions.
    """

    def watch() -> None:
        with suppress(OSError):
            while os.read(descriptor, 64):
                pass
        if not stop.is_set():
            _log.warning("supervisor_gone")
            stop.set()
        time.sleep(deadline_s)
        os._exit(Exit.PROBLEM)

    threading.Thread(target=watch, name="follow-parent", daemon=True).start()


def stop_on_signals(stop: threading.Event, hurry: threading.Event | None = None) -> None:
    """SIGTERM and SIGINT set `stop`; the second one sets `hurry`. Call from the main thread."""

    def handle(number: int, _frame: object) -> None:
        if stop.is_set() and hurry is not None:
            hurry.set()
        elif hurry is not None and number == signal.SIGINT:
            os.write(2, b"draining; Ctrl-C again ends it at once\n")  # not print: it may be what was interrupted
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def this_program() -> list[str]:
    """The command line that starts farmwatch again with the same interpreter."""
    return [sys.executable, "-m", "farmwatch"]


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """Exit code of a child that ended, its process group cleared away; None while it runs."""
    if process.returncode is not None:
        return process.returncode
    # Seen but not reaped: as long as the zombie holds the id, no stranger can have it and be hit by the kill below.
    if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return None
    _kill_group(process.pid)
    return process.wait()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
