"""Writes the rows of a table to a CSV, JSON lines or Parquet file, a bounded number at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from farmwatch.archive.tables import Column
from stream.text.user_errors import MissingExtra, UsageError

Format = Literal["parquet", "csv", "jsonl"]
_GROUP_ROWS, _GROUP_CHARACTERS = 20_000, 32 * 1024 * 1024  # of a row group of Parquet, which is held in memory
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet executes a cell that begins like this


def write_table(file: Path, form: Format, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> int:
    """Write a new file; returns the number of rows. The file appears when it is complete.

    Raises UsageError if it exists, MissingExtra for Parquet without pyarrow; OSError.
    """
    if file.exists():
        raise UsageError(f"{file} exists: name another file")
    number = 0

    def counted() -> Iterator[Sequence[Any]]:
        nonlocal number
        for row in rows:
            number += 1
            yield row

    unfinished = file.with_name(f"{file.name}.part")
    try:
        {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}[form](unfinished, columns, counted())
        unfinished.rename(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return number


def _write_csv(file: Path, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(column.name for column in columns)
        writer.writerows(map(_cell, columns, row) for row in rows)


def _cell(column: Column, value: Any) -> Any:
    if value is None:
        return ""
    if column.kind == "json":
        return _json(value)
    if column.kind == "truth":
        return "true" if value else "false"
    return f"'{value}" if column.kind == "text" and value.startswith(_FORMULA) else value


def _write_jsonl(file: Path, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    names = [column.name for column in columns]
    with file.open("wb") as opened:
        for row in rows:
            opened.write(msgspec.json.encode(dict(zip(names, map(_plain, row), strict=True))) + b"\n")


def _write_parquet(file: Path, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise MissingExtra("--format parquet needs pyarrow", extra="parquet") from error
    kinds = {"integer": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    schema = pa.schema([(column.name, kinds.get(column.kind, pa.string())) for column in columns])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _groups(rows):
            values = zip(*group, strict=True)
            arrays = [
                pa.array(map(_json, of) if column.kind == "json" else of, field.type)
                for column, field, of in zip(columns, schema, values, strict=True)
            ]
            writer.write_table(pa.table(arrays, schema=schema))


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


def _plain(value: Any) -> Any:
    has_structs = isinstance(value, list) and bool(value) and isinstance(value[0], msgspec.Struct)
    return [msgspec.structs.asdict(part) for part in value] if has_structs else value


def _json(value: Any) -> str:
    return msgspec.json.encode(_plain(value)).decode()
