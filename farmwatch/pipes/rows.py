"""Rows of Python, read as the pipes read their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_origin

import msgspec

from farmwatch.tables.arrow import load_pyarrow
from stream.text.user_errors import UsageError

T = TypeVar("T")
Row = Mapping[str, Any] | msgspec.Struct
"""The fields of a line: as a dict, or a struct such as another pipe gives."""


def rows_as(kind: type[T], rows: Iterable[Any]) -> Iterator[T]:
    """The rows as `kind`, a struct. Raises UsageError for one that does not fit, by its place from 0."""
    fields = msgspec.structs.fields(kind)  # type: ignore[arg-type]
    lists = [field.name for field in fields if get_origin(field.type) in (list, dict)]
    for place, row in enumerate(each_of(rows)):
        try:
            if isinstance(row, Mapping):
                in_json = {name: row[name] for name in lists if isinstance(row.get(name), str)}  # as tables have them
                row = {**row, **{name: msgspec.json.decode(text) for name, text in in_json.items()}}
            yield msgspec.convert(row, kind, from_attributes=True)
        except msgspec.DecodeError as error:
            raise UsageError(f"row {place}: {error}") from error


def each_of(rows: Iterable[Any]) -> Iterable[Any]:
    """The rows; those of a table of Arrow, pandas or Polars as dicts. Raises MissingExtra."""
    is_table = hasattr(rows, "__arrow_c_stream__") and hasattr(rows, "columns")
    return load_pyarrow().table(rows).to_pylist() if is_table else rows
