"""The tables of `farmwatch log export`: columns, and rows from a log. docs/reference/formats.md lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from operator import attrgetter
from typing import Any, Literal

import zstandard

from farmwatch.config.config import Config
from farmwatch.share.date_columns import date_columns
from farmwatch.share.rate_series import POINT_COLUMNS, points_of_run
from farmwatch.share.site_lines import SITE_COLUMNS, site_lines
from farmwatch.share.topic_records import topic_records
from farmwatch.tables.columns import Column, columns_of
from filters.charsets import decode
from filters.measure.page_measures import inflated
from replay.runs.lookup import names_to_read
from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.schema.records import AdsTxt, Hit, Page, Record, Score, Sitemaps, Verdict
from stream.schema.topics import ADS_TXT, HITS, PAGES, SCORES, SITEMAPS
from stream.text.times import day_ms
from stream.text.user_errors import NotFound

What = Literal["hits", "pages", "verdicts", "scores", "sites", "sitemaps", "ads_txt", "rate"]

_OF_SITES: Mapping[str, type[Sitemaps | AdsTxt]] = {SITEMAPS: Sitemaps, ADS_TXT: AdsTxt}  # by topic: one of each site


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
        return 1 if self.since is None else day_ms(self.since)

    @property
    def end_ms(self) -> int:
        """First time after the window."""
        return 2**63 if self.until is None else day_ms(self.until + timedelta(days=1))


def columns_of_table(what: What, html_cap_bytes: int) -> list[Column[Any]]:
    """The columns of a table; the text of a page above the cap is null."""
    match what:
        case "hits":
            return columns_of(Hit, id={"name": "hit_id"})
        case "pages":
            html: Column[Page] = Column("html", "text", lambda page: html_of(page, html_cap_bytes))
            return [*columns_of(Page, "body", "headers", id={"name": "fetch_id"}), html]
        case "verdicts":
            return [
                *columns_of(Verdict, "dates", "published", id={"name": "fetch_id"}),
                *date_columns(attrgetter("dates")),
            ]
        case "scores":
            return columns_of(Score, "id")
        case "sites":
            return SITE_COLUMNS
        case "sitemaps" | "ads_txt":
            return columns_of(_OF_SITES[what], "id")
        case "rate":
            return POINT_COLUMNS


def rows_of(log: Log, what: What, window: ExportWindow, run: str, config: Config, now_ms: int) -> Iterator[Any]:
    """The rows of a table, without canary sites. Raises NotFound for an unknown run."""
    if what == "sites":
        return (line for line in site_lines(log, config, run, now_ms) if not is_canary(line.row.site))
    if what == "rate":
        return points_of_run(log, run, window.since, window.until)
    if what in ("sitemaps", "ads_txt"):
        rows = topic_records(log, _OF_SITES[what], what)
        return iter({row.site: row for row in rows if window.has(row.read_at)}.values())
    return _in_window(log, what, window, run)


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
    topic = {"hits": HITS, "pages": PAGES, "verdicts": names_to_read(log, run).verdicts}.get(what, "")
    if topic and topic not in log.topics():
        raise NotFound(f"the log has no topic {topic} yet: nothing to export")
    return topic


def _in_window(log: Log, what: What, window: ExportWindow, run: str) -> Iterator[Record]:
    kind: type[Hit | Page | Verdict | Score]
    kind = {"hits": Hit, "pages": Page, "verdicts": Verdict, "scores": Score}[what]  # type: ignore[assignment]
    topic = topic_of(log, what, run) or SCORES
    for record in topic_records(log, kind, topic):
        if window.has(record.fetched_at) and not is_canary(record.site):
            yield record


def html_of(page: Page, cap_bytes: int) -> str | None:
    """The page's text in its charset; None without a body, or above the cap. Wrong bytes become U+FFFD."""
    body = None
    with suppress(zstandard.ZstdError):
        body = inflated(page.body, cap_bytes + 1) if page.body else None
    return None if body is None or len(body) > cap_bytes else decode(body, page.encoding)
