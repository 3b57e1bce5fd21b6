"""Pictures of the console, as SVG with a text alternative: a function for each, from numbers to markup.

Places are percentages of the width, so that letters keep their size on every screen. Every text is escaped, colours are
classes of `static/pictures.css`, and nothing moves or loads anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from markupsafe import Markup

from stream.text.times import DAY_MS
from stream.text.wording import one_line

_ROW = 44  # px: a row of a chart
_TREND, _SCORES, _TOP = 170, 80, 18  # px of curves, and above them
_LABEL = 24  # letters that stand beside a value on a telephone
_STEPS_MS = [n * 3_600_000 for n in (1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24, 182 * 24)]
_TICKS, _DOTS = 4, 60  # at most, on the axis and on a curve
_YEARS = 8  # at most, below a timeline


class Strip(NamedTuple):
    """A row of a chart of shares; `said` is what it is of, `mark` another share, to compare it with."""

    label: str
    share: float | None
    low: float | None
    high: float | None
    said: str
    mark: float | None = None


class Portion(NamedTuple):
    """A part of a whole; `look` is the class of its colour."""

    label: str
    number: int
    look: str


class Point(NamedTuple):
    """A share at a time (ms). Only points of one version are joined."""

    at: int
    share: float | None
    low: float | None
    high: float | None
    version: str


class Step(NamedTuple):
    """A page in the order of a site's test: its probability, if it has one, and the sum after it."""

    p: float | None
    sum: float
    said: str
    look: str


class Dated(NamedTuple):
    """An article at its day of publication: its probability, if it has one."""

    day: date
    p: float | None
    said: str
    look: str


class Mark(NamedTuple):
    """What happened at a time (ms); `kind` is the class of its line."""

    at: int
    kind: str
    text: str


def percent(share: float | None) -> str:
    """As the text of the pages has it."""
    return "–" if share is None else f"{share:.1%}"


def shares(title: str, rows: Sequence[Strip], *, is_headline: bool = False) -> Markup:
    """A strip from 0 to 100% for each row: its share as a dot, its interval as a band. A headline has the words."""
    drawn, told = list[Markup](), list[str]()
    for number, row in enumerate(rows):
        y = number * _ROW + (2 if is_headline else 18)
        range_ = f", {percent(row.low)} to {percent(row.high)}" if row.low is not None else ""
        share = "no share" if row.share is None else percent(row.share)
        told.append(f"{row.label}: {share}{range_} {row.said}".strip())
        if not is_headline:
            label = row.label if len(row.label) <= _LABEL else f"{row.label[: _LABEL - 1]}…"
            drawn.append(_text(0, y - 5, label))
            drawn.append(_text(1, y - 5, f"{percent(row.share)}{range_}"))
        drawn.append(_bar(0, 1, y + 4, 8, "track"))
        if row.low is not None and row.high is not None:
            drawn.append(_bar(row.low, row.high, y, 16, "band"))
        if row.mark is not None:
            place = _place(row.mark)
            drawn.append(_tag("line", x1=place, x2=place, y1=y - 2, y2=y + 18, class_="mark"))
        if row.share is not None:
            drawn.append(_dot(row.share, y + 8, 6, "point", told[-1]))
    y = len(rows) * _ROW - (8 if is_headline else -6)
    drawn += [_text(n / 4, y, f"{25 * n}%") for n in range(5)]
    return picture(title, told, y + 8, drawn)


def whole(title: str, parts: Sequence[Portion]) -> Markup:
    """One bar of all parts; its legend is text beside it."""
    total, until, drawn = sum(part.number for part in parts) or 1, 0, [_bar(0, 1, 0, 24, "track")]
    told = [f"{part.label}: {part.number:,} ({part.number / total:.0%})" for part in parts]
    for part, said in zip(parts, told, strict=True):
        drawn.append(_bar(until / total, (until + part.number) / total, 0, 24, part.look, said))
        until += part.number
    return picture(title, told, 24, drawn)


def bars(title: str, parts: Sequence[Portion]) -> Markup:
    """A bar for each part, as long as its number is of the largest."""
    most, told = max([part.number for part in parts] or [0]) or 1, [f"{part.label}: {part.number:,}" for part in parts]
    drawn = [_bar(0, part.number / most, n * _ROW + 18, 16, part.look, told[n]) for n, part in enumerate(parts)]
    drawn += [_text(0, n * _ROW + 13, one) for n, one in enumerate(told)]
    return picture(title, told, len(parts) * _ROW, drawn)


