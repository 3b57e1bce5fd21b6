"""SIGTERM and SIGINT: one way to hear them, for every process that ends in order."""

from __future__ import annotations

import operator
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_ENDING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def signals_to(on_signal: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Inside, a thread calls `on_signal` for each SIGTERM and SIGINT. Enter it from the main thread.

    The handler is a built-in function: one of Python code would be interrupted by the next signal, which calls it again
    (in a storm of signals until RecursionError), and where it sets an event that the interrupted code sets or waits
    for, it waits for itself for ever.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def follow() -> None:
        while came := os.read(reading, 1):
            if came[0] in _ENDING:  # every signal with a handler comes here
                on_signal(signal.Signals(came[0]))
        os.close(reading)

    threading.Thread(target=follow, name="signals", daemon=True).start()
    descriptor = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # a full pipe holds enough signals
    handlers = {number: signal.signal(number, operator.is_) for number in _ENDING}  # the bytes in the pipe tell
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        os.close(writing)


@contextmanager
def stopping_on_signals(stop: threading.Event, hurry: threading.Event | None = None) -> Iterator[None]:
    """Inside, SIGTERM and SIGINT set `stop`; the second one sets `hurry`. Enter it from the main thread."""

    def end(number: signal.Signals) -> None:
        was_set = stop.is_set()
        stop.set()
        if hurry is not None and was_set:
            hurry.set()
        elif hurry is not None and number == signal.SIGINT:
            note("draining; Ctrl-C again ends it at once\n")

    with signals_to(end):
        yield


def note(text: str) -> None:
    """Write to standard error without `print`, which may be at work elsewhere."""
    with suppress(OSError):  # nobody reads it any more
        os.write(2, text.encode())
