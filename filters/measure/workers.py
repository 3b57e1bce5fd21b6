"""The extraction pool: worker processes that can be killed, the only way to bound the cost of a hostile page.

Each worker has a thread in this process. While there are plenty of pages, the next one is already in the worker's
socket, so that the worker is never idle. At a page's time limit the worker is killed and replaced.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from pathlib import Path

import msgspec

from filters.errors import WorkersUnavailable
from filters.extraction.interface import ExtractError
from filters.measure.extractors import extractor
from filters.measure.page_measures import PageMeasures, RawPage, failed
from filters.measure.worker_process import first_frame
from filters.settings import MeasureSettings

COMMAND = (sys.executable, "-P", "-m", "filters.measure.worker_process")
START_LIMIT_S = 60.0
_RECYCLE_PAGES = 5_000  # after which a worker is replaced: libraries keep memory
_STARTS_IN_A_ROW = 5  # failed starts after which the pool gives up
_LOOK_S = 0.05  # interval of checks while a worker starts: the others may have measured all pages meanwhile
_SENT_AHEAD_BYTES = 64 * 1024  # larger pages are not sent ahead: they may not fit into the socket's buffer


@dataclass(slots=True)
class _Batch:
    """The pages of one call: waiting, answered, and those that have lost a worker."""

    waiting: deque[tuple[int, RawPage]]
    results: dict[int, PageMeasures] = field(default_factory=dict)
    lost_worker: set[int] = field(default_factory=set)
    is_over: bool = False


class ExtractionPool:
    """Measures pages in worker processes, one call of `map` at a time. Raises MissingExtra, BadModel."""

    def __init__(
        self, settings: MeasureSettings, *, command: Sequence[str] = COMMAND, recycle_pages: int = _RECYCLE_PAGES
    ) -> None:
        """Start `settings.workers` processes (0: one per core) that run `command`, each for `recycle_pages` pages."""
        if command is COMMAND:
            extractor(settings)
        self._frame = first_frame(settings)  # a new worker has the same model, whatever happens to the file
        self._settings = settings
        self._command = tuple(command)
        self._recycle_pages = recycle_pages
        self._lock = threading.Lock()
        self._failed_starts = 0
        self._ready = False
        self._workers = [
            _Worker(self._command, settings, self._frame) for _ in range(settings.workers or os.cpu_count() or 1)
        ]
        self._threads = ThreadPoolExecutor(len(self._workers), "extraction")

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers]

    def ready(self) -> bool:
        """Whether a worker has started. Replaces workers that have exited."""
        if not self._ready and self._lock.acquire(blocking=False):
            try:
                for place in range(len(self._workers)):
                    self._start(place, 0)
            except WorkersUnavailable:
                return False
            finally:
                self._lock.release()
        return self._ready and bool(self._workers)

    def map(self, pages: Sequence[RawPage]) -> list[PageMeasures]:
        """Measure pages in order; one that lost its worker is tried once more. Raises WorkersUnavailable."""
        with self._lock:
            if not self._workers:
                raise WorkersUnavailable("the extraction pool is closed")
            batch = _Batch(deque(enumerate(pages)))
            served = [self._threads.submit(self._serve, place, batch) for place in range(len(self._workers))]
            try:
                for future in as_completed(served):
                    future.result()
            except BaseException:  # such as Ctrl-C: drop the pages in progress
                batch.is_over = True
                for worker in self._workers:
                    worker.process.kill()
                wait(served)
                for place in range(len(self._workers)):
                    self._replace(place)
                raise
            return [batch.results[number] for number in range(len(pages))]

    def close(self) -> None:
        with self._lock:
            for worker in self._workers:
                worker.end()
            self._workers.clear()
            self._threads.shutdown()

    def _serve(self, place: int, batch: _Batch) -> None:
        """Measure waiting pages in the worker at `place` until none is left. Raises WorkersUnavailable."""
        decoder = msgspec.msgpack.Decoder(PageMeasures)
        sent: deque[tuple[int, RawPage]] = deque()
        while (sent or batch.waiting) and not batch.is_over:
            if not self._start(place, _LOOK_S):
                continue
            worker = self._workers[place]
            try:
                while page := self._next(worker, sent, batch):
                    sent.append(page)
                    worker.send(msgspec.msgpack.encode(page[1]))
                if sent:
                    answer = worker.receive()
                    batch.results[sent.popleft()[0]] = decoder.decode(answer)
                if worker.served >= self._recycle_pages:
                    self._replace(place)
            except (EOFError, OSError) as error:
                if batch.is_over:
                    return
                number, lost = sent.popleft()
                batch.waiting.extendleft(reversed(sent))
                sent.clear()
                if isinstance(error, TimeoutError):
                    batch.results[number] = failed(lost.url, ExtractError.TIMEOUT)
                elif number in batch.lost_worker:
                    batch.results[number] = failed(lost.url, ExtractError.WORKER_DIED)
                else:
                    batch.lost_worker.add(number)
                    batch.waiting.appendleft((number, lost))
                self._replace(place)

    def _next(self, worker: _Worker, sent: deque[tuple[int, RawPage]], batch: _Batch) -> tuple[int, RawPage] | None:
        """The next page to send. A second one is sent only if there are plenty: it may wait behind a slow one."""
        try:
            if not sent:
                return batch.waiting.popleft()
            is_last = worker.served + len(sent) >= self._recycle_pages
            if len(sent) > 1 or is_last or len(batch.waiting) <= len(self._workers):
                return None
            return batch.waiting.popleft() if len(batch.waiting[0][1].body) <= _SENT_AHEAD_BYTES else None
        except IndexError:  # another thread was faster
            return None

    def _start(self, place: int, wait_s: float) -> bool:
        """Whether the worker at `place` has started; a failed one is replaced. Raises WorkersUnavailable."""
        worker = self._workers[place]
        try:
            if worker.has_started(wait_s):
                self._ready, self._failed_starts = True, 0
                return True
        except (EOFError, OSError):
            self._failed_starts += 1
            self._replace(place)
            if self._failed_starts >= _STARTS_IN_A_ROW:
                self._failed_starts = 0
                raise WorkersUnavailable(
                    f"extraction workers exit before they are ready ({_STARTS_IN_A_ROW} in a row, exit status "
                    f"{worker.process.returncode}): see their output on stderr; is memory_bytes "
                    f"({self._settings.memory_bytes}) enough to start in?"
                ) from None
        return False

    def _replace(self, place: int) -> None:
        self._workers[place].end()
        self._workers[place] = _Worker(self._command, self._settings, self._frame)


class _Worker:
    """One process that measures one page at a time."""

    def __init__(self, command: Sequence[str], settings: MeasureSettings, frame: bytes) -> None:
        environment = dict(os.environ)
        home = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (home, environment.get("PYTHONPATH", ""))))
        environment["OPENBLAS_NUM_THREADS"] = environment["OMP_NUM_THREADS"] = "1"
        environment["MIMALLOC_ARENA_RESERVE"] = "16384"  # KiB; else rensa's allocator takes the whole address space
        self._pipe, theirs = Pipe()
        with theirs:  # prints of libraries go to stderr
            self.process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=2, env=environment)
        self._limit_s = settings.time_limit_s
        self._start_by_s = time.monotonic() + START_LIMIT_S
        self._is_started = False
        self.served = 0
        with suppress(OSError):  # `has_started` reports the exit
            self._pipe.send_bytes(frame)

    def has_started(self, wait_s: float) -> bool:
        """Wait up to `wait_s` for the worker to be ready. Raises EOFError or OSError if it has exited or is late."""
        if not self._is_started and self._pipe.poll(wait_s):
            self._pipe.recv_bytes()
            self._is_started = True
        if not self._is_started and time.monotonic() >= self._start_by_s:
            raise TimeoutError
        return self._is_started

    def send(self, page: bytes) -> None:
        """Send a page. Raises OSError if the worker has exited."""
        self._pipe.send_bytes(page)

    def receive(self) -> bytes:
        """Receive an answer; its time limit starts now. Raises TimeoutError, EOFError, or OSError as `send`."""
        if not self._pipe.poll(self._limit_s):
            raise TimeoutError
        self.served += 1
        return self._pipe.recv_bytes()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._pipe.close()
