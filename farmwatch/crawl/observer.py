"""A thread next to a crawl: prints progress, stops the crawl when all work is done, ends a slow drain on request."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass, field

from farmwatch.config.config import Config
from farmwatch.config.opening import open_configured
from farmwatch.crawl.watch import CrawlWatch
from farmwatch.daemon.quiescence import crawl_waits_for
from farmwatch.terminal.messages import message
from stream.log.contract import Log
from stream.log.errors import StreamError
from stream.text.user_errors import Exit

_LOOK_S = 0.5
_STATUS_S = 10.0
_KAFKA_CHECK_SLOWER = 10  # factor for the interval of checks whether all is done: on Kafka each reads the whole state
_JOIN_S = 5.0


@dataclass(slots=True)
class CrawlObserver:
    """Observes the crawl of this process through its watch.

    An error here sets `stop` and is raised at the end of `observing`; an unavailable log is tried again.
    """

    config: Config
    watch: CrawlWatch
    stop: threading.Event
    hurry: threading.Event  # ends the process at once
    _: KW_ONLY
    until_done: bool
    end_process: Callable[[int], object] = os._exit
    every_s: float = _LOOK_S
    open_log: Callable[[Config], Log] = lambda config: open_configured(config, read_only=True)
    _shown_at: float = field(init=False, default_factory=time.monotonic)
    _checked_at: float = field(init=False, default=0.0)
    _error: Exception | None = field(init=False, default=None)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Observe while the block runs, then print the last figures."""
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=(ended,), name="crawl-observer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_JOIN_S)
        if self._error is not None:
            raise self._error
        message(self.watch.figures().text)

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(self.every_s):
            if self.hurry.is_set():
                self.end_process(Exit.INTERRUPTED)  # safe: uncommitted requests are still queued
                return
            if self._error is None:
                try:
                    if time.monotonic() - self._shown_at >= _STATUS_S:
                        self._shown_at = time.monotonic()
                        message(self.watch.figures().text)
                    if self.until_done and not self.stop.is_set() and self._is_done():
                        self.stop.set()
                except Exception as error:  # noqa: BLE001 - raised in the main thread, behind the drain
                    self._error = error
                    self.stop.set()

    def _is_done(self) -> bool:
        is_kafka = self.config.log.url.startswith("kafka:")
        check_s = self.every_s * (_KAFKA_CHECK_SLOWER if is_kafka else 1)
        if self.watch.figures().active:
            self.watch.waits_for = ""
            return False
        if time.monotonic() - self._checked_at < check_s:
            return False
        self._checked_at = time.monotonic()
        try:
            with closing(self.open_log(self.config)) as log:
                self.watch.waits_for = crawl_waits_for(log, self.config.log.partitions)
                return not self.watch.waits_for
        except StreamError as error:
            if error.retriable:  # the loop logs the problem
                return False
            raise
