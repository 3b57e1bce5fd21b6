"""Tables for a terminal, fitted to its width: by leaving columns out, by breaking cells, never by shortening one.

Where a cell is broken it is at a space, else within a name after `_`, `-`, `/` or `|`, and only where nothing else is
left in mid-word; numbers are the last to be broken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

_NARROWEST = 10  # characters that a column keeps which is broken in mid-word
_WIDE = 10_000  # a width at which no table is folded
_PIECES = re.compile(r"(\s+)|(?<=\w[_/])(?=\w)|(?<=[^\W\d]-)(?=\w)|(?<=\S\|)(?=\S)")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*%?(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table as it goes to the terminal, and what is said under it."""

    table: RenderableType
    notes: list[str]


def fit(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    less: Sequence[str] = (),
    same: Sequence[str] = (),
    spare: Sequence[str] = (),
    styles: Sequence[str] = (),
    below: int = 0,
) -> Fitted:
    """A table for the width of `console`.

    Columns of `spare` are left out where all their cells are empty; those of `same` stand under the table when all rows
    agree. Columns of `less` are left out, the first one first, until the rest fits, and the note says which. What is
    too wide then is broken: every character is shown; the last `below` columns go to lines of their own under each row
    then, none of them left out but for empty cells. `styles` are one a row.
    """
    columns = [
        place for place, heading in enumerate(headings) if heading not in spare or any(row[place] for row in rows)
    ]
    notes = []
    for column in [place for place in columns if headings[place] in same]:
        values = {row[column] for row in rows}
        if len(values) == 1:
            columns.remove(column)
            notes.append(f"{headings[column]}: {values.pop() or '-'}")
    whole, told = list(columns), list(notes)
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
    if excess <= 0:
        return Fitted(table, notes)
    if below:
        under = [place for place in whole if place >= len(headings) - below]
        beside = [place for place in whole if place not in under]
        return Fitted(_stacked(console.width, headings, rows, beside, under, title, styles), told)
    chosen = [(headings[place], [row[place] for row in rows]) for place in columns]
    widths = _widths(chosen, excess)
    broken = [
        ["\n".join(_lines(text, width)) for text, width in zip(line, widths, strict=True)]
        for line in ([headings[place] for place in columns], *([row[place] for place in columns] for row in rows))
    ]
    table = _table(broken[0], broken[1:], range(len(columns)), title, styles)
    for column_of_table, width in zip(table.columns, widths, strict=True):
        column_of_table.width = width
    return Fitted(table, notes)


def _widths(columns: Sequence[tuple[str, Sequence[str]]], excess: int) -> list[int]:
    """Widths of columns (heading, cells), together narrower by `excess` where that can be.

    Given up in this order, of the widest column first: headings over numbers in one line, texts in one line, numbers
    and what stands beside them in one line, names whole, numbers whole.
    """
    numbers = [sum(bool(_NUMBER.match(cell)) for cell in cells) * 2 > len(cells) for _, cells in columns]
    widths = [max(map(cell_len, (heading, *cells))) for heading, cells in columns]
    pieces = [max(map(_longest_piece, (heading, *cells))) for heading, cells in columns]
    unbroken = [max(_longest_piece(heading), *map(cell_len, cells), 1) for heading, cells in columns]
    steps = (
        [unbroken[place] if number else widths[place] for place, number in enumerate(numbers)],
        [unbroken[place] if number else pieces[place] for place, number in enumerate(numbers)],
        pieces,
        [pieces[place] if number else _NARROWEST for place, number in enumerate(numbers)],
        [_NARROWEST] * len(columns),
    )
    for least in steps:
        while excess > 0:
            widest = max(range(len(columns)), key=lambda place: (widths[place] > least[place], widths[place]))
            if widths[widest] <= least[widest]:
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _longest_piece(text: str) -> int:
    return max((cell_len(piece.strip()) for piece in _PIECES.split(text) if piece), default=0)


def _lines(text: str, width: int) -> list[str]:
    """The text in lines of at most that width, broken between pieces, and within those that are longer."""
    lines, line = [], ""
    for piece in _PIECES.split(text):
        if not piece:
            continue
        if cell_len(line) + cell_len(piece) <= width:
            line += piece
            continue
        if line.strip():
            lines.append(line.rstrip())
        *whole, line = chop_cells(piece.lstrip(), max(1, width)) or [""]
        lines += whole
    return [*lines, line]


def _stacked(
    width: int,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    beside: Sequence[int],
    under: Sequence[int],
    title: str,
    styles: Sequence[str],
) -> Group:
    """Each row as a line, and below it the other cells in lines of their own, beside or under their headings."""
    indent = max(cell_len(headings[place]) for place in under) + 4
    longest = max((cell_len(row[place]) for row in rows for place in under), default=0)
    apart = indent > width // 3 and indent + longest > width
    if apart:
        indent = 4
    told: list[RenderableType] = [Text(title, style="italic")] if title else []
    for number, row in enumerate(rows):
        line = "  ".join(row[place] for place in beside if row[place])
        told.append(Text(line, style=(styles[number] if styles else "") or "bold"))
        for place in [place for place in under if row[place]]:
            head, lines = f"  {headings[place]}", _lines(row[place], width - indent)
            if apart:
                told.append(Text(head))
            else:
                told.append(Text(head + " " * (indent - cell_len(head)) + lines.pop(0)))
            told += [Text(" " * indent + line) for line in lines]
    return Group(*told)


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], title: str, styles: Sequence[str]
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
    for place in columns:  # Text: what pages and files say is never read as markup
        table.add_column(Text(headings[place]), overflow="fold")
    for number, row in enumerate(rows):
        cells = (Text(row[place]) for place in columns)
        table.add_row(*cells, style=styles[number] if styles else None)
    return table


def _natural_width(console: Console, table: Table) -> int:
    table.title, title = None, table.title  # a title is wrapped, it need not fit in one line
    try:
        return console.measure(table, options=console.options.update(width=_WIDE)).maximum
    finally:
        table.title = title
