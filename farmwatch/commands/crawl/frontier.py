"""The command `crawl frontier`: known sites and URLs, and why they wait. Read-only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter

from crawler.frontier.report import FrontierReport, FrontierSiteLine, SiteReport, UrlLine, read_frontier, site_report
from crawler.reasons import meaning_of_reason, reason_text, what_ends_stop
from farmwatch.commands.options import AT_LEAST_0, DEFAULTS, AsJson, Common, host_of
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import pause_in_words
from farmwatch.terminal.messages import counting, message, put, put_json, put_table, put_wrapped
from stream.log.contract import Log, partition_of
from stream.schema.topics import FRONTIER_STORE
from stream.text.user_errors import Exit, NotFound, UsageError
from stream.text.wording import counted, lasting, moment, one_line, queue_in_words, when

_OVERVIEW = 10  # lines of each list without --limit


def frontier(
    *,
    site: Annotated[str, Parameter(help="Only this host: its row and its URLs.")] = "",
    parked: Annotated[bool, Parameter(negative="", help="Only the parked hosts: why, and until when.")] = False,
    stopped: Annotated[
        bool, Parameter(negative="", help="Only the stopped sites: why, and what would end it.")
    ] = False,
    limit: Annotated[
        int | None,
        Parameter(help="Lines of a list at most; 0 = all. Default: 10, of one list 100.", validator=AT_LEAST_0),
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The committed frontier: sites by state, URLs by status, the sites that have been due for longest, parked sites.

    Active sites have work now. Resting sites wait for a hit, or for the day on which their pages or sitemaps are
    requested again. Work in progress of a running crawl still counts as due.

    JSON: one object; of --parked and --stopped one a line. Times are milliseconds UTC.
    """
    if sum((bool(site), parked, stopped)) > 1:
        raise UsageError("--site, --parked and --stopped: one of them at a time")
    now_ms = int(time.time() * 1000)
    host = host_of(site) if site else ""
    config = common.load().config
    default = 100 if site or parked or stopped else _OVERVIEW
    most = (default if limit is None else limit) or None
    with opened(config) as log:
        if site:
            of_site = read_site(log, config, host, now_ms, most)
        else:
            with counting(log.topics().get(f"state.{FRONTIER_STORE}", 0), "partitions read") as advance:
                report = read_frontier(log, config.crawl, now_ms, most, lambda: advance(1))
        paused = pause_in_words(log)
    if site:
        if json:
            put_json(msgspec.to_builtins(of_site))
        else:
            _put_site(of_site, now_ms)
        _say_cut(len(of_site.urls), of_site.urls_known, "URL")
    elif parked or stopped:
        lines = report.parked_sites if parked else report.stopped_sites
        if json:
            for line in lines:
                put_json(msgspec.to_builtins(line))
        elif not lines:
            message("none")
        elif parked:
            _put_parked(lines, now_ms, "")
        else:
            _put_stopped(lines, now_ms)
        _say_cut(len(lines), report.sites["parked" if parked else "stopped"], "site")
    elif json:
        put_json(msgspec.to_builtins(report))
    else:
        _put_overview(report, now_ms)
    if paused:
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


def _put_overview(report: FrontierReport, now_ms: int) -> None:
    sites = report.sites
    put(
        f"{counted(sum(sites.values()), 'site')}: {sites['active']} active ({report.due} of them due now),"
        f" {sites['parked']} parked, {sites['resting']} resting, {sites['stopped']} stopped"
    )
    put(f"{counted(sum(report.urls.values()), 'URL')}: {_counts(report.urls)}")
    put(f"queued: {queue_in_words(report.queued_in) or 'none'}; {counted(report.fetched, 'page')} fetched so far")
    if report.oldest_due:
        due = ((e.site, lasting((now_ms - e.due_at) / 1000), e.queued, e.fetched) for e in report.oldest_due)
        put_table(("site", "due for", "queued", "fetched"), due, title="due for longest")
    if report.parked_sites:
        title = f"parked, {counted(sites['parked'], 'site')}: {_counts(report.parked_reasons)}"
        _put_parked(report.parked_sites, now_ms, title)
    if report.stopped_reasons:
        reasons = ((reason, count, *_meaning(reason)) for reason, count in report.stopped_reasons.items())
        put_table(("reason", "sites", "what it means", "what ends it"), reasons, title="stopped")
    if report.revisits:
        others = "" if len(report.revisits) == sites["resting"] else "; others wait for a hit, or to read sitemaps anew"
        put_table(
            ("site", "asked again", "pages known"),
            ((each.site, when(each.revisit_at, now_ms), each.fetched) for each in report.revisits),
            title=f"resting, {counted(sites['resting'], 'site')}: with pages to ask for again, the next first{others}",
        )
    if not any(sites.values()):
        message("the frontier is empty: hits come by `farmwatch hits`, and `farmwatch crawl` reads them")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"


