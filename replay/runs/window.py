"""The window of a run: as text, as times and as offsets of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stream.schema.runs import Run, RunStatus
from stream.text.times import DAY_MS, is_day, read_time
from stream.text.user_errors import UsageError
from stream.text.wording import moment, one_line

EARLIEST, NOW, FOLLOW = "earliest", "now", "follow"


@dataclass(frozen=True, slots=True)
class Window:
    """The records of a window: appended at or after `from_at` and before `to_at`, ms UTC.

    If `run` is set, the window is taken over from that run, with its offsets where possible.
    """

    from_at: int = 0  # 0 = the earliest that is kept
    to_at: int = 0  # 0 = no end
    run: Run | None = None
    to_end: bool = False  # `to_at` is now: up to the ends of the topics

    @property
    def text(self) -> str:
        return window_text(self.from_at, self.to_at)

    @property
    def follows(self) -> bool:
        return self.to_at == 0


def window_text(from_at: int, to_at: int) -> str:
    """A window as text."""
    begin = moment(from_at) if from_at else EARLIEST
    return f"{begin} .. {moment(to_at) if to_at else FOLLOW}"


def run_window(run: Run) -> str:
    """The window of a run as text."""
    return window_text(run.from_at, run.to_at)


def read_window(from_: str | None, to: str | None, runs: Mapping[str, Run], now_ms: int) -> Window:
    """Parse the window of its two ends. None = earliest, and now or the end of the run that `from_` names."""
    of = runs.get(from_ or "")
    if of is not None and of.state == RunStatus.REMOVED:
        of = None
    if of is not None:
        from_at = of.from_at
    elif from_ in (None, "", EARLIEST):
        from_at = 0
    else:
        known = ", ".join(sorted(run.shown for run in runs.values() if run.state != RunStatus.REMOVED)) or "none yet"
        from_at = _time(from_, "begin", now_ms, also=f", {EARLIEST}, or the name of a run ({known})")
    if of is not None and (to is None or (of.follows and to == FOLLOW)):
        return Window(from_at, of.to_at or now_ms, of, to_end=not of.to_at)
    if to in (None, "", NOW):
        end = now_ms
    elif to == FOLLOW:
        end = 0
    else:
        end = _time(to, "end", now_ms, also=f", {NOW}, or {FOLLOW}")
        if end > now_ms:
            raise UsageError(f"the end of the window, {one_line(to)}, is in the future; take {NOW}, or {FOLLOW}")
        end += DAY_MS if is_day(to) else 0  # a day ends at its midnight; it may be today
    to_at = min(end, now_ms)
    if to_at and from_at >= to_at:
        raise UsageError(f"the window begins at {moment(from_at)}, not before its end at {moment(to_at)}")
    return Window(from_at, to_at, of, to_end=end > now_ms or to in (None, NOW))


def _time(text: str, end: str, now_ms: int, also: str) -> int:
    try:
        return read_time(text, now_ms, may_come=True)
    except ValueError as error:
        raise UsageError(f"the {end} of the window: {error}{also}") from None