def trend(title: str, points: Sequence[Point], marks: Sequence[Mark] = ()) -> Markup:
    """Shares over time with their intervals, and a numbered line for each mark."""
    known = [point for point in points if point.share is not None]
    if not known:
        return Markup()
    first, last = min(point.at for point in points), max(point.at for point in points)
    low, high, step = _scale([end for p in known for end in (p.low, p.share, p.high) if end is not None])

    def across(at: int) -> float:
        return (at - first) / (last - first) if last > first else 0.5

    def down(share: float) -> float:
        return _TOP + _TREND * (1 - (share - low) / (high - low))

    drawn = [level(down(low + n * step), f"{low + n * step:.0%}") for n in range(round((high - low) / step) + 1)]
    versions = Counter(point.version for point in known)
    for version in versions:
        own = [(across(p.at), p) for p in known if p.version == version]
        ends_of = [(x, down(p.high), down(p.low)) for x, p in own if p.low is not None and p.high is not None]
        band = [*((x, top) for x, top, _ in ends_of), *((x, bottom) for x, _, bottom in reversed(ends_of))]
        drawn.append(curve([(x, down(p.share or 0.0)) for x, p in own], band, _TOP, _TREND))
    for number, mark in enumerate(marks, 1):
        place = _place(across(mark.at))
        drawn.append(_tag("line", mark.text, x1=place, x2=place, y1=_TOP, y2=_TOP + _TREND, class_=f"mark {mark.kind}"))
        drawn.append(_text(across(mark.at), _TOP - 3, str(number)))
    told = [f"{_moment(p.at)}: {percent(p.share)}, {percent(p.low)} to {percent(p.high)}" for p in known]
    for point, said in zip(known, told, strict=True):
        x = across(point.at)
        if versions[point.version] == 1 and point.low is not None and point.high is not None:  # no band
            ends_y = {"y1": round(down(point.low), 1), "y2": round(down(point.high), 1)}
            drawn.append(_tag("line", x1=_place(x), x2=_place(x), **ends_y, class_="whisker"))
        if len(known) <= _DOTS or versions[point.version] == 1:
            drawn.append(_dot(x, down(point.share or 0.0), 4, "point", said))
    drawn += [_text(across(at), _TOP + _TREND + 18, word) for at, word in _ticks(first, last)]
    marked = [f"{mark.kind} at {_moment(mark.at)}: {mark.text}" for mark in marks]
    range_ = [f"from {told[0]}", f"to {told[-1]}"] if len(known) > 1 else told
    return picture(title, [*range_, *marked], _TOP + _TREND + 24, drawn)


def path(title: str, steps: Sequence[Step], bounds: Mapping[str, float], threshold: float | None) -> Markup:
    """Above the probability of each page and the threshold of a flag, below the sum of the test and its bounds."""
    if not steps:
        return Markup()
    middle, below, height = _TOP + _SCORES, _TOP + _SCORES + 36, _TREND
    sums = [*(step.sum for step in steps), *bounds.values(), 0.0]
    low, high = min(sums), max(sums) + 1e-9
    down = [below + height * (high - value) / (high - low) for value in sums]
    places = [n / max(1, len(steps) - 1) for n in range(len(steps))]
    told = [f"{name} at {bound:+.2f}" for name, bound in bounds.items()]
    drawn = [level(_TOP, "p(LLM) 100%"), level(middle, "0%")]
    drawn += [level(y, words, "mark") for y, words in zip(down[len(steps) :], told, strict=False)]
    if threshold is not None:
        told.append(f"flagged above {threshold:.0%}")
        y = middle - _SCORES * threshold
        drawn += [level(y, "", "mark"), _text(1, y + 24, told[-1])]
    drawn.append(curve(list(zip(places, down, strict=False)), (), below, height))
    for x, step, y in zip(places, steps, down, strict=False):
        drawn.append(_dot(x, y if step.p is None else middle - _SCORES * step.p, 4, step.look, step.said))
    for n in {0, len(steps) - 1}:
        drawn.append(_text(places[n], below + height + 18, f"page {n + 1}"))
    return picture(title, [*told, *(step.said for step in steps)], below + height + 24, drawn)


