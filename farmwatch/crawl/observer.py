"""A thread beside a crawl: it shows progress, ends the crawl when all is done, and cuts the drain short on request."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass, field

from farmwatch.config.config import Config
from farmwatch.config.opening import open_configured
from farmwatch.crawl.view import CrawlView, status_line
from farmwatch.crawl.watch import CrawlWatch
from farmwatch.daemon.quiescence import crawl_waits_for
from farmwatch.terminal.messages import message
from stream.log.errors import StreamError
from stream.text.user_errors import Exit

_DRAW_S = 0.5
_ASK_S = {"sqlite": 0.5, "kafka": 5.0}  # between questions whether all is done; on Kafka the state has to be read
_JOIN_S = 5.0


@dataclass(slots=True)
class CrawlObserver:
    """Observes a crawl of this process, through its watch.

    A failure of its own sets `stop` and is raised at the end of `observing`; a log that is away is asked again.
    """

    config: Config
    watch: CrawlWatch
    view: CrawlView | None  # without one, a line of status comes every up.status_s seconds
    stop: threading.Event
    hurry: threading.Event  # ends the process at once
    _: KW_ONLY
    until_done: bool
    end_process: Callable[[int], object] = os._exit
    every_s: float = _DRAW_S
    _said: float = field(init=False, default_factory=time.monotonic)
    _asked: float = field(init=False, default=0.0)
    _error: Exception | None = field(init=False, default=None)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Observe while the block runs, then report the last figures."""
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=(ended,), name="crawl-view", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_JOIN_S)
        if self._error is not None:
            raise self._error
        figures = self.watch.figures()
        if self.view is not None:
            self.view.show(figures)
        else:
            message(status_line(figures))

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(self.every_s):
            if self.hurry.is_set():
                if self.view is not None:
                    self.view.close()
                self.end_process(Exit.INTERRUPTED)  # what is committed is whole, what is under way is still queued
                return
            if self._error is None:
                try:
                    self._look()
                except Exception as error:  # noqa: BLE001 - raised in the main thread, behind the drain
                    self._error = error
                    self.stop.set()

    def _look(self) -> None:
        if self.view is not None:
            self.view.show(self.watch.figures())
        elif time.monotonic() - self._said >= self.config.up.status_s:
            self._said = time.monotonic()
            message(status_line(self.watch.figures()))
        if self.until_done and not self.stop.is_set() and self._is_done():
            self.stop.set()

    def _is_done(self) -> bool:
        every_s = _ASK_S[self.config.log.url.partition(":")[0]]
        if self.watch.figures().active:
            self.watch.waits_for = ""
            return False
        if time.monotonic() - self._asked < every_s:
            return False
        self._asked = time.monotonic()
        try:
            with closing(open_configured(self.config, read_only=True)) as log:
                self.watch.waits_for = crawl_waits_for(log, self.config.log.partitions)
                return not self.watch.waits_for
        except StreamError as error:
            if error.retriable:  # it is asked again; the loop itself says what is wrong with the log
                return False
            raise
