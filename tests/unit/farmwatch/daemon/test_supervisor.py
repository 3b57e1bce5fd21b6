"""The supervisor keeps its children running, drains them, and leaves no orphan."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from farmwatch.commands.start.running import child_command
from farmwatch.daemon.signals import stopping_on_signals
from farmwatch.daemon.supervisor import Supervisor, this_program
from stream.schema.roles import Role
from stream.text.user_errors import Exit
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

_PATIENCE_S = 20.0

_DRAINS = """
import pathlib, signal, sys, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
folder = pathlib.Path(sys.argv[1])
from farmwatch.daemon.supervisor import restarts
(folder / "started").open("a").write("xyz"[restarts()])
stop.wait()
(folder / "drained").touch()
"""
_STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(pathlib.Path(sys.argv[1]) / "started").touch()
time.sleep(600)
"""
_FOLLOWS = """
import pathlib, sys, threading
from farmwatch.daemon.supervisor import follow_parent
stop = threading.Event()
follow_parent(stop, 5.0)
folder = pathlib.Path(sys.argv[1])
(folder / "started").touch()
stop.wait()
(folder / "drained").touch()
"""
_PARENT = """
import sys, threading
from farmwatch.daemon.supervisor import Supervisor, this_program
Supervisor({"x": [sys.executable, "-c", sys.argv[1], sys.argv[2]]}, 30.0).run(threading.Event())
"""


def _child(code: str, folder: Path) -> list[str]:
    return [sys.executable, "-c", code, str(folder)]


class _Running:
    """A supervisor in a thread; `extra` is the command of a child that may fail."""

    def __init__(self, command: list[str], drain_s: float = 10.0, extra: list[str] | None = None) -> None:
        children = {"child": command} if extra is None else {"extra": extra, "child": command}
        self.supervisor = Supervisor(children, drain_s, extras=["extra"], restart_min_s=0.05, restart_max_s=0.2)
        self.stop, self.hurry = threading.Event(), threading.Event()
        self.outcome: Exit | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.outcome = self.supervisor.run(self.stop, self.hurry)

    def end(self) -> Exit | None:
        self.stop.set()
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()
        return self.outcome


@pytest.fixture
def run() -> Iterator[Callable[..., _Running]]:
    """Start supervisors, and wait until the child has made the file `ready`; all are ended after the test."""
    started: list[_Running] = []

    def start(
        command: list[str], drain_s: float = 10.0, extra: list[str] | None = None, *, ready: str = "started"
    ) -> _Running:
        started.append(_Running(command, drain_s, extra))
        if ready:
            wait_until((Path(command[-1]) / ready).exists, "the child", _PATIENCE_S)
        return started[-1]

    yield start
    for running in started:
        running.hurry.set()
        running.end()


