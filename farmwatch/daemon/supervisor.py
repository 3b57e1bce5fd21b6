"""Runs a process per role: restarts a dead one, and drains all on one signal.

The supervisor has no log and no state: it only starts, checks and stops processes. Each child leads a process group, so
that Ctrl-C reaches it only through the supervisor, and its own children are killed with it. The standard input of a
child is a pipe from the supervisor: when the supervisor dies, the pipe ends and the child drains (`follow_parent`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from farmwatch.terminal.messages import OUT_OF_PROCESSES
from stream.text.user_errors import Exit

_log = structlog.get_logger()
_POLL_S = 0.1  # between checks of the children
_RESTART_MIN_S = 0.5  # before the first restart; doubles with each
_RESTART_MAX_S = 60.0
_HEALTHY_S = 60.0  # a child that ran for this long resets its back-off
_RESTARTS = "RESTARTS_OF_THIS_ROLE"  # environment variable of a child: its number of restarts


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
    """Keeps the children running until `stop` is set."""

    def __init__(
        self,
        children: Mapping[str, Sequence[str]],
        drain_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        extras: Collection[str] = (),
        *,
        restart_min_s: float = _RESTART_MIN_S,
        restart_max_s: float = _RESTART_MAX_S,
    ) -> None:
        """`children` maps the name in the logs to the command line; `run` starts them, and lets them drain `drain_s`.

        A failure of a child in `extras` has no effect on the others, nor on the outcome.
        """
        self._children = [_Child(name, command) for name, command in children.items()]
        self._drain_s, self._restart_min_s, self._restart_max_s = drain_s, restart_min_s, restart_max_s
        self._monotonic = monotonic
        self._extras = extras

    def run(self, stop: threading.Event, hurry: threading.Event | None = None) -> Exit:
        """Start the children, restart dead ones until `stop`, then drain; `hurry` cuts the drain short.

        Returns OK, USAGE if a child refused its configuration, PROBLEM if one had to be killed.
        """
        outcome = Exit.OK
        try:
            while not stop.is_set():
                for child in self._children:
                    if self._check(child) == Exit.USAGE:
                        outcome = Exit.USAGE
                        stop.set()
                        break
                stop.wait(_POLL_S)
        finally:
            clean = self._drain(hurry or threading.Event())
        return outcome if clean or outcome != Exit.OK else Exit.PROBLEM

    def pids(self) -> dict[str, int]:
        """Name -> process id of the running children."""
        return {child.name: child.process.pid for child in self._children if child.process is not None}

    def _check(self, child: _Child) -> int | None:
        now = self._monotonic()
        if child.process is None:
            if now >= child.due_at:
                self._start(child, now)
            return None
        code = _ended(child.process)
        if code is None:
            return None
        child.process = None
        if code == Exit.USAGE and child.name not in self._extras:  # a restart cannot help
            _log.error("role_refused", role=child.name, code=code)
            return code
        lived_s = now - child.started_at
        wait_s = self._put_off(child, now, lived_s)
        _log.warning("role_died", role=child.name, code=code, lived_s=round(lived_s, 1), restart_in_s=wait_s)
        return None

    def _put_off(self, child: _Child, now: float, lived_s: float) -> float:
        """Set when the child starts again; returns the wait."""
        child.failures = 1 if lived_s >= _HEALTHY_S else child.failures + 1
        wait_s = min(self._restart_max_s, self._restart_min_s * 2.0 ** min(child.failures - 1, 20))
        child.due_at = now + wait_s
        return wait_s

    def _start(self, child: _Child, now: float) -> None:
        try:
            child.process = subprocess.Popen(
                list(child.command),
                stdin=subprocess.PIPE,
                process_group=0,
                env={**os.environ, _RESTARTS: str(child.starts)},
            )
        except BlockingIOError:  # the other roles go on
            wait_s = self._put_off(child, now, 0.0)
            _log.error("role_not_started", role=child.name, said=OUT_OF_PROCESSES, restart_in_s=wait_s)
            return
        child.starts += 1
        child.started_at = now
        _log.info("role_started", role=child.name, pid=child.process.pid)

    def _drain(self, hurry: threading.Event) -> bool:
        """Send SIGTERM to all, wait, kill the rest. Returns True if none but extras had to be killed."""
        running = {child.name: child.process for child in self._children if child.process is not None}
        for process in running.values():
            with suppress(ProcessLookupError):
                process.terminate()
        started = self._monotonic()
        deadline = started + self._drain_s
        # checked once more at the end: a child that has just ended is not counted as killed
        while running := {name: process for name, process in running.items() if _ended(process) is None}:
            if self._monotonic() >= deadline or hurry.is_set():
                break
            hurry.wait(_POLL_S)
        for name, process in running.items():
            drained_s = round(self._monotonic() - started, 1)
            _log.error("role_killed", role=name, drained_s=drained_s, hurried=hurry.is_set())
            _kill_group(process.pid)
            process.wait()
        for child in self._children:
            child.process = None
        return running.keys() <= set(self._extras)


def restarts() -> int:
    """In a child: how often the supervisor has restarted this role; 0 without a supervisor."""
    value = os.environ.get(_RESTARTS, "")
    return int(value) if value.isdecimal() else 0


def follow_parent(stop: threading.Event, deadline_s: float, descriptor: int = 0) -> None:
    """In a child: set `stop` when the pipe on standard input ends, because the supervisor has died.

    A child that has not ended `deadline_s` later is ended, so that no orphan holds partitions.
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


def this_program() -> list[str]:
    """The command line that starts farmwatch again with the same interpreter.

    -P: modules in the working folder, as a file `stream.py`, are not imported.
    """
    return [sys.executable, "-P", "-m", "farmwatch"]


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """Exit code of an ended child, after killing the rest of its process group; None while it runs."""
    if process.returncode is not None:
        return process.returncode
    # WNOWAIT: while the zombie holds the id, the kill below cannot hit a new process with the same id.
    if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return None
    _kill_group(process.pid)
    return process.wait()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
