"""Renders a comparison as one self-contained HTML file without scripts.

The template `report.html` escapes every value. Its Content Security Policy (https://www.w3.org/TR/CSP3/) forbids
scripts and requests, so even a mistake in escaping could not run a page's script or tell a site about the reader.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from farmwatch.runs.comparison_words import OTHER_WINDOWS, change_text, notes_of, points, remark_text, remarks_of
from farmwatch.share.words import text_of
from replay.compare.comparer import value_text
from replay.compare.comparison import SITE_KINDS, Comparison, FailedRule, GroupChange, ShareChange
from scoring.rates.groups import UNKNOWN

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
TEXT_CAP_CHARACTERS = 20_000  # of a flip's text: a browser opens the report at once
_LONGEST = 300  # characters of a threshold, which may be a list of patterns
_EDGE = 4.0  # margin at each side of a plot, percent of its width
_TICKS = 4  # approximate number
_KEPT = "\n\u200c\u200d"  # joiners are part of how some scripts are written

Row = tuple[str, ShareChange]


def render(compared: Comparison, version: str = "unknown") -> str:
    """The whole report. Values of crawled pages appear only as text."""
    template = _environment().get_template("report.html")
    rendered = template.render(
        compared=compared, notes=list(notes_of(compared)), interval=f"{compared.confidence:.0%}", version=version
    )
    return rendered.lstrip() + "\n"


class Scale(NamedTuple):
    """A plot's horizontal axis; positions are percent of the width."""

    low: float
    high: float
    ticks: Sequence[float]

    def at(self, value: float) -> float:
        """Percent from the left."""
        return _EDGE + (100 - 2 * _EDGE) * (value - self.low) / (self.high - self.low)


def scale(changes: Iterable[ShareChange]) -> Scale | None:
    """A scale that includes 0 and every interval; None if there is no difference."""
    ends = [end for one in changes for end in (one.low, one.difference, one.high) if end is not None]
    if not ends:
        return None
    low, high = min(0.0, *ends), max(0.0, *ends)
    if high - low < 1e-9:
        low, high = -0.01, 0.01  # no change: one point to each side
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(first * step, last * step, [number * step for number in range(first, last + 1)])


def printable(text: str) -> str:
    """The text with controls and direction changes (Unicode TR9, 2.1 to 2.4) as U+FFFD."""
    if text.isprintable():
        return text
    return "".join(map(_plain_character, text.replace("\r\n", "\n")))


def _plain_character(character: str) -> str:
    if character.isprintable() or character in _KEPT:
        return character
    if character == "\t":
        return "    "
    kind = unicodedata.category(character)
    if kind == "Zs":
        return " "
    if kind in ("Zl", "Zp"):
        return "\n"
    return "" if character == "\u00ad" else "\ufffd"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("farmwatch.runs", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else printable(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        POLICY=POLICY,
        OTHER_WINDOWS=OTHER_WINDOWS,
        SITE_KINDS=SITE_KINDS,
        UNKNOWN=UNKNOWN,
        TEXT_CAP_CHARACTERS=TEXT_CAP_CHARACTERS,
    )
    environment.filters.update(
        by_share=_by_share,
        count="{:,}".format,
        failed_rule=_failed_rule,
        largest=lambda rule: max(rule.let_in_any, rule.thrown_any),
        moment=_moment,
        percent=lambda share: "–" if share is None else f"{share:.1%}",
        place="{:.3f}%".format,
        points=points,
        remark=lambda change: "; ".join(map(remark_text, change.remarks)),
        remarks=remarks_of,
        scale=lambda rows: scale(change for _, change in rows),
        shortened=_shortened,
        signed=lambda number: f"{number:+,}" if number else "0",
        remarks_text=text_of,
        text=change_text,
        titled=lambda changes: [(_capital(change.title), change) for change in changes],
    )
    environment.tests.update(
        differs=lambda rule: rule.threshold_a != rule.threshold_b,
        flips=lambda rule: rule.let_in_any or rule.thrown_any,
        web_url=_is_web_url,
    )
    return environment


def _by_share(groups: Sequence[GroupChange]) -> Iterator[tuple[str, str, list[Row]]]:
    """(heading, grouping, rows) of each share."""
    titles = {(group.by, change.name): change.title for group in reversed(groups) for change in group.changes}
    for by, name in dict.fromkeys((group.by, change.name) for group in groups for change in group.changes):
        changes = [(group.group, change) for group in groups if group.by == by for change in group.changes]
        yield _capital(titles[by, name]), by, [row for row in changes if row[1].name == name]


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]


def _failed_rule(failed: FailedRule) -> str:
    value = "unknown" if failed.value is None else _shortened(value_text(failed.value))
    return f"{failed.name} is {value}, not {failed.op} {_shortened(value_text(failed.threshold))}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _moment(ms: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ms / 1000))
    except (OverflowError, OSError, ValueError):
        return f"{ms} ms"


def _is_web_url(url: Any) -> bool:
    """Whether it is safe as a link: http or https, with a host and no hidden character."""
    if not (url.isprintable() and url.lower().startswith(("http://", "https://"))):
        return False
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False