def test_a_stop_lets_the_child_finish(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """On stop the child gets SIGTERM, ends by itself, and the outcome is OK."""
    running = run(_child(_DRAINS, tmp_path))
    assert running.end() == Exit.OK
    assert (tmp_path / "drained").exists()


def test_a_killed_child_is_started_again(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """After kill -9, a new child starts with its number of restarts, and drains."""
    running = run(_child(_DRAINS, tmp_path))
    started = tmp_path / "started"
    wait_until(lambda: started.read_text() == "x", "the start", _PATIENCE_S)
    os.kill(running.supervisor.pids()["child"], signal.SIGKILL)
    wait_until(lambda: started.read_text() == "xy", "the next start", _PATIENCE_S)
    assert running.end() == Exit.OK


def test_a_child_that_ignores_sigterm_is_killed_at_the_deadline(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """After drain_s, a child that ignores SIGTERM is killed, and the outcome is PROBLEM."""
    running = run(_child(_STUBBORN, tmp_path), 0.3)
    pid = running.supervisor.pids()["child"]
    assert running.end() == Exit.PROBLEM
    assert not _alive(pid)


def test_a_refused_configuration_stops_everything(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """Exit code 2 of a child means that a restart cannot help: the supervisor ends with it."""
    running = run(_child("import sys; sys.exit(2)", tmp_path), ready="")
    wait_until(lambda: running.outcome is not None, "the child", _PATIENCE_S)
    assert running.outcome == Exit.USAGE


def test_a_failing_extra_stops_nothing(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """An extra child that refuses its configuration is started again; the other one works and drains."""
    tries = "import pathlib, sys; (pathlib.Path(sys.argv[1]) / 'tries').open('a').write('x'); sys.exit(2)"
    running = run(_child(_DRAINS, tmp_path), extra=_child(tries, tmp_path))
    file = tmp_path / "tries"
    wait_until(lambda: file.exists() and len(file.read_text()) > 1, "the second try", _PATIENCE_S)
    assert running.end() == Exit.OK
    assert (tmp_path / "drained").exists() and (tmp_path / "started").read_text() == "x"


def test_a_child_that_cannot_be_started_is_started_later(
    tmp_path: Path, run: Callable[..., _Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system allows no further process for now, this is logged, and the supervisor goes on."""
    start, refusals = subprocess.Popen, iter([True, True])

    def popen(*given: Any, **named: Any) -> subprocess.Popen[bytes]:
        if next(refusals, False):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return start(*given, **named)

    monkeypatch.setattr(subprocess, "Popen", popen)
    with structlog.testing.capture_logs() as logs:
        running = run(_child(_DRAINS, tmp_path))
        assert running.end() == Exit.OK
    assert [entry["event"] for entry in logs].count("role_not_started") == 2


def test_an_extra_that_hangs_at_the_end_is_no_problem(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """An extra child that ignores SIGTERM is killed at the deadline, and the outcome is OK."""
    (tmp_path / "extra").mkdir()
    running = run(_child(_DRAINS, tmp_path), 1.0, _child(_STUBBORN, tmp_path / "extra"))
    wait_until((tmp_path / "extra" / "started").exists, "the extra child", _PATIENCE_S)
    pid = running.supervisor.pids()["extra"]
    assert running.end() == Exit.OK
    assert not _alive(pid)


def test_a_hurried_kill_is_logged(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """The event shows `hurried`, and not the time limit."""
    with structlog.testing.capture_logs() as events:
        running = run(_child(_STUBBORN, tmp_path), 300.0)
        running.hurry.set()
        assert running.end() == Exit.PROBLEM
    (killed,) = [event for event in events if event["event"] == "role_killed"]
    assert killed["hurried"] and "drain_s" not in killed


def test_the_first_ctrl_c_explains_the_second(capfd: pytest.CaptureFixture[str]) -> None:
    """The first SIGINT stops with a message; the second hurries without one."""
    stop, hurry = threading.Event(), threading.Event()
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with stopping_on_signals(stop, hurry):
        signal.raise_signal(signal.SIGINT)
        assert stop.wait(_PATIENCE_S) and not hurry.is_set()
        signal.raise_signal(signal.SIGINT)
        assert hurry.wait(_PATIENCE_S)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert capfd.readouterr().err == "draining; Ctrl-C again ends it at once\n"


def test_children_end_with_a_killed_supervisor(tmp_path: Path) -> None:
    """After kill -9 of the supervisor, the children drain and end."""
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, _FOLLOWS, str(tmp_path)], cwd=ROOT)
    try:
        wait_until((tmp_path / "started").exists, "the child", _PATIENCE_S)
        assert not (tmp_path / "drained").exists()
    finally:
        parent.kill()
        parent.wait()
    wait_until((tmp_path / "drained").exists, "the child", _PATIENCE_S)


def test_processes_of_a_dead_child_are_killed(tmp_path: Path, run: Callable[..., _Running]) -> None:
    """A process that a killed child started does not outlive it."""
    code = (
        "import subprocess, sys, pathlib, time\n"
        "helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "path = pathlib.Path(sys.argv[1]) / 'helper'\n"
        "path.with_suffix('.new').write_text(str(helper.pid))\n"
        "path.with_suffix('.new').rename(path)\n"
        "time.sleep(600)\n"
    )
    running = run(_child(code, tmp_path), 0.2, ready="helper")
    helper = int((tmp_path / "helper").read_text())
    os.kill(running.supervisor.pids()["child"], signal.SIGKILL)
    wait_until(lambda: not _alive(helper), "the child", _PATIENCE_S)


def _alive(pid: int) -> bool:
    """True for a running process; a zombie that waits to be reaped by init is not one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return False
    return fields[0] not in ("Z", "X")


_UNREAD = """
import os, signal, threading
from farmwatch.commands.start.running import child_command
from farmwatch.daemon.signals import stopping_on_signals

stop, hurry = threading.Event(), threading.Event()
stopping = stopping_on_signals(stop, hurry)
stopping.__enter__()
reading, writing = os.pipe()
os.dup2(writing, 2)
os.close(reading)
os.close(writing)
for event in (stop, hurry):
    signal.raise_signal(signal.SIGINT)
    event.wait()
"""


def test_signals_stop_a_role_whose_messages_nobody_reads() -> None:
    """With `up 2>&1 | tee`, Ctrl-C ends tee, too, and the hint goes nowhere."""
    assert subprocess.run([sys.executable, "-c", _UNREAD], cwd=ROOT, timeout=60, check=False).returncode == 0


_STORM = """
import os, signal, subprocess, sys, threading
from farmwatch.commands.start.running import child_command
from farmwatch.daemon.signals import stopping_on_signals

stop, hurry = threading.Event(), threading.Event()
stopping = stopping_on_signals(stop, hurry)
stopping.__enter__()
send = "import os,signal,sys\\nfor n in range(60000): os.kill(int(sys.argv[1]), (signal.SIGTERM, signal.SIGINT)[n % 2])"
storm = subprocess.Popen([sys.executable, "-c", send, str(os.getpid())])
while storm.poll() is None:
    for _ in range(100):
        stop.clear()
        stop.wait(0.0001)
hurry.wait()
os._exit(0)  # the last signals may still come while an orderly end restores their deadly defaults
"""


def test_signals_that_interrupt_each_other_do_not_hang_a_role() -> None:
    """A service manager signals the whole group while the supervisor signals each role."""
    done = subprocess.run([sys.executable, "-c", _STORM], cwd=ROOT, timeout=60, check=False, stderr=subprocess.DEVNULL)
    assert done.returncode == 0


def test_files_of_the_working_folder_are_not_imported(tmp_path: Path) -> None:
    """A role starts in a folder that has a `stream.py` and a folder `scoring`."""
    (tmp_path / "stream.py").write_text("raise SystemExit('of the working folder')")
    (tmp_path / "scoring").mkdir()
    (tmp_path / "scoring" / "__init__.py").write_text("raise SystemExit('of the working folder')")
    command = [*child_command(Role.SCORE, "host-1", []), "--help"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    imported = [*this_program()[:2], "-c", "import scoring, stream"]
    assert subprocess.run(imported, cwd=tmp_path, check=False).returncode == 0
