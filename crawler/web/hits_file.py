"""Hits from a file or stream: CSV with a header, JSONL, or a list of URLs. Bad lines are reported and skipped.

The first line decides the format: `{` begins JSONL, a header with a column `url` begins CSV (comma, semicolon or tab),
anything else is a list of URLs; a first line that looks like CSV without such a header rejects the file. Columns and
keys are the fields of `Hit`; others are ignored. A text may be a whole number in JSON. Default `query_id`: the query;
`source`: the reader's; `fetched_at`: the time of reading, which is not part of the id. So a file read twice gives the
same hits.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import xxhash

from crawler.errors import UnusableUrl
from crawler.web.urls import hit_url, host_of
from stream.log.contract import wall_ms
from stream.schema.records import Hit
from stream.text.ids import ident_of
from stream.text.times import read_time
from stream.text.wording import one_line

LINE_CAP = 1_000_000  # characters of one record
QUERY_ID_CAP = 200  # characters of a query id that is made from the query
_SPAN_CAP = 50  # lines that one quoted CSV record may span before its first line counts as broken
_TEXTS = ("query_id", "query", "source", "engine", "title", "snippet")
_NUMBERS = {"rank": 1, "result_page": 0}  # and the least of each; 0 is stored if there is none
_DELIMITERS = (",", ";", "\t")
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")  # names in DNS (with the underscore that some have), IPv6
_WHOLE = re.compile(r"(\d{1,10})(?:\.0*)?", re.ASCII)  # a table with gaps writes 3 as 3.0
_GZIP = b"\x1f\x8b"
_PACKED = "it looks like a gzip file: end its name in .gz, such as .csv.gz"
_FIRST_URL = re.compile(r"https?://(?P<host>[^/?#]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line without a usable hit: its number (from 1) and why."""

    number: int
    reason: str


def make_hit(fields: dict[str, Any], source: str = "file", now_ms: int = 0) -> Hit:
    """A hit from named fields; `url` is required. Raises UnusableUrl or ValueError.

    Without `query_id`, the query with folded white space is the id. Without `fetched_at`, the time is `now_ms`, which
    does not change the hit's id. A time more than a day after `now_ms`, by default the clock's, is refused.
    """
    url = fields.get("url")
    if not isinstance(url, str) or not url.strip():
        raise ValueError("no url")
    url = url.strip()
    texts = {name: _text_of(name, fields[name]) for name in _TEXTS if fields.get(name) not in (None, "")}
    texts.setdefault("source", source)
    if not texts.get("query_id", "").strip():
        texts["query_id"] = " ".join(texts.get("query", "").split())[:QUERY_ID_CAP]
    numbers = {name: _whole_number(name, fields.get(name), least) for name, least in _NUMBERS.items()}
    fetched_at = _time_ms(fields.get("fetched_at"), now_ms)
    identity = (texts["source"], texts["query_id"], texts.get("engine", ""), numbers["rank"], url, fetched_at)
    ident = xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode(identity))
    site = host_of(hit_url(url))
    if not _HOST.fullmatch(site):
        raise UnusableUrl(f"no host name can be {site[:200]!r}")
    return Hit(id=ident, site=site, url=url, fetched_at=fetched_at or now_ms, **numbers, **texts)  # type: ignore[arg-type]


def read_hits(lines: Iterable[bytes], source: str = "file", now_ms: int = 0) -> Iterator[Hit | BadLine]:
    """Hits and bad lines in the order of the file; `source` and `now_ms` are defaults for lines without them."""
    for number, fields in read_records(lines, "url"):
        if isinstance(fields, str):
            yield BadLine(number, fields)
            continue
        try:
            yield make_hit(fields, source, now_ms)
        except (UnusableUrl, ValueError) as error:
            yield BadLine(number, str(error))


