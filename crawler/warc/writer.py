"""Writes all fetched exchanges to WARC 1.1 files: a tap for the fetcher, and a thread that writes.

The archive is as complete as the log: CRAWL calls `settle` before it applies results, so no page is committed before
its exchange is written. If the archive is not writable, `settle` raises, the batch is rolled back, its URLs stay
queued, and the crawl pauses until a file can be written again.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import structlog

from crawler.errors import ArchiveUnwritable
from crawler.fetch.jobs import Capture
from crawler.metrics import WARC_BYTES, WARC_RECORDS
from crawler.settings import CrawlSettings
from crawler.warc.exchange import WarcMember, exchange, warcinfo
from crawler.warc.file import NameTaken, WarcFile, close_leftovers
from stream.processing.metrics import Metrics

_log = structlog.get_logger()

_WAITING_BYTES = 128 * 1024 * 1024  # bodies that may wait to be written; beyond, the tap waits
_SETTLE_S = 60.0  # a slower disk counts as broken
_ROOM_BYTES = 64 * 1024 * 1024  # free on the disk before a failed archive is tried again
_SERIALS = 100_000


class WarcWriter:
    """The archive writer: call it with captures from any thread, `settle` to wait for them, `close` it at the end."""

    def __init__(
        self,
        settings: CrawlSettings,
        metrics: Metrics | None = None,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        writer: str = "",
        queue_bytes: int = _WAITING_BYTES,
        room_bytes: int = _ROOM_BYTES,
    ) -> None:
        """Create the folder, close leftover files, and start the thread.

        Raises NoContact, BadCrawlSettings, ArchiveUnwritable.

        `writer` replaces the process id in file names. At most `queue_bytes` of bodies wait to be written. A failed
        archive is tried again once the disk has `room_bytes` free.
        """
        settings.check()
        self._settings = settings
        self._metrics = metrics
        self._clock, self._monotonic = clock, monotonic
        self._queue_bytes, self._room_bytes = queue_bytes, room_bytes
        self._folder = Path(settings.warc_folder)
        self._writer = writer or str(os.getpid())
        self._file: WarcFile | None = None
        self._info = ""
        self._began_s = 0.0
        self._serial = 0
        self._changed = threading.Condition()
        self._queue: deque[Capture | None] = deque()  # None: see whether a file can be written
        self.waiting_bytes = 0  # of bodies that wait to be written
        self._put = self._done = 0  # entries ever
        self._error: Exception | None = None
        self._is_reported = False
        self._closing = False
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            close_leftovers(self._folder)
        except OSError as error:
            raise self._unwritable(error) from error
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise ArchiveUnwritable(f"crawl.warc_folder is {self._folder}: it may not be written to")
        self._thread = threading.Thread(target=self._run, name="warc", daemon=True)
        self._thread.start()

    def __call__(self, capture: Capture) -> None:
        """Queue a capture; waits only while too many bytes are queued."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self.waiting_bytes <= self._queue_bytes or self._error is not None or not self._thread.is_alive()
                )
            )
            self._enqueue(capture)

    def settle(self) -> None:
        """Wait until everything queued is written. Raises ArchiveUnwritable if that fails.

        The next call tries again.
        """
        with self._changed:
            if self._is_reported:
                self._error, self._is_reported = None, False
                self._enqueue(None)
            goal = self._put
            is_done = self._changed.wait_for(
                lambda: self._done >= goal or self._error is not None or not self._thread.is_alive(), _SETTLE_S
            )
            if self._error is not None:
                self._is_reported = True
                raise self._unwritable(self._error) from self._error
            if not is_done or self._done < goal:
                raise ArchiveUnwritable(
                    f"{self._folder}: nothing was written for {_SETTLE_S:.0f} seconds: see its disk"
                )

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _enqueue(self, capture: Capture | None) -> None:
        self._queue.append(capture)
        self.waiting_bytes += _size(capture)
        self._put += 1
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing, self._until_old_s())
                taken = list(self._queue)
                self._queue.clear()
                is_over = self._closing and not taken
                is_broken = self._error is not None
            try:
                if is_over or self._until_old_s() == 0:
                    self._close_file()
                for entry in taken if not is_broken else ():
                    self._write(entry)
            except Exception as error:  # noqa: BLE001  # it is raised where somebody waits, by `settle`
                self._fail(error)
            with self._changed:
                self._done += len(taken)
                self.waiting_bytes -= sum(map(_size, taken))
                self._changed.notify_all()
            if is_over:
                return

    def _write(self, entry: Capture | None) -> None:
        if self._until_old_s() == 0:
            self._close_file()
        members = []
        if self._file is None:
            if entry is None and shutil.disk_usage(self._folder).free < self._room_bytes:
                raise OSError(f"less than {self._room_bytes // 2**20} MiB are free")
            self._file, info = self._next_file()
            members.append(info)
        if entry is not None:
            members += exchange(entry, self._info)
        data = b"".join(member.data for member in members)
        self._file.append(data)  # a whole exchange at a time, so that a killed process leaves no part of one
        if self._metrics is not None:
            self._metrics.count(WARC_BYTES, len(data))
            for member in members:
                self._metrics.count(WARC_RECORDS, type=member.kind)
        if self._file.size_bytes >= self._settings.warc_bytes:
            self._close_file()

    def _next_file(self) -> tuple[WarcFile, WarcMember]:
        now = datetime.fromtimestamp(self._clock(), UTC)
        for _ in range(_SERIALS):
            self._serial = self._serial % _SERIALS + 1
            stamp = f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}"
            try:
                file = WarcFile(self._folder, f"farmwatch-{stamp}-{self._serial:05d}-{self._writer}")
            except NameTaken:
                continue
            self._began_s = self._monotonic()
            self._info, info = warcinfo(
                file.path.name,
                int(self._clock() * 1000),
                user_agent=self._settings.user_agent,
                contact=self._settings.contact,
            )
            return file, info
        raise OSError("every file name of this millisecond is taken")

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _until_old_s(self) -> float | None:
        if self._file is None:
            return None
        return max(0.0, self._settings.warc_s - (self._monotonic() - self._began_s))

    def _fail(self, error: Exception) -> None:
        """Remember the error, and try to close the file after its last whole exchange."""
        _log.error("warc_not_written", folder=str(self._folder), error=str(error))
        try:
            self._close_file()
        except OSError as second:  # the next start closes it
            _log.error("warc_not_closed", folder=str(self._folder), error=str(second))
        with self._changed:
            self._error = error

    def _unwritable(self, error: Exception) -> ArchiveUnwritable:
        what = str(error)
        if isinstance(error, OSError) and error.strerror:
            what = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        return ArchiveUnwritable(
            f"{self._folder}: the archive cannot be written: {what}. Nothing is crawled until it can be: make room, or"
            " set crawl.warc_folder to a folder that can be written to (empty: no archive)"
        )


def _size(entry: Capture | None) -> int:
    return 0 if entry is None else len(entry.body)
