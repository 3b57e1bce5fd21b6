"""Spreads work over processes, with results in the order of the work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from stream.text.user_errors import FarmwatchError

A = TypeVar("A")
B = TypeVar("B")


def ordered_map(
    work: Callable[[A], B], items: Iterable[A], jobs: int, prepare: Callable[..., None], *told: Any
) -> Iterator[B]:
    """`work` of each item, in `jobs` processes that start with the first item, each after `prepare`.

    At most two items per process are read ahead. Raises the errors of `work`, and FarmwatchError if a process was
    killed.
    """
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=_start, initargs=(prepare, *told)
    )
    waiting: deque[Future[B]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise FarmwatchError("a working process was killed, perhaps for want of memory: try fewer --jobs") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _start(prepare: Callable[..., None], *told: Any) -> None:
    """In a new process: end with the parent, which alone handles Ctrl-C."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, name="follow-parent", daemon=True).start()
    prepare(*told)
