"""Processes that measure pages and can be killed: the only way to bound what a hostile page costs.

Each works on one page, and as long as there are plenty the next one waits in its pipe. A page at its time limit is
answered with an error and its worker replaced. Pipes are non-blocking on this side, so no worker holds others up.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from filters.errors import WorkersUnavailable
from filters.extraction.extractor import extractor
from filters.extraction.interface import ExtractError
from filters.measure.page_measures import Measured, RawPage, failed
from filters.measure.worker_process import LENGTH
from filters.settings import MeasureSettings

COMMAND = (sys.executable, "-P", "-m", "filters.measure.worker_process")
START_LIMIT_S = 60.0
_STARTS_IN_A_ROW = 5  # workers that die before they are ready, until the pool gives up
_READ_BYTES = 1 << 20


@dataclass(slots=True)
class _Batch:
    """The pages of one call: still to send, answered, and those that a worker has died with."""

    waiting: deque[tuple[int, RawPage]] = field(default_factory=deque)
    results: dict[int, Measured] = field(default_factory=dict)
    died: set[int] = field(default_factory=set)


class ExtractionPool:
    """Measures pages in worker processes; one call of `map` at a time is served. Raises MissingExtractor."""

    def __init__(
        self,
        settings: MeasureSettings,
        *,
        command: Sequence[str] = COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start `settings.workers` processes (0: one per core); `command` is what a worker runs."""
        if command is COMMAND:
            extractor(settings.extractor)
        self._settings = settings
        self._command = tuple(command)
        self._clock = clock
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._decoder = msgspec.msgpack.Decoder(Measured)
        self._failed_starts = 0
        self._ready = False
        self._closed = False
        self._workers = [self._spawn() for _ in range(settings.workers or os.cpu_count() or 1)]

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers]

    def ready(self) -> bool:
        if not self._ready and self._lock.acquire(blocking=False):
            try:
                if not self._closed:
                    self._turn(0, _Batch())
            except WorkersUnavailable:
                return False
            finally:
                self._lock.release()
        return self._ready and not self._closed

    def map(self, pages: Sequence[RawPage]) -> list[Measured]:
        """Results in order, errors inside; a page whose worker died is tried once more. Raises WorkersUnavailable."""
        with self._lock:
            if self._closed:
                raise WorkersUnavailable("the extraction pool is closed")
            batch = _Batch(waiting=deque(enumerate(pages)))
            try:
                while len(batch.results) < len(pages):
                    self._deal(batch)
                    deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
                    self._turn(max(0.0, min(deadlines, default=self._clock() + 1) - self._clock()), batch)
            except BaseException:
                for worker in [worker for worker in self._workers if worker.pages]:
                    self._replace(worker)  # what it would answer belongs to no later batch
                raise
            return [batch.results[number] for number in range(len(pages))]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for worker in self._workers:
                self._end(worker)
            self._workers.clear()
            self._selector.close()

    def _spawn(self) -> _Worker:
        environment = dict(os.environ)
        home = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (home, environment.get("PYTHONPATH", ""))))
        environment["OPENBLAS_NUM_THREADS"] = environment["OMP_NUM_THREADS"] = "1"
        environment["MIMALLOC_ARENA_RESERVE"] = "16384"  # KiB; rensa's allocator would reserve the whole address space
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        worker = _Worker(process, self._clock() + START_LIMIT_S)
        self._selector.register(worker.stdout, selectors.EVENT_READ, (worker, "read"))
        if worker.queue(msgspec.msgpack.encode(self._settings)):
            self._selector.register(worker.stdin, selectors.EVENT_WRITE, (worker, "write"))
        return worker

    def _deal(self, batch: _Batch) -> None:
        """A page for each idle worker, then one more each, but for the last: behind a slow page they would wait."""
        for held, kept in ((0, 0), (1, len(self._workers))):
            for worker in self._workers:
                last = worker.served + len(worker.pages) >= self._settings.recycle_pages
                if len(batch.waiting) > kept and worker.ready and len(worker.pages) == held and not last:
                    self._send(worker, *batch.waiting.popleft())

    def _send(self, worker: _Worker, number: int, page: RawPage) -> None:
        if not worker.pages:
            worker.deadline = self._clock() + self._settings.time_limit_s
        worker.pages.append((number, page))
        if worker.queue(msgspec.msgpack.encode(page)):
            self._selector.register(worker.stdin, selectors.EVENT_WRITE, (worker, "write"))

    def _turn(self, timeout_s: float, batch: _Batch) -> None:
        """Move bytes both ways, take answers, and deal with workers that died or are late."""
        for key, _ in self._selector.select(timeout_s):
            worker, direction = key.data
            if worker not in self._workers:
                continue  # replaced in this turn
            if direction == "write":
                if worker.write():
                    self._selector.unregister(worker.stdin)
            elif worker.read():
                while (frame := worker.frame()) is not None:
                    self._answer(worker, frame, batch)
            else:
                self._give_up(worker, ExtractError.WORKER_DIED, batch)
        now = self._clock()
        for worker in list(self._workers):
            if worker.deadline is not None and worker.deadline <= now:
                self._give_up(worker, ExtractError.TIMEOUT, batch)

    def _answer(self, worker: _Worker, frame: bytes, batch: _Batch) -> None:
        worker.deadline = None
        if not worker.ready:
            worker.ready = self._ready = True
            self._failed_starts = 0
            return
        if not worker.pages:
            return
        number, _ = worker.pages.popleft()
        batch.results[number] = self._decoder.decode(frame)
        worker.served += 1
        if worker.served >= self._settings.recycle_pages:
            self._replace(worker)
        elif worker.pages:
            worker.deadline = self._clock() + self._settings.time_limit_s

    def _give_up(self, worker: _Worker, error: ExtractError, batch: _Batch) -> None:
        if worker.pages:
            number, page = worker.pages.popleft()
            batch.waiting.extendleft(worker.pages)
            worker.pages.clear()
            if error is ExtractError.WORKER_DIED and number not in batch.died:
                batch.died.add(number)
                batch.waiting.appendleft((number, page))
            else:
                batch.results[number] = failed(page.url, error)
        elif not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS_IN_A_ROW:
                self._failed_starts = 0
                self._replace(worker)
                raise WorkersUnavailable(
                    f"extraction workers end before they are ready ({_STARTS_IN_A_ROW} in a row, exit status "
                    f"{worker.process.returncode}): see their message on stderr; is memory_bytes "
                    f"({self._settings.memory_bytes}) enough to start in?"
                )
        self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        self._end(worker)
        self._workers[self._workers.index(worker)] = self._spawn()

    def _end(self, worker: _Worker) -> None:
        for stream in (worker.stdin, worker.stdout):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(stream)
        worker.process.kill()
        worker.process.wait()
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                pipe.close()


class _Worker:
    """One process, its pages in the order of their answers, and the bytes under way."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self.stdin, self.stdout = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)
        self.ready = False
        self.deadline: float | None = deadline
        self.pages: deque[tuple[int, RawPage]] = deque()
        self.served = 0
        self._out = bytearray()
        self._in = bytearray()

    def queue(self, frame: bytes) -> bool:
        """Send a frame after those under way; True where from now on the rest has to wait for `write`."""
        waits = bool(self._out)
        self._out += LENGTH.pack(len(frame)) + frame
        return not waits and not self.write()

    def write(self) -> bool:
        """Send what fits; True when there is nothing left to send (a dead worker is noticed by `read`)."""
        try:
            del self._out[: os.write(self.stdin, self._out)]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._out.clear()
        return not self._out

    def read(self) -> bool:
        """Take what has come; False at the end of the stream."""
        try:
            data = os.read(self.stdout, _READ_BYTES)
        except BlockingIOError:
            return True
        self._in += data
        return bool(data)

    def frame(self) -> bytes | None:
        if len(self._in) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._in)
        end = LENGTH.size + length
        if len(self._in) < end:
            return None
        frame = bytes(memoryview(self._in)[LENGTH.size : end])
        del self._in[:end]
        return frame
