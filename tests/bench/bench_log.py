"""The cost of the embedded log: appends of 15 KB against bare writes, reads, a pipeline of small records.

Appends are measured in turns with their limits, and the ratios are medians of the rounds: one write + fdatasync of the
same bytes; the same and one bare SQLite transaction for their rows, which is the least that the design allows; and one
transaction that inserts the bytes themselves.

Run with `python -m tests.bench.bench_log [FOLDER]`; FOLDER should be on the disk that the log will use.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stream.embedded.database import connect, prepare
from stream.embedded.log import EmbeddedLog
from stream.embedded.topics import row_id
from stream.log.contract import At, Commit, Output, StateChange, Topic
from tests.bench.timing import wall_and_cpu_s

PARTITIONS = 24
BODY_BYTES = 15_000
ROUNDS = 3
SECONDS = 1.5
TURNS, TURN_S = 9, 0.4
_bodies = [os.urandom(BODY_BYTES) for _ in range(256)]


def main() -> None:
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir())
    print(f"embedded log, {PARTITIONS} partitions, in {place}")
    print(f"{'what':<52} {'records/s':>10} {'MB/s':>7} {'CPU s/s':>8} {'ratio':>7}")
    with tempfile.TemporaryDirectory(dir=place, prefix="bench-log-") as folder:
        for threads, batch in ((1, 1), (64, 1), (1, 100), (2, 200)):
            _appends(Path(folder), threads, batch)
        with _Bench(Path(folder)) as bench:
            bench.fill(20_000)
            _line("read, one partition after another, 15 KB", _median(bench.read))
            _line("poll, 24 partitions, 15 KB", _median(bench.poll))
        with _Bench(Path(folder)) as bench:
            _line("poll + commit(copy, state, offsets) of 200 bytes", _median(bench.pipeline, 1))
        with _Bench(Path(folder)) as bench:
            bench.fill(200_000, 200)
            for name, took_s in zip(("first call", "later calls"), bench.find_end(), strict=True):
                print(f"{'offset_at over 200,000 records, ' + name:<52} {took_s * 1000:>10.2f} ms")
        with _Bench(Path(folder)) as bench:
            _line("idle poll", _median(bench.idle, 1))


Result = tuple[float, float, float]  # records, bytes and CPU seconds per second


class _Bench:
    """A fresh log with topics `in` and `out`."""

    def __init__(self, folder: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=folder)
        self._log = EmbeddedLog(Path(self._folder.name))
        self._log.create([Topic("in", PARTITIONS), Topic("out", PARTITIONS)])

    def __enter__(self) -> _Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        self._folder.cleanup()

    def append(self, threads: int, batch: int) -> Result:
        """Threads that append batches at the same time."""
        counts = [0] * threads
        stop = time.perf_counter() + TURN_S

        def work(thread: int) -> None:
            while time.perf_counter() < stop:
                first = thread * 7 + counts[thread]
                self._log.append([self._output(first + n) for n in range(batch)])
                counts[thread] += batch

        def run() -> int:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, range(threads)))
            return sum(counts)

        return _measured(run, BODY_BYTES)

    def fill(self, count: int, size: int = BODY_BYTES) -> None:
        for first in range(0, count, 500):
            self._log.append([self._output(first + n, size) for n in range(500)])

    def read(self) -> Result:
        return _measured(lambda: sum(1 for p in range(PARTITIONS) for _ in self._log.read("in", p)), BODY_BYTES)

    def poll(self) -> Result:
        member = self._log.join("g", ["in"], member="m")
        total = sum(self._log.end("in"))

        def run() -> int:
            seen = 0
            while seen < total:
                seen += len(member.poll(1, 500, 1 << 24))
            return seen

        try:
            return _measured(run, BODY_BYTES)
        finally:
            member.close()

    def find_end(self) -> tuple[float, float]:
        """Seconds of `offset_at` for a time after all records: the first call, and the median of later ones."""
        took = [wall_and_cpu_s(lambda: self._log.offset_at("in", 2**62))[0] for _ in range(ROUNDS + 1)]
        return took[0], statistics.median(took[1:])

    def pipeline(self) -> Result:
        """A stage without work: poll up to 500, commit a copy, a row of state for each, and the offsets."""
        self.fill(40_000, 200)
        member = self._log.join("g", ["in"], member="m", store="s")

        def run() -> int:
            seen = 0
            while seen < 40_000:
                messages = member.poll(1, 500, 1 << 24)
                outputs = [Output("out", m.partition, m.key, m.value) for m in messages]
                state: dict[int, list[StateChange]] = {}
                for m in messages:
                    state.setdefault(m.partition, []).append(StateChange(m.key, b"x" * 50, m.offset))
                member.commit(Commit(outputs, {At(m.topic, m.partition): m.offset + 1 for m in messages}, state))
                seen += len(messages)
            return seen

        return _measured(run, 200)

    def idle(self) -> Result:
        """A member of an empty topic of 24 partitions that waits."""
        member = self._log.join("g", ["out"], member="m")
        member.poll(0, 1, 1)
        return _measured(lambda: len(member.poll(SECONDS, 1, 1)), 0)

    def _output(self, number: int, size: int = BODY_BYTES) -> Output:
        return Output("in", number % PARTITIONS, b"%d.example" % (number % 4096), _bodies[number % 256][:size])


def _appends(folder: Path, threads: int, batch: int) -> None:
    """Appends in turns with their limits, `threads * batch` at a time. Files stay: a removed one leaves fast memory."""
    with tempfile.TemporaryDirectory(dir=folder) as inner, _Bench(Path(inner)) as bench, _Bare(Path(inner)) as bare:
        at_once = threads * batch
        works: dict[str, Callable[[], Result]] = {
            f"write + fdatasync, {at_once} at a time": lambda: bare.turn(at_once, bare.write),
            "  and one transaction for their rows": lambda: bare.turn(at_once, bare.write, bare.insert_rows),
            "  one SQLite transaction for the bytes": lambda: bare.turn(at_once, bare.insert),
            f"append, {threads} thread{'s'[: threads > 1]} x {batch} of 15 KB": lambda: bench.append(threads, batch),
        }
        rounds = [[work() for work in works.values()] for _ in range(TURNS)]
        for place, what in enumerate(works):
            ratio = statistics.median(each[place][0] / each[0][0] for each in rounds)
            _line(what, _medians([each[place] for each in rounds]), f"{ratio:.2f}")


class _Bare(contextlib.ExitStack):
    """The limits of the disk and of SQLite: the same bytes, synced in groups."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        self.callback(os.close, self._file)
        prepare(folder, 1)
        self._database = self.enter_context(contextlib.closing(connect(folder, 1)))
        self._next = 0

    def turn(self, count: int, *works: Callable[[list[bytes]], None]) -> Result:
        def run() -> int:
            done, stop = 0, time.perf_counter() + TURN_S
            while time.perf_counter() < stop:
                values = [_bodies[n % 256] for n in range(count)]
                for work in works:
                    work(values)
                done += count
            return done

        return _measured(run, BODY_BYTES)

    def write(self, values: list[bytes]) -> None:
        os.writev(self._file, values)
        os.fdatasync(self._file)

    def insert(self, values: list[bytes], segment: int | None = None) -> None:
        rows = [
            (row_id(n % PARTITIONS, n), b"%d.example" % (n % 4096), value, None, 2**41, segment, segment, BODY_BYTES, 0)
            for n, value in enumerate(values, self._next)
        ]
        self._next += len(rows)
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")

    def insert_rows(self, values: list[bytes]) -> None:
        self.insert([b""] * len(values), 1)


def _measured(run: Callable[[], int], size: int) -> Result:
    counts: list[int] = []
    took, cpu = wall_and_cpu_s(lambda: counts.append(run()))
    return counts[0] / took, counts[0] * size / took, cpu / took


def _median(run: Callable[[], Result], rounds: int = ROUNDS) -> Result:
    return _medians([run() for _ in range(rounds)])


def _medians(results: list[Result]) -> Result:
    first, second, third = (statistics.median(column) for column in zip(*results, strict=True))
    return first, second, third


def _line(what: str, result: Result, ratio: str = "") -> None:
    print(f"{what:<52} {result[0]:>10,.0f} {result[1] / 1e6:>7,.0f} {result[2]:>8.3f} {ratio:>7}")


if __name__ == "__main__":
    main()