def read_records(lines: Iterable[bytes], column: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Line number, and fields or an error, of each record of a file in any of the three formats.

    `column` is the required column; a plain list has only that.
    """
    numbered = enumerate(lines, 1)
    first = next(((number, line) for number, line in numbered if line.strip(b" \t\r\n\xef\xbb\xbf")), None)
    if first is None:
        return
    opening = (first[0], first[1].removeprefix(b"\xef\xbb\xbf"))
    rest = itertools.chain([opening], numbered)
    delimiter = _header_delimiter(opening[1], column)
    if opening[1].startswith(_GZIP):
        yield opening[0], _PACKED
    elif opening[1].lstrip().startswith(b"{"):
        yield from _from_each(rest, lambda text: msgspec.json.decode(text, type=dict[str, Any]))
    elif delimiter is not None:
        yield from _from_csv(rest, delimiter)
    elif column == "url" and _is_headless(opening[1]):
        yield opening[0], wrong_header(opening[1], column)
    else:
        yield from _from_each(rest, lambda text: {} if text.startswith("#") else {column: text})


_Found = Iterator[tuple[int, "dict[str, Any] | str"]]  # line number -> the fields, or the fault of the line


def _from_each(lines: Iterator[tuple[int, bytes]], read: Callable[[str], dict[str, Any]]) -> _Found:
    """Fields of formats with one record a line; lines without fields are skipped."""
    for number, line in lines:
        text = _text(line)
        if text is None:
            yield number, "not UTF-8, or longer than a million characters"
        elif text.strip():
            try:
                fields = read(text.strip())
            except (msgspec.DecodeError, RecursionError) as error:
                yield number, f"not a JSON object: {error}"
                continue
            if fields:
                yield number, fields


def _from_csv(lines: Iterator[tuple[int, bytes]], delimiter: str) -> _Found:
    """Fields of CSV records. An unclosed quote costs its own line, not the rest of the file."""
    waiting: list[tuple[int, bytes]] = []
    columns: list[str] | None = None
    while True:
        taken: list[tuple[int, bytes]] = []
        quotes = 0
        while not taken or quotes % 2:
            entry = waiting.pop(0) if waiting else next(lines, None)
            if entry is None or len(taken) == _SPAN_CAP:
                waiting = taken[1:] + ([entry] if entry else []) + waiting
                break
            taken.append(entry)
            quotes += entry[1].count(b'"')
        if not taken:
            return
        number = taken[0][0]
        if quotes % 2:
            yield number, "a quote is opened and never closed"
            continue
        text = _text(b"".join(line for _, line in taken))
        if text is None or "\0" in text:
            yield number, "not UTF-8 text, or longer than a million characters"
        elif text.strip():
            try:
                row = next(csv.reader(text.splitlines(keepends=True), delimiter=delimiter))
            except csv.Error as error:
                yield number, f"not CSV: {error}"
                continue
            names = [name.strip().lower() for name in row]
            columns = columns or names
            if names == columns:  # the header, repeated in joined files
                continue
            fields = dict(zip(columns, row, strict=False))
            if len(taken) > 1 and (len(row) > len(columns) or "\n" in fields.get("url", "")):
                yield number, "a quote is opened and closed on another line, inside of the url"
                waiting = taken[1:] + waiting
            elif len(row) > len(columns):
                yield number, f"{len(row)} columns where the header has {len(columns)}"
            else:
                yield number, fields


def _header_delimiter(line: bytes, column: str) -> str | None:
    text = line.decode("utf-8", "replace").lower()
    for delimiter in _DELIMITERS:
        if column in (name.strip().strip('"') for name in text.split(delimiter)):
            return delimiter
    return None


def wrong_header(line: bytes, column: str) -> str:
    """The fault in the first line of a CSV file that needs `column`; "" if there is none."""
    line = line[:LINE_CAP].removeprefix(b"\xef\xbb\xbf")
    if line.startswith(_GZIP):
        return _PACKED
    if _header_delimiter(line, column) is not None:
        return ""
    found = one_line(" ".join(line[:400].decode("utf-8", "replace").split()))
    return f"a CSV needs a header with a column {column}; found: {found[:200]}"


def _is_headless(line: bytes) -> bool:
    """Whether a first line is CSV without a column `url`, and so cannot begin a list of URLs.

    A URL may contain commas and semicolons: such a line is CSV only if it also has white space.
    """
    text = line[:LINE_CAP].decode("utf-8", "replace").strip()
    if text.startswith("#") or not any(delimiter in text for delimiter in _DELIMITERS):
        return False
    url = _FIRST_URL.match(text)
    return url is None or bool(re.search(r"[,;\s]", url["host"]) or re.search(r"\s", text))


def _text(line: bytes) -> str | None:
    if len(line) > LINE_CAP:
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _text_of(name: str, value: Any) -> str:
    if name in ("title", "snippet") and isinstance(value, str | int | float):
        return str(value)  # a title may be a number
    try:
        return ident_of(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def _whole_number(name: str, value: Any, least: int) -> int:
    if value in (None, ""):
        return 0
    found = None if isinstance(value, bool) else _WHOLE.fullmatch(str(value).strip())
    if found is None or not least <= int(found[1]) < 2**31:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a whole number from {least}")
    return int(found[1])


def _time_ms(value: Any, now_ms: int) -> int:
    """Milliseconds since 1970; 0 if there is no time."""
    if value in (None, "") or (value in (0, "0") and value is not False):
        return 0
    try:
        return read_time(value, now_ms or wall_ms())
    except ValueError as error:
        raise ValueError(f"fetched_at {error}") from None
