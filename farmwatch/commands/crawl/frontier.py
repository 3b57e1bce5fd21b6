"""The command `crawl frontier`: known sites and URLs, and why they wait. Read-only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from operator import attrgetter
from typing import Annotated, Any

from cyclopts import Parameter

from crawler.frontier.report import STATES, FrontierSiteLine, SiteReport, UrlLine, frontier_lines, site_report
from crawler.reasons import meaning_of_reason, reason_text, what_ends_stop
from farmwatch.commands.options import DEFAULTS, Common, host_of
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import pause_in_words
from farmwatch.tables.columns import Column, columns_of
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message, put_wrapped
from stream.log.contract import Log, partition_of
from stream.schema.topics import FRONTIER_STORE
from stream.text.user_errors import Exit, NotFound
from stream.text.wording import counted, lasting, moment, one_line, when


def _why(line: FrontierSiteLine) -> str:
    return line.stopped_why or line.parked_why


def _ends(line: FrontierSiteLine) -> str:
    return what_ends_stop(line.stopped_why) or "nothing" if line.stopped_why else ""


_SITES: list[Column[FrontierSiteLine]] = [
    Column("site", "text", attrgetter("site")),
    Column("state", "text", attrgetter("state"), "count", values=STATES),
    Column("next_at", "time", lambda e: e.parked_until or e.due_at or e.revisit_at, meaning="when it is asked again"),
    Column("fetched", "integer", attrgetter("fetched"), "sum", meaning="pages"),
    Column("queued", "integer", attrgetter("queued"), "sum", meaning="URLs that wait"),
    Column("why", "text", _why),
    Column("means", "text", lambda line: meaning_of_reason(_why(line)).text if _why(line) else ""),
    Column("ends", "text", _ends, meaning="what ends the stop"),
    Column("read_by", "time", attrgetter("read_by"), meaning="decided by then; of a Crawl-delay above 120 s"),
    Column("preferences", "json", attrgetter("preferences"), meaning="stated on the use by AI"),
    Column("stopped_at", "time", attrgetter("stopped_at")),
    Column("urls", "json", attrgetter("urls")),
]
_SITES_SHOWN = ("site", "state", "next_at", "fetched", "queued", "why", "means", "ends")
_URLS: list[Column[UrlLine]] = columns_of(
    UrlLine,
    status={"total": "count"},
    reason={"said": lambda url: reason_text(url.reason) if url.reason else ""},
    waits_in={"meaning": "its queue"},
    due_at={"meaning": "when it is asked again"},
)


def frontier(
    *,
    site: Annotated[str, Parameter(help="Only this host: its URLs.")] = "",
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """One row per site that the crawl knows: its state, when it is asked again, and why it waits.

    Active sites have work now; parked ones have work too, and wait after a failure. Resting sites wait for a hit, or
    for the day on which their pages or sitemaps are asked for again. Stopped sites are not asked.

    It reads what the crawl has committed: work in progress still counts as due.
    """
    now_ms = int(time.time() * 1000)
    host = host_of(site) if site else ""
    columns: list[Column[Any]] = _URLS if host else _SITES
    selection = listing.of(columns)
    config = common.load().config
    with opened(config) as log:
        if host:
            of_site = read_site(log, config, host, now_ms, None)
            if listing.is_table:
                for text in site_in_words(of_site, now_ms):
                    put_wrapped(one_line(text), "  ")
            selection.put(of_site.urls, "URL")
        else:
            selection.put(frontier_lines(log, config.crawl, now_ms), "site", _SITES_SHOWN)
        if paused := pause_in_words(log):
            message(paused)
    return Exit.OK


def read_site(log: Log, config: Config, site: str, now_ms: int, limit: int | None) -> SiteReport:
    """The frontier's knowledge of a host. Raises NotFound."""
    partitions = log.topics().get(f"state.{FRONTIER_STORE}", 0)
    report = None
    if partitions:
        with log.read_state(FRONTIER_STORE, partition_of(site, partitions)) as state:
            report = site_report(state, config.crawl, site, now_ms, limit)
    if report is None:
        raise NotFound(
            one_line(f"--site {site!r}: no such host is in the frontier; `farmwatch crawl frontier` lists some")
        )
    return report


def site_in_words(report: SiteReport, now_ms: int) -> Iterator[str]:
    """Where the crawl of a host stands, a sentence a line."""
    line = report.line
    yield f"{line.site}: {line.state}, {counted(line.fetched, 'page')} fetched, {line.queued} queued"
    if line.stopped_why:
        yield f"stopped {when(line.stopped_at, now_ms)}: {reason_text(line.stopped_why)}"
        yield f"what ends it: {_ends(line)}"
    elif line.state == "parked":
        until = f"{moment(line.parked_until)} ({when(line.parked_until, now_ms)})"
        yield f"parked until {until}: {reason_text(line.parked_why)}"
        yield f"failures in a row that parked it: {report.park_level}"
    elif line.due_at:
        yield f"next request: {moment(line.due_at)} ({when(line.due_at, now_ms)})"
    yield f"asked at {report.origin or '-'}, {lasting(report.delay_s)} between the starts of requests at least"
    if line.read_by:
        read_by = f"{moment(line.read_by)} ({when(line.read_by, now_ms)})"
        yield f"slow lane, for its Crawl-delay: decided about {read_by} at the latest, when its page budget is read"
    if report.robots_until > now_ms:
        yield f"robots.txt: {counted(report.robots_bytes, 'byte')}, believed until {moment(report.robots_until)}"
    else:
        yield "robots.txt: none at hand; it is asked for before anything else"
    left = f", {counted(report.sitemaps_left, 'file')} left" if report.sitemaps_left else ""
    yield f"sitemaps: {report.sitemaps}{left}"
    if report.ads_txt:
        yield f"ads.txt: {report.ads_txt}"
    yield f"URLs: {', '.join(f'{count} {status}' for status, count in line.urls.items() if count) or 'none'}"
