"""The terminal of `farmwatch label`: whole screens and single keys. curses restores it at the end.

Signals are recorded when they arrive, and act when the next key is read, so that no answer is cut off while it is
written.
"""

from __future__ import annotations

import curses
import os
import select
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from stream.text.user_errors import FarmwatchError

REDRAW, CLOSED, SEVERAL = "redraw", "closed", "several"
_NAMES = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_PPAGE: "page up",
    curses.KEY_NPAGE: "page down",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_RESIZE: REDRAW,
}
_ESCAPE_MS = 50  # time for the rest of a key sequence
_LOOK_MS = 100  # a signal acts within this time
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


class SignalReceived(Exception):
    """A signal asks the process to end; the terminal is restored when this leaves `key_terminal`."""

    def __init__(self, number: int) -> None:
        """`number` of the signal."""
        super().__init__(signal.Signals(number).name)
        self.number = number


class Terminal:
    """Draws whole screens, and reads keys. Created by `key_terminal`."""

    def __init__(self, window: curses.window, signals: list[int]) -> None:
        """`window` is the whole screen; `signals` grows when one arrives."""
        self._window, self._signals = window, signals
        window.keypad(True)
        window.nodelay(True)
        self._keys = select.poll()
        self._keys.register(0, select.POLLIN)

    def size(self) -> os.terminal_size:
        """Columns and lines, at least 20 by 8."""
        lines, columns = self._window.getmaxyx()
        return os.terminal_size((max(20, columns), max(8, lines)))

    def draw(self, lines: Iterable[str]) -> None:
        """Show exactly these lines, which fit and have no control characters."""
        self._window.erase()
        encoding = self._window.encoding
        for number, line in enumerate(lines):
            with suppress(curses.error):  # the cursor cannot move beyond the last cell
                self._window.addstr(number, 0, line.encode(encoding, "replace").decode(encoding))
        self._window.redrawwin()
        self._window.refresh()

    def key(self) -> str:
        """The next key: a small letter, a name of `_NAMES`, or one of these. Raises SignalReceived.

        REDRAW: the size changed, or the process was stopped. CLOSED: the terminal is gone. SEVERAL: more than one key
        at once, as in a paste.
        """
        while True:
            if self._signals:
                if (number := self._signals.pop()) != signal.SIGTSTP:
                    raise SignalReceived(number)
                curses.endwin()  # until the next screen is drawn
                os.kill(os.getpid(), signal.SIGSTOP)
                return REDRAW
            found = self._keys.poll(_LOOK_MS)
            typed = {_NAMES.get(code, chr(code).lower()) for code in iter(self._window.getch, -1)}
            if typed:
                return typed.pop() if len(typed) == 1 else SEVERAL  # a key held down counts once
            if any(event & ~select.POLLIN for _, event in found):
                return CLOSED


@contextmanager
def key_terminal(screen: int) -> Iterator[Terminal]:
    """The terminal of stdin and of the descriptor `screen`, restored at the end. From the main thread only."""
    signals: list[int] = []
    before = {number: signal.signal(number, lambda came, _: signals.append(came)) for number in _SIGNALS}
    stdout = os.dup(1)
    os.dup2(screen, 1)  # the output of curses
    try:
        window = curses.initscr()
        try:
            curses.set_escdelay(_ESCAPE_MS)
            curses.cbreak()
            curses.noecho()
            with suppress(curses.error):  # not every terminal can hide it
                curses.curs_set(0)
            yield Terminal(window, signals)
        finally:
            curses.endwin()
    except curses.error as error:
        raise FarmwatchError(
            f"this terminal cannot show pages: {error}; set TERM, or give keys by --answers"
        ) from error
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        for number, handler in before.items():
            signal.signal(number, handler)


def end_by(number: int) -> None:
    """End this process as the signal would have ended it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
