"""The tables of `farmwatch export`: their columns, and their rows from a log. docs/reference/formats.md lists them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import zstandard

from farmwatch.config.config import Config
from farmwatch.share.rate_series import read_points
from filters.charsets import decode
from filters.measure.page_measures import inflated
from replay.rows.site_table import read_sites
from replay.runs.lookup import find_run, names_to_read
from scoring.rates.canary import is_canary
from stream.log.contract import At, Log
from stream.processing.topic_reader import records_of
from stream.schema.control import Control
from stream.schema.records import Page, RatePoint, Record, Score, SiteState, Verdict
from stream.schema.runs import shown_run
from stream.schema.topics import PAGES, SCORES
from stream.text.user_errors import NotFound

What = Literal["pages", "verdicts", "scores", "sites", "rate"]
Kind = Literal["text", "integer", "number", "truth", "json"]
_KINDS: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "truth"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type, and the field of the record."""

    name: str
    kind: Kind
    field: str


@dataclass(frozen=True, slots=True)
class ExportWindow:
    """The days to export, both included; None is open."""

    since: date | None = None
    until: date | None = None

    def has(self, at_ms: int) -> bool:
        """Whether a time lies in the window. An unknown time (0) lies in the open window only."""
        return self.begin_ms <= at_ms < self.end_ms if self != ExportWindow() else True

    @property
    def begin_ms(self) -> int:
        """First time of the window; never that of an unknown one."""
        return 1 if self.since is None else _ms(self.since)

    @property
    def end_ms(self) -> int:
        """First time after the window."""
        return 2**63 if self.until is None else _ms(self.until + timedelta(days=1))


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def _columns(record: type[Record], *left_out: str, renamed: Mapping[str, str] | None = None) -> list[Column]:
    columns = []
    for name, hint in get_type_hints(record).items():
        if name in record.__struct_fields__ and name not in ("v", *left_out):
            kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
            (kind,) = [kind for kind in kinds if kind is not type(None)]
            columns.append(Column((renamed or {}).get(name, name), _KINDS.get(kind, "json"), name))
    return columns


# the names of `rate --json`
_POINT = {"rate": "judged_share", "low": "judged_low", "high": "judged_high", "method": "judged_method"}
_POINT |= {"share_low": "look_low", "share_high": "look_high", "share_method": "method"}
_POINT |= {"share_low_once": "low", "share_high_once": "high"}
COLUMNS: dict[What, list[Column]] = {
    "pages": [*_columns(Page, "body", "headers", renamed={"id": "fetch_id"}), Column("html", "text", "html")],
    "verdicts": _columns(Verdict, renamed={"id": "fetch_id"}),
    "scores": _columns(Score, "id"),
    "sites": _columns(SiteState, "id", "former"),
    "rate": _columns(RatePoint, "id", "site", "answer", renamed=_POINT),
}


def rows_of(log: Log, what: What, window: ExportWindow, run: str, config: Config) -> Iterator[list[Any]]:
    """The rows in the order of COLUMNS, without canary sites. Raises NotFound for an unknown run."""
    if what == "sites":
        records: Iterator[Record] = (row for row in read_sites(log, run) if not is_canary(row.site))
    elif what == "rate":
        name = find_run(Control(log), run).name if run else ""
        points = read_points(log, window.since, window.until)
        records = (point for point in points if not name or point.run == name)
    else:
        records = _in_window(log, what, window, run)
    columns = COLUMNS[what]
    return ([value_of(record, column, config) for column in columns] for record in records)


def incomplete_before(log: Log, what: What, window: ExportWindow, run: str, now_ms: int) -> int:
    """Time (ms) before which retention has removed records of the window; 0 = none."""
    topic = topic_of(log, what, run)
    oldest_ms = 0
    for partition, first in enumerate(log.beginning(topic) if topic else ()):
        if first:
            oldest = next(iter(log.read(topic, partition, first)), None)
            oldest_ms = max(oldest_ms, now_ms if oldest is None else oldest.timestamp_ms)
    return min(oldest_ms, window.end_ms) if oldest_ms > window.begin_ms else 0


def topic_of(log: Log, what: What, run: str) -> str:
    """The topic of a table if retention removes its records by age; "" for a compacted one. Raises NotFound."""
    topic = {"pages": PAGES, "verdicts": names_to_read(log, run).verdicts}.get(what, "")
    if topic and topic not in log.topics():
        raise NotFound(f"the log has no topic {topic} yet: nothing to export")
    return topic


def _in_window(log: Log, what: What, window: ExportWindow, run: str) -> Iterator[Record]:
    kind: type[Page | Verdict | Score]
    kind = {"pages": Page, "verdicts": Verdict, "scores": Score}[what]  # type: ignore[assignment]
    topic = topic_of(log, what, run) or SCORES
    for partition, end in enumerate(log.end(topic) if topic in log.topics() else ()):
        for _, record in records_of(kind, log.read_all({At(topic, partition): (0, end)})):
            if window.has(record.fetched_at) and not is_canary(record.site):
                yield record


def value_of(record: Record, column: Column, config: Config) -> Any:
    """The cell of a record."""
    if column.field == "html":
        assert isinstance(record, Page)
        return html_of(record, config.measure.max_html_bytes)
    value = getattr(record, column.field)
    return shown_run(value) if column.field == "run" else value


def html_of(page: Page, cap_bytes: int) -> str | None:
    """The page's text in its charset; None without a body, or above the cap. Wrong bytes become U+FFFD."""
    body = None
    with suppress(zstandard.ZstdError):
        body = inflated(page.body, cap_bytes + 1) if page.body else None
    return None if body is None or len(body) > cap_bytes else decode(body, page.encoding)
