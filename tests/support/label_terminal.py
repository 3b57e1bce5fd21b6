"""`farmwatch label` in a process on a pseudo-terminal, with its input and output."""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

from tests.support.paths import ROOT
from tests.support.waiting import wait_until

_DEADLINE_S = 30.0
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
_ENVIRONMENT |= {"TERM": "xterm", "PS1": "$ "}


class Desk:
    """A process on a new terminal, as a context manager; it is ended with the block."""

    def __init__(self, command: list[str], folder: Path, *, columns: int = 80, rows: int = 24, file_cap: int = -1):
        """`command` without its interpreter; it may write files of up to `file_cap` bytes."""
        self.shown = ""
        self._read_to = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                if file_cap >= 0:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (file_cap, file_cap))
                os.chdir(folder)
                root = str(ROOT)
                os.execve(command[0], command, {**_ENVIRONMENT, "PYTHONPATH": root, "HOME": str(folder)})
            finally:
                os._exit(127)

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def wait_for(self, text: str) -> str:
        """Read until `text` appears after the last wait; returns all text since then."""
        until = time.monotonic() + _DEADLINE_S
        while (at := self.shown.find(text, self._read_to)) < 0:
            assert time.monotonic() < until, f"{text!r} was never shown: {self.shown[-2000:]!r}"
            assert self._read(), f"it ended before {text!r} was shown: {self.shown[-2000:]!r}"
        since = self.shown[self._read_to : at + len(text)]
        self._read_to = at + len(text)
        return since

    def echoes(self) -> bool:
        """Whether the terminal is in a shell's mode: whole lines, with echo."""
        flags: int = termios.tcgetattr(self.fd)[3]
        return flags & termios.ICANON != 0 and flags & termios.ECHO != 0

    def wait_for_echo(self, wanted: bool) -> None:
        """Wait until the terminal enters or leaves a shell's mode."""
        wait_until(lambda: self.echoes() is wanted, f"a terminal that {'echoes' if wanted else 'does not echo'}")

    def end(self) -> int:
        """Read until the process has ended; returns its exit code, negative for a signal."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.fd], [], [], _DEADLINE_S)
        assert ready, f"nothing happens any more: {self.shown[-2000:]!r}"
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # on Linux: the other end is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def farmwatch(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "farmwatch", *arguments]
