"""Slow work of the console, off its requests: shares of large logs, comparisons, the frontier, the removal of a host.

A request shows the last result, with its time, while a thread finds the next. Work begins on request only, so that an
idle console does nothing, and takes a small part of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import structlog

from stream.text.user_errors import FarmwatchError

_log = structlog.get_logger()
T = TypeVar("T")
Key = tuple[Hashable, ...]  # the kind of work, and what it is on
_BUSY = 0.05  # largest share of the time in which one value is being found
_PATIENCE_S = 2.0  # that a request waits
_KEPT = 6  # finished works of a kind
_SOON_S = 30.0  # for which a part of a page is shown again
_AT_ONCE = 2
COMPARE, WALK, DOCTOR, FORGET = "compare", "walk", "doctor", "forget"  # may take minutes: each kind has its own turn


class Working(Exception):
    """The work is under way, and has no result yet; the text says what it does."""


class Found(NamedTuple, Generic[T]):
    """A result, and when it was looked for, ms UTC."""

    value: T
    at: int


@dataclass(slots=True)
class SlowWork:
    """One piece of work, from its begin on."""

    title: str
    result: Any = None
    error: Exception | None = None
    at: int = 0
    asked_s: float = float("-inf")  # when its result was asked for last
    done_s: float = 0.0
    rest_s: float = 0.0  # the slower it was, the later is the next look
    is_dropped: bool = False  # it may have read what is forgotten now
    done: threading.Event = field(default_factory=threading.Event)

    def outcome(self) -> Found[Any]:
        """The result of a finished work. Raises what it raised."""
        if self.error is not None:
            raise self.error
        return Found(self.result, self.at)


class Jobs:
    """Works by key, each at most once at a time, in threads that do not delay the end of the process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, glance_s: float = 0.1) -> None:
        """`glance_s`: how long a request waits for the next result where there is an older one."""
        self.finished = 0  # how many ended so far
        self._monotonic, self._glance_s = monotonic, glance_s
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(_AT_ONCE)
        self._own_turns: dict[Hashable, threading.Semaphore] = {
            kind: threading.Semaphore(1) for kind in (COMPARE, WALK, DOCTOR, FORGET)
        }
        self._ended: dict[Key, SlowWork] = {}
        self._under_way: dict[Key, SlowWork] = {}

    def found(
        self, key: Key, title: str, work: Callable[[], T], keep_s: float, patience_s: float = _PATIENCE_S
    ) -> Found[T]:
        """The result of `work`, which begins now unless there is one of at most `keep_s`.

        An older result is given at once to regular requests, to others if the next does not come at once. Raises
        Working where there is none after `patience_s`, and what the work raised.
        """
        with self._lock:
            now_s, last = self._monotonic(), self._ended.get(key)
            is_regular = False
            if last is not None:
                kept_s = 0.0 if last.error is not None else max(keep_s, last.rest_s)
                is_regular = now_s - last.asked_s < 2 * kept_s
                last.asked_s = now_s
                if now_s - last.done_s < kept_s:
                    return last.outcome()
            begun = self._begin(key, title, work)
        has_older = last is not None and last.error is None
        if not is_regular and begun.done.wait(min(patience_s, self._glance_s) if has_older else patience_s):
            return begun.outcome()
        if last is None or last.error is not None:
            raise Working(title)
        return last.outcome()

    def result(self, key: Key, title: str, work: Callable[[], T], keep_s: float, patience_s: float = _PATIENCE_S) -> T:
        """As `found`, without the time."""
        return self.found(key, title, work, keep_s, patience_s).value

    def soon(self, key: Key, work: Callable[[], T], patience_s: float = 0.5) -> T | None:
        """The result of slow work that is a part of a page; None while there is none yet, or if it cannot be found."""
        with suppress(Working):
            try:
                return self.result(key, "", work, _SOON_S, patience_s)
            except FarmwatchError as error:
                _log.warning("console_cannot_find", part=key[0], error=str(error))
        return None

    def start(self, key: Key, title: str, work: Callable[[], str]) -> bool:
        """Begin a work that returns a message. False if it is already under way."""
        with self._lock:
            if key in self._under_way:
                return False
            self._begin(key, title, work)
            return True

    def of(self, kind: str) -> list[SlowWork]:
        """The works of a kind, those under way last."""
        with self._lock:
            return [job for key, job in [*self._ended.items(), *self._under_way.items()] if key[0] == kind]

    def drop(self) -> None:
        """Forget all results but what removals say, also those under way: they may have texts of a forgotten host."""
        with self._lock:
            self._ended = {key: job for key, job in self._ended.items() if key[0] == FORGET}
            for job in self._under_way.values():
                job.is_dropped = True

    def _begin(self, key: Key, title: str, work: Callable[[], Any]) -> SlowWork:
        if (job := self._under_way.get(key)) is None:
            job = self._under_way[key] = SlowWork(title)
            threading.Thread(target=self._work, args=(key, job, work), name="console-job", daemon=True).start()
        return job

    def _work(self, key: Key, job: SlowWork, work: Callable[[], Any]) -> None:
        with self._own_turns.get(key[0], self._turn):
            started_s, job.at = self._monotonic(), int(time.time() * 1000)
            try:
                job.result = work()
            except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
                job.error = error
        with self._lock:
            job.done_s = self._monotonic()
            job.rest_s = (job.done_s - started_s) / _BUSY
            last = self._ended.pop(key, job)
            job.asked_s = max(last.asked_s, started_s)
            if key[0] == FORGET or not job.is_dropped:
                self._ended[key] = job
            del self._under_way[key]
            for old in [other for other in self._ended if other[0] == key[0]][:-_KEPT]:
                del self._ended[old]
            self.finished += 1
        job.done.set()
