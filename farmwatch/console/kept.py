"""Values that are slow to find: a request shows the last one with its time, while a thread finds the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
BUSY = 0.05  # largest share of a core that finds a value
_LONGEST_S = 2.0  # that a request waits where there is a value to show
_AT_ONCE_S = 0.1


class Found(NamedTuple, Generic[T]):
    """A value, and when it was looked for."""

    value: T
    at: int  # ms UTC


class Kept(Generic[T]):
    """One such value. It is found on request only, so that an idle console does nothing."""

    def __init__(
        self, find: Callable[[], T], fresh_s: float, turn: threading.Lock, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`fresh_s`: how long it is shown without another look. Values with the same `turn` are found one at a time."""
        self._clock_s = clock_s
        self._find, self._fresh_s, self._turn = find, fresh_s, turn
        self._lock = threading.Lock()  # of what is below
        self._last: Future[Found[T]] | None = None
        self._next: Future[Found[T]] | None = None
        self._found_s = self._asked_s = float("-inf")
        self._period_s = 0.0

    def get(self) -> Found[T]:
        """The last value if there are regular requests; otherwise the next, if it comes soon. Raises as `find`."""
        last, coming, is_regular = self._begin()
        if last is None or not (coming is None or is_regular or wait([coming], _LONGEST_S).not_done):
            last = coming
        assert last is not None
        return last.result()

    def peek(self) -> T | None:
        """As `get`, but None where even the first value does not come at once."""
        last, coming, _ = self._begin()
        if last is None and coming is not None and not wait([coming], _AT_ONCE_S).not_done:
            last = coming
        return None if last is None else last.result().value

    def _begin(self) -> tuple[Future[Found[T]] | None, Future[Found[T]] | None, bool]:
        """The last value, the one that is being found, and whether there are regular requests."""
        with self._lock:
            now_s = self._clock_s()
            is_regular = now_s - self._asked_s < 2 * self._period_s
            self._asked_s = now_s
            if self._next is None and now_s - self._found_s >= self._period_s:
                self._next = Future()
                threading.Thread(target=self._look, args=(self._next,), name="find", daemon=True).start()
            return self._last, self._next, is_regular

    def _look(self, found: Future[Found[T]]) -> None:
        with self._turn:
            started_s, at = time.thread_time(), int(time.time() * 1000)
            try:
                value, error = Found(self._find(), at), None
            except Exception as raised:  # noqa: BLE001 - the requests raise it
                value, error = None, raised
            spent_s = time.thread_time() - started_s
        with self._lock:
            self._found_s = self._clock_s()
            self._last, self._next = found, None
            if value is None:
                self._period_s = 0.0  # the next request looks again
                found.set_exception(error)
            else:
                self._period_s = max(self._fresh_s, spent_s / BUSY)
                found.set_result(value)
