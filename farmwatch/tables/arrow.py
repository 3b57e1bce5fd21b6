"""Rows of a list as Arrow, for Parquet and the Python API, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from farmwatch.tables.columns import Column, T, plain
from stream.text.user_errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow

_GROUP_ROWS, _GROUP_CHARACTERS = 20_000, 32 * 1024 * 1024  # of a batch, a row group of Parquet


def load_pyarrow() -> Any:
    """The package pyarrow. Raises MissingExtra."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise MissingExtra("Parquet and Arrow tables need pyarrow", extra="parquet") from error
    return pyarrow


def arrow_schema(columns: Sequence[Column[T]]) -> pyarrow.Schema:
    """The columns as Arrow fields; lists and structs are JSON text. Raises MissingExtra."""
    pa = load_pyarrow()
    kinds = {"integer": pa.int64(), "time": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    return pa.schema([(column.name, kinds.get(column.kind, pa.string())) for column in columns])


def arrow_batches(columns: Sequence[Column[T]], rows: Iterable[T]) -> Iterator[pyarrow.RecordBatch]:
    """The rows as record batches, of which one at a time is held. Raises MissingExtra."""
    pa, schema = load_pyarrow(), arrow_schema(columns)
    for group in _groups([column.of(row) for column in columns] for row in rows):
        arrays = [
            pa.array(map(json_text, cells) if column.kind == "json" else cells, field.type)
            for column, field, cells in zip(columns, schema, zip(*group, strict=True), strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


def arrow_table(columns: Sequence[Column[T]], rows: Iterable[T]) -> pyarrow.Table:
    """All rows as one table. Raises MissingExtra."""
    return load_pyarrow().Table.from_batches(arrow_batches(columns, rows), arrow_schema(columns))


def json_text(value: Any) -> str | None:
    """A cell with parts as text; None stays None."""
    return None if value is None else msgspec.json.encode(plain(value)).decode()


def _groups(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    group: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += sum(len(value) for value in row if isinstance(value, str))
        if len(group) >= _GROUP_ROWS or size >= _GROUP_CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group