def _meaning(reason: str) -> tuple[str, str]:
    return meaning_of_reason(reason).text, what_ends_stop(reason) or "nothing"


def _say_cut(shown: int, known: int, noun: str) -> None:
    if shown < known:
        message(f"{shown} of {counted(known, noun)}; --limit shows more, --limit 0 all")


def _put_stopped(lines: Sequence[FrontierSiteLine], now_ms: int) -> None:
    put_table(
        ("site", "reason", "stopped", "fetched", "left", "what it means", "what ends it"),
        (
            (e.site, e.stopped_why, when(e.stopped_at, now_ms), e.fetched, e.queued, *_meaning(e.stopped_why))
            for e in lines
        ),
        less=("left",),
    )


def _put_parked(lines: Sequence[FrontierSiteLine], now_ms: int, title: str) -> None:
    rows = (
        (e.site, when(e.parked_until, now_ms), e.parked_why, meaning_of_reason(e.parked_why).text, e.queued)
        for e in lines
    )
    put_table(("site", "asked again", "reason", "what it means", "queued"), rows, title)


def _put_site(report: SiteReport, now_ms: int) -> None:
    for text in site_in_words(report, now_ms):
        put_wrapped(one_line(text), "  ")
    urls = ((e.url, e.status, _url_in_words(e, now_ms), e.found_by, e.visits, e.hits) for e in report.urls)
    put_table(("URL", "status", "detail", "found by", "visits", "hits"), urls, less=("hits", "visits"))


def site_in_words(report: SiteReport, now_ms: int) -> Iterator[str]:
    """Where the crawl of a host stands, a sentence a line."""
    line = report.line
    yield f"{line.site}: {line.state}, {counted(line.fetched, 'page')} fetched, {line.queued} queued"
    if line.stopped_why:
        yield f"stopped {when(line.stopped_at, now_ms)}: {reason_text(line.stopped_why)}"
        yield f"what ends it: {_meaning(line.stopped_why)[1]}"
    elif line.state == "parked":
        until = f"{moment(line.parked_until)} ({when(line.parked_until, now_ms)})"
        yield f"parked until {until}: {reason_text(line.parked_why)}"
        yield f"failures in a row that parked it: {report.park_level}"
    elif line.due_at:
        yield f"next request: {moment(line.due_at)} ({when(line.due_at, now_ms)})"
    yield f"asked at {report.origin or '-'}, {lasting(report.delay_s)} between the starts of requests at least"
    if report.robots_until > now_ms:
        yield f"robots.txt: {counted(report.robots_bytes, 'byte')}, believed until {moment(report.robots_until)}"
    else:
        yield "robots.txt: none at hand; it is asked for before anything else"
    left = f", {counted(report.sitemaps_left, 'file')} left" if report.sitemaps_left else ""
    yield f"sitemaps: {report.sitemaps}{left}"
    yield f"URLs: {_counts(line.urls)}"


def _url_in_words(url: UrlLine, now_ms: int) -> str:
    waits = f"waits among the {url.waits_in}" if url.waits_in else ""
    parts = [
        "waits to be asked again" if url.waits_in == "again" else waits,
        f"{counted(url.attempts, 'attempt')} failed" if url.attempts else "",
        reason_text(url.reason) if url.reason else "",
        f"asked again {when(url.due_at, now_ms)}" if url.due_at else "",
    ]
    return "; ".join(filter(None, parts))
