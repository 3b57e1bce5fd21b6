"""Tables for a terminal. A table that is too wide loses columns or folds cells; no cell is shortened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_WIDE = 10_000  # a width at which no table is folded


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table for the terminal, and the notes under it."""

    table: RenderableType
    notes: list[str]
    shown: list[str]  # headings


def fit(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    less: Sequence[str] = (),
    same: Sequence[str] = (),
    styles: Sequence[str] = (),
    below: int = 0,
) -> Fitted:
    """A table for the width of `console`.

    Empty columns are left out; a column of `same` becomes a note if all its cells with text agree. Columns of `less`
    are left out in this order until the table fits, with a note. A table that is still too wide is folded; with
    `below`, the last this many cells of each row go to separate lines, and none is left out. `styles` are one per row.
    """
    columns = [place for place in range(len(headings)) if not rows or any(row[place] for row in rows)]
    notes = []
    for column in [place for place in columns if headings[place] in same]:
        values = {row[column] for row in rows if row[column]}
        if len(values) == 1:
            columns.remove(column)
            notes.append(f"{headings[column]}: {values.pop()}")
    chosen, left_out = list(columns), []
    for heading in less:
        if _excess(console, headings, rows, chosen) <= 0:
            break
        if headings.index(heading) in chosen:
            chosen.remove(headings.index(heading))
            left_out.append(heading)
    excess = _excess(console, headings, rows, chosen)
    if below and excess > 0:
        stacked = _stacked(headings, rows, columns, len(headings) - below, title, styles)
        return Fitted(stacked, notes, [headings[place] for place in columns])
    if left_out:
        notes.append(f"left out for width: {', '.join(left_out)}; --json has all")
    widths = _widths([[headings[place], *(row[place] for row in rows)] for place in chosen], excess)
    table = _table(headings, rows, chosen, title, styles, widths)
    return Fitted(table, notes, [headings[place] for place in chosen])


def _excess(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    """The excess of the table's width over the console's."""
    table = _table(headings, rows, columns, "", ())
    return console.measure(table, options=console.options.update(width=_WIDE)).maximum - console.width


def _widths(columns: Sequence[Sequence[str]], excess: int) -> Sequence[int]:
    """Widths of columns, narrower by `excess` in total: the widest first, with whole words as long as possible."""
    widths = [max(map(cell_len, cells), default=0) for cells in columns]
    words = [max((cell_len(word) for cell in cells for word in cell.split()), default=1) for cells in columns]
    for least in (words, [1] * len(columns)):
        while excess > 0:
            widest = max(range(len(columns)), key=lambda place: (widths[place] > least[place], widths[place]))
            if widths[widest] <= least[widest]:
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: Sequence[int],
    title: str,
    styles: Sequence[str],
    widths: Sequence[int | None] = (),
) -> Table:
    table = Table(
        title=escape(title) or None,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for place, width in zip(columns, widths or [None] * len(columns), strict=True):
        # Text: cells hold text of crawled pages, which is not markup
        table.add_column(Text(headings[place]), overflow="fold", width=width)
    for number, row in enumerate(rows):
        table.add_row(*(Text(row[place]) for place in columns), style=styles[number] if styles else None)
    return table


def _stacked(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: Sequence[int],
    first_below: int,
    title: str,
    styles: Sequence[str],
) -> Group:
    """Each row as a line, and below it its other cells, each with its heading."""
    lines: list[RenderableType] = [Text(title, style="italic")] if title else []
    for number, row in enumerate(rows):
        beside = "  ".join(row[place] for place in columns if place < first_below and row[place])
        lines.append(Text(beside, style=(styles[number] if styles else "") or "bold", overflow="fold"))
        for place in columns:
            if place >= first_below and row[place]:
                lines.append(Padding(Text(f"{headings[place]}: {row[place]}", overflow="fold"), (0, 0, 0, 2)))
    return Group(*lines)
