"""Plots as inline SVG: a small picture a row, in shares of its width, so that text beside it never shrinks with it.

A forest plot (difference and interval of each row on one scale, with 0 marked) and bars to both sides of a middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from replay.compare.comparison import ShareChange, points
from replay.compare.report_markup import Html, tag

_HEIGHT, _MIDDLE = 26, 13  # px of a row's picture
_EDGE = 4.0  # percent of the width that is left free at each side
_TICKS = 4  # about as many


class Scale(NamedTuple):
    """Where values stand, in percent of the width."""

    low: float
    high: float
    ticks: Sequence[float]

    def at(self, value: float) -> float:
        """Percent from the left."""
        return _EDGE + (100 - 2 * _EDGE) * (value - self.low) / (self.high - self.low)


def scale(changes: Iterable[ShareChange]) -> Scale | None:
    """A scale that holds 0 and every interval; None where there is no difference at all."""
    ends = [end for one in changes for end in (one.low, one.difference, one.high) if end is not None]
    if not ends:
        return None
    low, high = min(0.0, *ends), max(0.0, *ends)
    if high - low < 1e-9:
        low, high = -0.01, 0.01  # no change at all: one point to each side
    step = _nice((high - low) / _TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(first * step, last * step, [number * step for number in range(first, last + 1)])


def mark(change: ShareChange, on: Scale) -> Html:
    """A difference as a dot on its interval; one whose interval leaves out 0 is filled."""
    said = change.text
    parts = [_line(on.at(0.0), on.at(0.0), 0, _HEIGHT, "zero")]
    if change.low is not None and change.high is not None:
        left, right = on.at(change.low), on.at(change.high)
        parts.append(_line(left, right, _MIDDLE, _MIDDLE, "whisker"))
        parts += [_line(end, end, _MIDDLE - 5, _MIDDLE + 5, "whisker") for end in (left, right)]
    if change.difference is not None:
        clear = change.low is not None and change.high is not None and (change.low > 0 or change.high < 0)
        parts.append(
            tag("circle", cx=_percent(on.at(change.difference)), cy=_MIDDLE, r=5, class_="clear" if clear else "open")
        )
    return _picture(parts, said)


def axis(on: Scale) -> Html:
    """The scale's ticks with their values, in percentage points."""
    parts = [_line(on.at(0.0), on.at(0.0), 0, 6, "zero")]
    for tick in on.ticks:
        x = on.at(tick)
        parts.append(_line(x, x, 0, 5, "tick"))
        parts.append(tag("text", points(tick), x=_percent(x), y=20, text_anchor="middle"))
    return _picture(parts, f"scale from {points(on.low)} to {points(on.high)} percentage points")


def bars(out_first: int, out_any: int, in_first: int, in_any: int, most: int, said: str) -> Html:
    """Pages thrown out to the left and let in to the right; `most` pages fill one side."""

    def length(pages: int) -> float:
        return (50 - _EDGE) * pages / max(1, most)

    parts = []
    for pages, kind in ((out_any, "any"), (out_first, "first")):
        parts.append(_bar(50 - length(pages), length(pages), f"out {kind}"))
    for pages, kind in ((in_any, "any"), (in_first, "first")):
        parts.append(_bar(50, length(pages), f"in {kind}"))
    parts.append(_line(50, 50, 0, _HEIGHT, "zero"))
    return _picture(parts, said)


def _nice(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * (1 - 1e-9))


def _bar(x: float, width: float, kind: str) -> Html:
    return tag("rect", x=_percent(x), y=4, width=_percent(width), height=_HEIGHT - 8, class_=kind)


def _line(x1: float, x2: float, y1: float, y2: float, kind: str) -> Html:
    return tag("line", x1=_percent(x1), x2=_percent(x2), y1=y1, y2=y2, class_=kind)


def _picture(parts: Iterable[Html], said: str) -> Html:
    return tag("svg", *parts, role="img", aria_label=said, width="100%", height=_HEIGHT)


def _percent(value: float) -> str:
    return f"{value:.3f}%"
