"""What a replay says while it runs: a line that is drawn anew on a terminal, else a line of the log now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

import structlog

from replay.engine.runner import Standing
from replay.runs.phases import JUDGE, RunProgress
from stream.text.spans import lasting

_log = structlog.get_logger()
_EVERY_S = 10.0  # between lines of the log


class ProgressLine:
    """Shows how a replay stands, on `stream`; called from one thread at a time."""

    def __init__(self, run: str, stream: TextIO | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Show the run of this name; the stream is stderr where none is given."""
        self._run = run
        self._stream = stream or sys.stderr
        self._on_terminal = self._stream.isatty()
        self._monotonic = monotonic
        self._told_s = monotonic()
        self._drawn = False

    def tell(self, standing: Standing) -> None:
        """Draw the line anew, or log it if it is time."""
        if self._on_terminal:
            width = shutil.get_terminal_size().columns - 1
            line = line_of(self._run, standing)
            shown = line if len(line) <= width else f"{line[: width - 1]}…"
            self._stream.write(f"\r\x1b[K{shown}")
            self._stream.flush()
            self._drawn = True
        elif self._monotonic() - self._told_s >= _EVERY_S:
            self._told_s = self._monotonic()
            current = standing.progress.current
            _log.info(
                "replay",
                run=self._run,
                phase="follows" if standing.follows else current.phase,
                done=current.done,
                total=current.total,
                behind=behind_of(standing.progress) if standing.follows else None,
                rate=None if standing.rate is None else round(standing.rate, 1),
                eta_s=None if standing.eta_s is None else round(standing.eta_s),
                waits_for=standing.waits_for or None,
            )

    def end_line(self) -> None:
        """Take the line away, so that what is said next begins on one of its own."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False


def line_of(run: str, standing: Standing) -> str:
    """`v5-1: judge 12000 of 100000, 23%, 3412/s, 1 min left, makes way for live (measure 120)`.

    Of a run that has caught up and follows: `v5-1: follows, 12000 read, 3 behind`, by offsets of `features`.
    """
    current = standing.progress.current
    if standing.follows:
        read = next((advance.done for advance in standing.progress.advances if advance.phase == JUDGE), 0)
        parts = [f"{run}: follows", f"{read} read", f"{behind_of(standing.progress)} behind"]
    else:
        parts = [f"{run}: {current.phase} {current.done} of {current.total}", f"{standing.progress.share:.0%}"]
        if standing.rate is not None:
            parts.append(f"{standing.rate:.0f}/s")
        if standing.eta_s is not None:
            parts.append(f"{lasting(standing.eta_s)} left")
    if standing.waits_for:
        parts.append(f"makes way for live ({standing.waits_for})")
    return ", ".join(parts)


def behind_of(progress: RunProgress) -> int:
    """Offsets up to the present ends that are not dealt with; what a later phase waits for is counted in it once.

    They are at hand each second; which of them are records takes reading, see `replay.runs.lag`.
    """
    return max((advance.total - advance.done for advance in progress.advances), default=0)