def timeline(title: str, articles: Sequence[Dated], mark: date, words: str) -> Markup:
    """The probability of each article at its day of publication, below the line those without; `mark` is a day."""
    if not articles:
        return Markup()
    days = [mark, *(article.day for article in articles)]
    first, last = min(days).replace(month=1, day=1), max(days)
    middle = _TOP + _SCORES

    def across(day: date) -> float:
        return (day - first).days / max(1, (last - first).days)

    place = _place(across(mark))
    drawn = [level(_TOP, "p(LLM) 100%"), level(middle, "0%")]
    drawn.append(_tag("line", words, x1=place, x2=place, y1=_TOP, y2=middle, class_="mark"))
    for day, p, said, look in articles:
        drawn.append(_dot(across(day), middle + 10 if p is None else middle - _SCORES * p, 4, look, said))
    every = -(-(last.year - first.year + 1) // _YEARS)
    years = (date(year, 1, 1) for year in range(first.year, last.year + 1, every))
    drawn += [_text(across(day), middle + 32, str(day.year)) for day in years]
    return picture(title, [f"{words}: {mark}", *(article.said for article in articles)], middle + 38, drawn)


def level(y: float, words: str, look: str = "grid") -> Markup:
    """A line from side to side, and its words above it."""
    line = _tag("line", x1=_place(0), x2=_place(1), y1=round(y, 1), y2=round(y, 1), class_=look)
    return line + _text(0, y - 7, words)


def curve(points: Sequence[tuple[float, float]], band: Sequence[tuple[float, float]], top: int, height: int) -> Markup:
    """A line and a band, stretched over the width of the picture; places are parts of the width, and px."""
    inside = [
        _tag(name, points=" ".join(f"{1000 * x:.1f},{y - top:.1f}" for x, y in places), class_=look)
        for name, places, look in (("polygon", band, "band"), ("polyline", points, "curve"))
    ]
    size = {"x": _place(0), "y": top, "width": "100%", "height": height, "viewBox": f"0 0 1000 {height}"}
    return _tag("svg", Markup("").join(inside), **size, preserveAspectRatio="none")


def _scale(shares: Sequence[float]) -> tuple[float, float, float]:
    """The ends of an axis around these shares, and the step between its lines, of which there are six at most."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25):
        start, end = int(min(shares) / step) * step, -int(-max(shares) / step - 0.999999) * step
        if end - start <= 5 * step:
            break
    start = min(start, 1 - step)
    return start, min(1.0, max(end, start + step)), step


def _ticks(first: int, last: int) -> list[tuple[int, str]]:
    """Round times between two, with their words."""
    if last - first < _STEPS_MS[0]:
        return [(last, _moment(last))]
    step = next((step for step in _STEPS_MS if last - first <= _TICKS * step), _STEPS_MS[-1])
    begin = -(-first // step) * step
    times = range(begin, last + 1, step) if begin <= last else (last,)
    return [(at, _moment(at)[5:10] if at % DAY_MS == 0 else _moment(at)[11:16]) for at in times]


def _moment(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _place(part: float) -> str:
    return f"{100 * part:.2f}%"


def _bar(start: float, end: float, y: int, height: int, look: str, said: str = "") -> Markup:
    size = {"x": _place(start), "y": y, "width": _place(end - start), "height": height}
    return _tag("rect", said, **size, class_=look)


def _dot(x: float, y: float, r: int, look: str, said: str) -> Markup:
    return _tag("circle", said, cx=_place(x), cy=round(y, 1), r=r, class_=look)


def _text(part: float, y: float, words: str) -> Markup:
    anchor = "start" if part < 0.08 else "end" if part > 0.92 else "middle"
    return _tag("text", words, x=_place(part), y=round(y), text_anchor=anchor)


def picture(title: str, told: Iterable[str], height: float, drawn: Iterable[Markup]) -> Markup:
    """A picture of this height (px) with its text alternative."""
    inside = [_tag("title", title), _tag("desc", "; ".join(told)), *drawn]
    return _tag("svg", Markup("").join(inside), class_="picture", role="img", height=round(height))


def _tag(name: str, inside: str = "", /, **attributes: object) -> Markup:
    """An element with these attributes; text in a shape is its title, which a pointer shows."""
    told = [(key.removesuffix("_").replace("_", "-"), one_line(str(value))) for key, value in attributes.items()]
    of = Markup("").join(Markup(' {}="{}"').format(*pair) for pair in told)
    if not isinstance(inside, Markup):
        inside = Markup("{}").format(one_line(inside))
        if inside and name not in ("title", "desc", "text"):
            inside = Markup("<title>{}</title>").format(inside)
    return Markup("<{0}{1}>{2}</{0}>").format(name, of, inside)
