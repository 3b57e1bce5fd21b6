"""Hits from a file or stream. Bad lines are reported and skipped.

Columns and keys are the fields of `Hit`, or have one of the names in `crawler.web.columns`; others are not used. A text
may be a whole number in JSON. Default `query_id`: the query; `source`: the reader's; `fetched_at`: the time of reading,
which is not part of the id. So a file read twice gives the same hits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import xxhash

from crawler.errors import UnusableUrl
from crawler.web.columns import HIT_NAMES, FileColumns
from crawler.web.record_lines import read_records
from crawler.web.urls import hit_url, host_of
from stream.log.contract import wall_ms
from stream.schema.records import Hit
from stream.text.ids import ident_of
from stream.text.times import read_time

QUERY_ID_CAP = 200  # characters of a query id that is made from the query
_TEXTS = ("query_id", "query", "source", "engine", "title", "snippet")
_NUMBERS = {"rank": 1, "result_page": 0}  # and the least of each; 0 is stored if there is none
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")  # names in DNS (with the underscore that some have), IPv6
_WHOLE = re.compile(r"(\d{1,10})(?:\.0*)?", re.ASCII)  # a table with gaps writes 3 as 3.0


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line without a usable hit: its number (from 1) and why."""

    number: int
    reason: str


class BadField(ValueError):
    """A value that a field cannot have."""

    def __init__(self, field: str, why: object) -> None:
        super().__init__(f"{field} {why}")
        self.field = field


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


def hit_columns(given: Mapping[str, str] | None = None) -> FileColumns:
    """The columns of a file of hits. `given`: field -> name of its column."""
    return FileColumns("url", HIT_NAMES, given)


def read_hits(lines: Iterable[bytes], now_ms: int = 0, columns: FileColumns | None = None) -> Iterator[Hit | BadLine]:
    """Hits and bad lines in the order of the file; `now_ms` is the time of lines without one.

    A value that does not fit is left out, and counted in `columns`, where the column has another name than the field:
    a date may be in any form, a position an average. Raises UnknownColumn.
    """
    columns = columns or hit_columns()
    for number, fields in read_records(lines, columns):
        if isinstance(fields, str):
            yield BadLine(number, fields)
            continue
        try:
            yield _hit_of(fields, now_ms, columns)
        except (UnusableUrl, ValueError) as error:
            yield BadLine(number, str(error))


def _hit_of(fields: dict[str, Any], now_ms: int, columns: FileColumns) -> Hit:
    while True:
        try:
            return make_hit(fields, now_ms=now_ms)
        except BadField as error:
            if error.field not in columns.guessed:
                raise
            columns.left_out[error.field] += 1
            fields = {name: value for name, value in fields.items() if name != error.field}


def _text_of(name: str, value: Any) -> str:
    if name in ("title", "snippet") and isinstance(value, str | int | float):
        return str(value)  # a title may be a number
    try:
        return ident_of(value)
    except ValueError as error:
        raise BadField(name, error) from None


def _whole_number(name: str, value: Any, least: int) -> int:
    if value in (None, ""):
        return 0
    match = None if isinstance(value, bool) else _WHOLE.fullmatch(str(value).strip())
    if match is None or not least <= int(match[1]) < 2**31:
        raise BadField(name, f"is {str(value)[:40]!r}, not a whole number from {least}")
    return int(match[1])


def _time_ms(value: Any, now_ms: int) -> int:
    if value in (None, "") or (value in (0, "0") and value is not False):
        return 0
    try:
        return read_time(value, now_ms or wall_ms())
    except ValueError as error:
        raise BadField("fetched_at", error) from None
