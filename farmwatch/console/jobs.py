"""Slow work of the console, off its requests: comparisons, looks at the frontier, the removal of a host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")
Say = Callable[[str], None]
_KEPT = 6  # finished works
_AT_ONCE = 2


class Working(Exception):
    """The work is under way, and has no result yet; the text says what it does."""


@dataclass(slots=True)
class Job:
    """One piece of work, from its begin on."""

    title: str
    said: str
    done: threading.Event = field(default_factory=threading.Event)
    done_s: float = 0.0
    result: Any = None
    error: Exception | None = None


class Jobs:
    """Works by key, each at most once at a time, in threads that do not delay the end of the process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(_AT_ONCE)
        self._finished: dict[Hashable, Job] = {}
        self._under_way: dict[Hashable, Job] = {}

    def result(self, key: Hashable, title: str, work: Callable[[Say], T], keep_s: float, wait_s: float = 0.3) -> T:
        """The result of `work`, which begins now unless it is under way or ended less than `keep_s` ago.

        An older result is given while a new one is under way. Raises Working where there is none after `wait_s`, and
        what the work raised.
        """
        with self._lock:
            job = self._finished.get(key)
            is_fresh = job is not None and self._monotonic() - job.done_s <= keep_s
            begun = None if is_fresh else self._begin(key, title, work)
        if begun is not None and begun.done.wait(wait_s):
            job = begun
        if job is None:
            raise Working(f"{title}: {begun.said}" if begun is not None and begun.said else title)
        if job.error is not None:
            raise job.error
        return cast(T, job.result)

    def start(self, key: Hashable, title: str, work: Callable[[Say], str]) -> bool:
        """Begin a work whose result is what it says at its end; False if it is under way already."""
        with self._lock:
            if key in self._under_way:
                return False
            self._begin(key, title, work)
            return True

    def said(self, kind: str) -> list[Job]:
        """The works whose key begins with `kind`, the newest last."""
        with self._lock:
            found = [*self._finished.items(), *self._under_way.items()]
        return [job for key, job in found if isinstance(key, tuple) and key[0] == kind]

    def drop(self) -> None:
        """Forget all results that are no messages: they may have texts of a host that was forgotten."""
        with self._lock:
            self._finished = {key: job for key, job in self._finished.items() if isinstance(job.result, str)}

    def _begin(self, key: Hashable, title: str, work: Callable[[Say], Any]) -> Job:
        if (job := self._under_way.get(key)) is None:
            job = self._under_way[key] = Job(title, "")
            threading.Thread(target=self._work, args=(key, job, work), name="console-job", daemon=True).start()
        return job

    def _work(self, key: Hashable, job: Job, work: Callable[[Say], Any]) -> None:
        def say(text: str) -> None:
            job.said = text

        with self._turn:
            try:
                job.result = work(say)
            except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
                job.error = error
        with self._lock:
            job.done_s = self._monotonic()
            del self._under_way[key]
            self._finished.pop(key, None)
            self._finished[key] = job
            for old in list(self._finished)[:-_KEPT]:
                del self._finished[old]
        job.done.set()
