"""Standard error of a long command, written by a thread of its own: whoever does not read it holds nothing up.

A line that is written to a pipe waits while the pipe is full, and fails once its reader has left; in whichever thread
that is, it must not keep a command from hearing that it is to end. So here nobody waits but the thread that writes.
What finds no room is dropped, and so is what cannot be written for another reason than that its reader has left, such
as a disk that is full: that is no word to end.
"""

from __future__ import annotations

import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TextIO

_ROOM = 10_000  # pieces of text that may wait: some MiB at most
_LOOK_S = 0.2  # between looks whether a reader has left
_LEFT = select.POLLERR | select.POLLHUP
_PATIENCE_S = 1.0  # at the end, for what still waits


class Outlet:
    """Stands in for a text stream of the operating system; `left` is called when its reader has left."""

    def __init__(self, stream: TextIO, left: Callable[[], None]) -> None:
        """Nothing is written before `start`. Raises OSError where the stream is none of the operating system."""
        self.encoding = stream.encoding
        self._stream = stream
        self._left = left
        self._descriptor = stream.fileno()
        self._readers = select.poll()
        self._readers.register(self._descriptor, 0)  # only errors, which are always told
        # may be put into from a signal's handler; an event is set once what was put in before it is written
        self._waiting: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._gone = False
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to write."""
        threading.Thread(target=self._work, name="outlet", daemon=True).start()

    def watch(self, stream: TextIO) -> None:
        """Call `left`, too, when the reader of this one has left."""
        with suppress(OSError, ValueError):  # of no descriptor: it has no reader
            self._readers.register(stream.fileno(), 0)

    def write(self, text: str) -> int:
        """Take what is to be written; never waits."""
        if not self._gone and self._waiting.qsize() < _ROOM:
            self._waiting.put(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back that could be written."""

    def isatty(self) -> bool:
        """As the stream has it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """As the stream has it."""
        return self._descriptor

    def drain(self, patience_s: float = _PATIENCE_S) -> None:
        """Wait until all that was taken is written, for so long at most."""
        written = threading.Event()
        self._waiting.put(written)
        written.wait(patience_s)

    def close(self) -> None:
        """Write what still waits, if somebody reads it, and end."""
        self.drain()
        self._ended.set()

    def _work(self) -> None:
        while not self._ended.is_set():
            pieces = self._taken()
            text = "".join(piece for piece in pieces if isinstance(piece, str))
            self._write(text.encode(self.encoding, "backslashreplace"))
            for piece in pieces:
                if isinstance(piece, threading.Event):
                    piece.set()
            for descriptor, event in self._readers.poll(0):
                if event & _LEFT:
                    self._leave(descriptor)

    def _taken(self) -> list[str | threading.Event]:
        """All that waits; it waits a little itself for there to be something."""
        pieces: list[str | threading.Event] = []
        with suppress(queue.Empty):
            pieces.append(self._waiting.get(timeout=_LOOK_S))
            while True:
                pieces.append(self._waiting.get_nowait())
        return pieces

    def _write(self, left: bytes) -> None:
        while left and not self._gone:
            try:
                left = left[os.write(self._descriptor, left) :]  # past Python's own buffer, and its lock
            except BlockingIOError:  # somebody else has made it so
                time.sleep(_LOOK_S)
            except BrokenPipeError:
                self._leave(self._descriptor)
            except OSError:
                return

    def _leave(self, descriptor: int) -> None:
        with suppress(KeyError):
            self._readers.unregister(descriptor)
        self._gone = self._gone or descriptor == self._descriptor
        self._left()


@contextmanager
def outlet(left: Callable[[], None]) -> Iterator[Outlet | None]:
    """Put an outlet in the place of sys.stderr; None where that is no stream of the operating system."""
    try:
        made = Outlet(sys.stderr, left)
    except (OSError, ValueError, AttributeError):  # a test's, or there is none
        yield None
        return
    sys.stderr.flush()
    made.start()
    try:
        with redirect_stderr(made):
            yield made
    finally:
        made.close()
