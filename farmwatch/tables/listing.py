"""The options that all lists have, and how a list is shown or written."""

from __future__ import annotations

import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, get_args

from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.tables.arrow import json_text
from farmwatch.tables.columns import Column, T
from farmwatch.tables.files import Blocklist, Format, format_of, require_new, write_rows, write_table
from farmwatch.terminal.messages import message, put_table
from stream.log.contract import wall_ms
from stream.text.times import read_time
from stream.text.user_errors import UsageError
from stream.text.wording import counted, moment, nearest, one_line

_TABLE_ROWS = 100
_VALUES_SHOWN = 6  # of a column, in the totals
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "~": lambda cell, text: text in str(cell),
}
_CONDITION = re.compile(r"(\w+)\s*(!=|>=|<=|[=<>~])\s*(.*)", re.DOTALL)
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Listing:
    """How a list is sorted, filtered, cut and written."""

    sort: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="Sort by this column: numbers from the largest, times from the newest, text from A; -COLUMN: the"
            " other way.",
        ),
    ] = ""
    where: Annotated[
        list[str],
        Parameter(
            negative="",
            help="Only rows where this holds: verdict=llm, 'articles>=10', url~/blog/ (contains); may be repeated.",
        ),
    ] = field(default_factory=list)
    limit: Annotated[
        int | None, Parameter(help="Rows at most; 0 = all. Default: 100 of a table.", validator=Number(gte=0))
    ] = None
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Write a new file, whose name ends in .csv, .json, .jsonl or .parquet."),
    ] = None
    format: Annotated[
        Literal["table", Format] | None, Parameter(help="Default: as the file's name ends; a table without a file.")
    ] = None
    json: Annotated[bool, Parameter(negative="", help="The same as --format jsonl: one JSON object a line.")] = False

    @property
    def form(self) -> Literal["table", Format]:
        """The format. Raises UsageError for two formats, or for one that needs a file."""
        if self.json and self.format not in (None, "jsonl"):
            raise UsageError(f"--json and --format {self.format}: give one of them")
        form = "jsonl" if self.json else self.format or ("table" if self.out is None else format_of(self.out))
        if (form == "table") != (self.out is None) and form in ("table", "parquet"):
            raise UsageError(f"--format {form}: {'it is no file' if form == 'table' else 'name a file with --out'}")
        if (
            self.out is not None
            and (ending := self.out.suffix.removeprefix(".")) != form
            and ending in get_args(Format)
        ):
            raise UsageError(f"--format {form} and --out {self.out}: give one of them")
        return form

    @property
    def is_table(self) -> bool:
        return self.form == "table"

    def of(self, columns: Sequence[Column[T]]) -> Selection[T]:
        """The selection of rows with these columns. Raises UsageError for an unknown column, format or value."""
        _ = self.form  # raises
        if self.out is not None:
            require_new(self.out)
        by_name = {column.name: column for column in columns}
        key = _named(by_name, self.sort.removeprefix("-"), "--sort") if self.sort else None
        return Selection(self, columns, key, [_condition(by_name, text) for text in self.where])


LISTING = Listing()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class SiteListing(Listing):
    """As other lists, and with --llm also as a blocklist."""

    format: Annotated[
        Literal["table", Format, Blocklist] | None,
        Parameter(help="Default: as the file's name ends; a table without a file. With --llm also a blocklist."),
    ] = None  # type: ignore[assignment]  # more choices than other lists have

    @property
    def blocklist(self) -> Blocklist | None:
        """The format of a blocklist, if it is one."""
        return next((form for form in get_args(Blocklist) if form == self.format), None)


SITE_LISTING = SiteListing()


@dataclass(frozen=True, slots=True)
class Selection(Generic[T]):
    """A list to be shown: its options, checked against its columns."""

    options: Listing
    columns: Sequence[Column[T]]
    key: Column[T] | None
    conditions: list[Callable[[T], bool]]

    def rows(self, rows: Iterable[T]) -> Iterable[T]:
        """The rows of which all conditions hold, sorted; unknown values last."""
        chosen = (row for row in rows if all(holds(row) for holds in self.conditions))
        if self.key is None:
            return chosen
        known, unknown = list[T](), list[T]()
        for row in chosen:
            (known if self.key.of(row) not in (None, "") else unknown).append(row)
        column = self.key

        def cell(row: T) -> Any:
            value = json_text(column.of(row)) if column.kind == "json" else column.of(row)
            return value if column.then_by is None else (value, column.then_by(row))

        largest_first = column.kind not in ("text", "json")
        known.sort(key=cell, reverse=largest_first != self.options.sort.startswith("-"))
        return [*known, *unknown]

    def put(self, rows: Iterable[T], noun: str, shown: Sequence[str] = (), most: int | None = _TABLE_ROWS) -> None:
        """Show a table of the columns `shown` (default: all), the last left out first for width; or write all columns.

        Columns of --where and --sort are shown too. Without --limit, a table has `most` rows.
        """
        form, limit = self.options.form, self.options.limit
        limit = most if limit is None and form == "table" else limit or None
        totals = ListTotals(self.columns)
        chosen = totals.counted(self.rows(rows))
        if form != "table":
            cut = islice(chosen, limit)
            if self.options.out is None:
                write_rows(sys.stdout.buffer, form, self.columns, cut)
                sys.stdout.flush()
            else:
                number = write_table(self.options.out, form, self.columns, cut)
                message(one_line(f"{self.options.out}: {counted(number, noun)}"))
            return
        by_name = {column.name: column for column in self.columns}
        shown = shown or list(by_name)
        asked = [named[1] for text in self.options.where if (named := _CONDITION.fullmatch(text))]
        asked += [self.key.name] if self.key else []
        shown = [*shown[:1], *(name for name in dict.fromkeys(asked) if name not in shown), *shown[1:]]
        columns = [by_name[name] for name in shown]
        cells = [[shown_cell(column, row) for column in columns] for row in islice(chosen, limit)]
        for _ in chosen:
            pass  # the totals are of all rows
        headings = put_table(shown, cells, less=shown[:0:-1])
        is_read = bool(cells) and sys.stdout.isatty()
        said = "; ".join(f"{name}: {by_name[name].meaning}" for name in headings if is_read and by_name[name].meaning)
        for line in (*filter(None, [said]), *totals.lines(noun, len(cells))):
            message(line)


