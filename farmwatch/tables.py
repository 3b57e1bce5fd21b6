"""Tables for a terminal: fitted to its width by leaving columns out, never by shortening a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NARROWEST = 10  # characters that a folded column keeps
_WIDE = 10_000  # a width at which no table is folded


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table as it goes to the terminal, and what is said under it."""

    table: Table
    notes: list[str]


def fit(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    less: Sequence[str] = (),
    same: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> Fitted:
    """A table for the width of `console`.

    Columns of `same` stand under the table when all rows agree. Columns of `less` are left out, the first one first,
    until the rest fits, and the note says which. What is too wide then is folded: every character is shown. `styles`
    are one a row.
    """
    columns = list(range(len(headings)))
    notes = []
    for column in [place for place in columns if headings[place] in same]:
        values = {row[column] for row in rows}
        if len(values) == 1:
            columns.remove(column)
            notes.append(f"{headings[column]}: {values.pop() or '-'}")
    left_out: list[str] = []
    for heading in less:
        column = headings.index(heading)
        if _natural_width(console, _table(headings, rows, columns, title, styles)) <= console.width:
            break
        if column in columns:
            columns.remove(column)
            left_out.append(heading)
    if left_out:
        notes.append(f"left out for the width of the terminal: {', '.join(left_out)}; --json has all")
    table = _table(headings, rows, columns, title, styles)
    excess = _natural_width(console, table) - console.width
    if excess > 0:
        widths = [_cell_width(headings[place], [row[place] for row in rows]) for place in columns]
        while excess > 0 and max(widths) > _NARROWEST:
            widest = widths.index(max(widths))
            widths[widest] -= 1
            excess -= 1
        for column_of_table, width in zip(table.columns, widths, strict=True):
            column_of_table.width = width
    return Fitted(table, notes)


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], title: str, styles: Sequence[str]
) -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for place in columns:
        table.add_column(headings[place], overflow="fold")
    for number, row in enumerate(rows):
        cells = (Text(row[place]) for place in columns)  # Text: page data is never read as markup
        table.add_row(*cells, style=styles[number] if styles else None)
    return table


def _natural_width(console: Console, table: Table) -> int:
    table.title, title = None, table.title  # a title is wrapped, it need not fit in one line
    try:
        return console.measure(table, options=console.options.update(width=_WIDE)).maximum
    finally:
        table.title = title


def _cell_width(heading: str, cells: Sequence[str]) -> int:
    return max(Text(text).cell_len for text in (heading, *cells))
