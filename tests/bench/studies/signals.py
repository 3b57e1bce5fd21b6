"""Signals of the labelled pages, for docs/explanation/signals.md: how many pages have ads, and the cost.

Run by `python -m tests.bench.studies.signals`. The cost: CPU seconds of the signals and of one Trafilatura call on the
same page, in turn; the median of their ratio.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.extraction.trafilatura_text import by_trafilatura
from filters.signals.page_signals import signals_of
from filters.structure.measures import by_tag
from stream.schema.signals import SignalKind
from tests.bench.timing import cpu_s, labelled_pages_folder

_PUBLIC = re.compile(r"//[^/]*\.(?:gov|edu)(?:\.|/|:|$)")
_TIMED_EACH = 8  # one page in so many is timed
_COLUMNS = {
    "ads": SignalKind.ADS,
    "AdSense id": "ads:adsense:",
    "affiliate": SignalKind.AFFILIATE,
    "analytics": SignalKind.ANALYTICS,
    "CMS": SignalKind.CMS,
}


class Row(NamedTuple):
    """A page and its signals."""

    label: Label
    has_scripts: bool
    signals: list[str]


def main() -> None:
    """Print the table, then the cost."""
    rows, costs = list[Row](), list[float]()
    for number, (label, html) in enumerate(LabelledPages(labelled_pages_folder()).htmls()):
        try:
            tree = parse(readable(html))
        except ParseFailed:
            continue
        of = by_tag(list(tree.iter()))
        rows.append(Row(label, bool(of["script"]), signals_of(of, label.url)))
        if number % _TIMED_EACH == 0:
            costs.append(_cost(html, tree, of))
    _put(rows, "gov and edu", lambda row: bool(_PUBLIC.search(row.label.url)))
    _put(rows, "wcxb with scripts", lambda row: row.label.source == "wcxb" and row.has_scripts)
    for source in sorted({row.label.source for row in rows}):
        _put(rows, source, lambda row, source=source: row.label.source == source)  # type: ignore[misc]
    for kind in sorted({row.label.page_type for row in rows if row.label.source == "wcxb"}):
        _put(rows, f"wcxb: {kind}", lambda row, kind=kind: row.label.page_type == kind)  # type: ignore[misc]
    print(f"of a Trafilatura call, median of {len(costs)} pages: {statistics.median(costs):.3f}")


def _cost(html: str, tree: Any, of: Any) -> float:
    """CPU seconds of the signals as a share of those of a Trafilatura call, which changes the tree."""
    seconds = cpu_s(lambda: signals_of(of))
    return seconds / cpu_s(lambda: by_trafilatura(html, tree))


def _put(rows: Iterable[Row], name: str, is_of: Callable[[Row], bool]) -> None:
    chosen = [row.signals for row in rows if is_of(row)]
    shares = [
        sum(any(of.startswith(start) for of in page) for page in chosen) / len(chosen) for start in _COLUMNS.values()
    ]
    print("|", " | ".join([name, str(len(chosen)), *(f"{share:.3f}" for share in shares)]), "|")


if __name__ == "__main__":
    print("|", " | ".join(["pages", "n", *_COLUMNS]), "|")
    main()
