"""A terminal that is asked for single keys. It is left as it was found, however the process ends, short of kill -9.

Signals are only noted when they come, and acted on when the next key is waited for: what a process is about to keep is
kept whole, and no handler runs into half a screen.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import tty
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

REDRAW, CLOSED, SEVERAL = "redraw", "closed", "several"
_SEQUENCES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
}
_ESCAPE_S = 0.05  # until the rest of a sequence must be there
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TAKE = "\x1b[?1049h\x1b[?25l\x1b[?2004h"  # other screen, no cursor, pastes in brackets
_GIVE_BACK = "\x1b[?2004l\x1b[?25h\x1b[?1049l"


class SignalReceived(Exception):
    """A signal asks the process to end; the terminal is as it was when this leaves `asking`."""

    def __init__(self, number: int) -> None:
        """`number` of the signal."""
        super().__init__(signal.Signals(number).name)
        self.number = number


class Terminal:
    """Draws whole screens, and reads keys. Made by `asking`."""

    def __init__(self, keys: int, screen: int, encoding: str) -> None:
        """File descriptors of one terminal, and what it takes text in."""
        self._keys, self._screen, self._encoding = keys, screen, encoding
        self._found: list[int | list[bytes | int]] | None = None  # settings to go back to; None = not taken
        self._came: list[int] = []  # signals, not acted on yet
        # Written when a signal comes, before any handler in Python: it ends a wait that began meanwhile as well.
        self._woken, self.wake = os.pipe()
        os.set_blocking(self.wake, False)

    def size(self) -> os.terminal_size:
        """Columns and lines, at least 20 by 8."""
        columns, lines = 80, 24
        with suppress(OSError):
            columns, lines = os.get_terminal_size(self._screen)
        return os.terminal_size((max(20, columns or 80), max(8, lines or 24)))

    def draw(self, lines: Iterable[str]) -> None:
        """Show these lines, which hold no control characters and fit, and nothing else."""
        self._put("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")

    def key(self) -> str:
        """The next key: a small letter, a name of `_SEQUENCES`, or one of the three below. Raises Ended.

        REDRAW: the size changed, or the process was stopped meanwhile. CLOSED: the terminal is gone. SEVERAL: more than
        one key at once, as when something is pasted.
        """
        while True:
            while self._came:
                if self._act(self._came.pop(0)):
                    return REDRAW
            ready, _, _ = select.select([self._keys, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 512)
            elif key := self._read():
                return key

    def take(self) -> None:
        """Keys one by one from here on, and not echoed."""
        if self._found is None:
            self._found = termios.tcgetattr(self._keys)
        tty.setcbreak(self._keys)
        self._put(_TAKE)

    def give_back(self) -> None:
        """Leave the terminal as it was found."""
        if self._found is None:
            return
        found, self._found = self._found, None
        with suppress(OSError, termios.error):  # it may be gone
            self._put(_GIVE_BACK)
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._keys, termios.TCSAFLUSH, found)

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handler of signals: `key` acts on them."""
        self._came.append(number)

    def close(self) -> None:
        """Close what this opened itself."""
        os.close(self._woken)
        os.close(self.wake)

    def _act(self, number: int) -> bool:
        """Whether the screen has to be drawn anew."""
        if number in _ENDING:
            raise SignalReceived(number)
        if number == signal.SIGTSTP:
            self.give_back()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # stands still here until it goes on
            signal.signal(number, self.note)
            self.take()
            self._came = [later for later in self._came if later != signal.SIGCONT]  # or keys typed since were dropped
        elif number == signal.SIGCONT:
            self.take()  # the shell set the terminal to its own taste meanwhile
        return True

    def _read(self) -> str:
        try:
            typed = os.read(self._keys, 1024)
        except OSError:
            return CLOSED
        if typed == b"\x1b" and select.select([self._keys], [], [], _ESCAPE_S)[0]:
            typed += os.read(self._keys, 1024)
        if not typed:
            return CLOSED
        if typed in _SEQUENCES:
            return _SEQUENCES[typed]
        if typed.startswith(b"\x1b["):
            return SEVERAL if b"\x1b[200~" in typed else ""
        different = set(typed.decode("latin-1").lower())
        return different.pop() if len(different) == 1 else SEVERAL  # a key held down is one key

    def _put(self, text: str) -> None:
        data = memoryview(text.encode(self._encoding, "replace"))
        while data:
            data = data[os.write(self._screen, data) :]


@contextmanager
def asking(keys: int, screen: int, encoding: str = "utf-8") -> Iterator[Terminal]:
    """The terminal, while keys are asked for; given back at the end, whatever happens. From the main thread only."""
    terminal = Terminal(keys, screen, encoding)
    noted = (*_ENDING, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
    before = {number: signal.signal(number, terminal.note) for number in noted}
    woke_before = signal.set_wakeup_fd(terminal.wake, warn_on_full_buffer=False)
    try:
        terminal.take()
        yield terminal
    finally:
        terminal.give_back()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woke_before)
        terminal.close()


def end_by(number: int) -> None:
    """End this process as the signal would have ended it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
