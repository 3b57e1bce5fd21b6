"""Writes the rows of a table as CSV, JSON or Parquet, a bounded number at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

import msgspec

from farmwatch.tables.arrow import arrow_batches, arrow_schema, json_text
from farmwatch.tables.columns import Column, T, plain
from stream.text.user_errors import FarmwatchError, UsageError

Format = Literal["csv", "json", "jsonl", "parquet"]
Blocklist = Literal["ublacklist", "hosts", "adblock", "searxng"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet executes a cell that begins like this


def format_of(file: Path) -> Format:
    """The format that the name of a file ends in. Raises UsageError."""
    if (ending := file.suffix.lower().removeprefix(".")) in get_args(Format):
        return cast("Format", ending)
    raise UsageError(f"{file}: a file ends in {', '.join(f'.{form}' for form in get_args(Format))}; or give --format")


def require_new(file: Path) -> None:
    """Raises UsageError for a file that exists, FarmwatchError for one in no folder: before the work begins."""
    if file.exists() or file.is_symlink():
        raise UsageError(f"{file} exists: name another file")
    if not file.parent.is_dir():
        raise FarmwatchError(f"{file}: cannot be written: there is no folder {file.parent}")


def write_table(file: Path, form: Format, columns: Sequence[Column[T]], rows: Iterable[T]) -> int:
    """Write a new file; returns the number of rows. The file appears when it is complete.

    Raises UsageError if it exists, MissingExtra for Parquet without pyarrow; OSError.
    """
    require_new(file)
    number = 0

    def counted() -> Iterator[T]:
        nonlocal number
        for row in rows:
            number += 1
            yield row

    unfinished = file.with_name(f"{file.name}.part")
    try:
        with unfinished.open("wb") as opened:
            write_rows(opened, form, columns, counted())
        unfinished.rename(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return number


def write_rows(stream: IO[bytes], form: Format, columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    """Write the rows to a stream. Raises MissingExtra for Parquet without pyarrow; OSError."""
    writers: dict[Format, Callable[[IO[bytes], Sequence[Column[T]], Iterable[T]], None]] = {
        "csv": _write_csv,
        "json": _write_json,
        "jsonl": _write_jsonl,
        "parquet": _write_parquet,
    }
    writers[form](stream, columns, rows)


def _write_csv(stream: IO[bytes], columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(_Lines(text), lineterminator="\r\n")  # a cell with either character is quoted
    writer.writerow(column.name for column in columns)
    writer.writerows([_cell(column, column.of(row)) for column in columns] for row in rows)
    text.detach()


class _Lines:
    """Ends the lines of a CSV writer as Unix does."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text

    def write(self, line: str) -> None:
        self._text.write(f"{line.removesuffix(chr(13) + chr(10))}\n")


def _cell(column: Column[T], value: Any) -> Any:
    if value is None:
        return ""
    if column.kind == "json":
        return json_text(value)
    if column.kind == "truth":
        return "true" if value else "false"
    return f"'{value}" if column.kind == "text" and value.startswith(_FORMULA) else value


def _write_jsonl(stream: IO[bytes], columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    for line in _json_rows(columns, rows):
        stream.write(line + b"\n")


def _write_json(stream: IO[bytes], columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    before = b"[\n"
    for line in _json_rows(columns, rows):
        stream.write(before + line)
        before = b",\n"
    stream.write(b"\n]\n" if before == b",\n" else b"[]\n")


def _json_rows(columns: Sequence[Column[T]], rows: Iterable[T]) -> Iterator[bytes]:
    return (msgspec.json.encode({column.name: plain(column.of(row)) for column in columns}) for row in rows)


def _write_parquet(stream: IO[bytes], columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    schema = arrow_schema(columns)
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for batch in arrow_batches(columns, rows):
            writer.write_batch(batch)