class ListTotals(Generic[T]):
    """The totals of the rows that went through `counted`."""

    def __init__(self, columns: Sequence[Column[T]]) -> None:
        self.number = 0
        self._sums = {column: 0 for column in columns if column.total == "sum"}
        self._values: dict[Column[T], Counter[str]] = {c: Counter() for c in columns if c.total == "count"}

    def counted(self, rows: Iterable[T]) -> Iterator[T]:
        """The rows, counted as they pass."""
        for row in rows:
            self.number += 1
            for column in self._sums:
                self._sums[column] += column.of(row) or 0
            for column, values in self._values.items():
                values[str(shown_cell(column, row))] += 1
            yield row

    def lines(self, noun: str, shown: int) -> Iterator[str]:
        """The totals in words: the number of rows, how often each value occurs, and sums."""
        facts = [counted(self.number, noun)]
        for column, values in self._values.items():
            common = [f"{number:,} {value}" for value, number in values.most_common(_VALUES_SHOWN) if value]
            rest = len(values) - _VALUES_SHOWN
            if common:
                facts.append(f"{column.name} {', '.join(common)}{f' and {rest} more' if rest > 0 else ''}")
        facts += [f"{total:,} {column.name}" for column, total in self._sums.items() if total]
        yield one_line("; ".join(facts))
        if shown < self.number:
            yield f"{shown:,} of {self.number:,} shown: --limit 0 shows all"


def _condition(columns: dict[str, Column[T]], text: str) -> Callable[[T], bool]:
    """The condition of `--where`. Raises UsageError."""
    if (match := _CONDITION.fullmatch(text)) is None:
        raise UsageError(f"--where {text!r}: COLUMN, one of {' '.join(_COMPARED)}, and a value, such as verdict=llm")
    name, sign, value = match.groups()
    column = _named(columns, name, "--where")
    if sign in ("=", "!=") and value in column.words and (said := column.said) is not None:
        return lambda row: _COMPARED[sign](said(row), value)
    compared, wanted = _COMPARED[sign], value if sign == "~" else _value(column, value)

    def holds(row: T) -> bool:
        cell = column.of(row) if column.kind != "json" else json_text(column.of(row))
        if cell is None or wanted is None:
            return sign in "!=" and compared(cell in (None, ""), wanted in (None, ""))
        return compared(cell, wanted)

    return holds


def read_share(text: str) -> float:
    """A number, or a percentage such as 1% as a share. Raises ValueError."""
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def _value(column: Column[T], text: str) -> Any:
    """The text as a value of the column; None for an empty one that is no text. Raises UsageError."""
    try:
        match column.kind:
            case "integer" | "number" | "share":
                return read_share(text) if text else None
            case "time":
                return read_time(text, wall_ms(), may_come=True)
            case "truth":
                return _TRUTHS[text.lower()]
            case "json":
                raise ValueError
            case _ if text and column.values and text not in column.values:
                raise ValueError
            case _:
                return text
    except (ValueError, KeyError):
        takes = {"truth": "true or false", "time": "a time such as 2026-11-22", "json": "~ and a part of its text"}
        takes["text"] = ", ".join(column.values + column.words)
        said = f"{column.name} takes {takes.get(column.kind, 'a number')}, not {text!r}"
        raise UsageError(f"--where: {said}") from None


def _named(columns: dict[str, Column[T]], name: str, option: str) -> Column[T]:
    if name not in columns:
        meant = f"did you mean {near}? " if (near := nearest(name, columns)) else ""
        raise UsageError(f"{option} {name!r}: {meant}the columns are {', '.join(columns)}")
    return columns[name]


def shown_cell(column: Column[T], row: T) -> Any:
    """A cell of a table: a truth as yes, a time to the minute, a float with few digits, a list with commas."""
    if column.said is not None:
        return column.said(row)
    cell = column.of(row)
    if cell is None or cell is False or (column.kind == "time" and not cell):
        return ""
    if column.kind == "time":
        return moment(cell)[:16]
    if column.kind == "share":
        return f"{cell:.1%}"
    if isinstance(cell, list):
        return ", ".join(map(str, cell))
    return "yes" if cell is True else f"{cell:.2f}" if isinstance(cell, float) else cell
