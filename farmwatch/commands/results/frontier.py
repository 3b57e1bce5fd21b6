"""The command `frontier`: what the crawl knows, what waits, and why. It only reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from crawler.frontier.report import FrontierReader, FrontierReport, FrontierSiteLine, SiteReport, UrlLine, site_report
from crawler.reasons import in_words, meaning_of_reason
from farmwatch.commands.options import DEFAULTS, AsJson, Common, host_of
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.terminal.messages import counting, message, put, put_columns, put_json, put_table, put_wrapped
from stream.log.contract import Log, partition_of
from stream.schema.topics import FRONTIER_STORE
from stream.text.registrable_domain import registrable_domain
from stream.text.user_errors import Exit, NotFound, UsageError
from stream.text.wording import counted, lasting, moment, one_line, queue_in_words, when

_OVERVIEW = 10  # lines of each list, where no --limit is given


def frontier(
    *,
    site: Annotated[str, Parameter(help="Only this host: its row and its URLs.")] = "",
    parked: Annotated[bool, Parameter(negative="", help="Only the parked hosts: why, and until when.")] = False,
    stopped: Annotated[
        bool, Parameter(negative="", help="Only the stopped sites: why, and what would end it.")
    ] = False,
    limit: Annotated[
        int | None, Parameter(help="Lines of a list at most; 0 = all. Default: 10, of one list 100.")
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The frontier as it is committed: sites by state, URLs by status, what has been due for longest, what is parked.

    Active sites have something to do now, resting ones wait for a hit or for the day on which their pages are asked for
    again, or their sitemaps are read anew. What a running crawl has under way still counts as due.

    JSON: one object; of --parked and --stopped one a line. Times are milliseconds UTC.
    """
    if sum((bool(site), parked, stopped)) > 1:
        raise UsageError("--site, --parked and --stopped: one of them at a time")
    if limit is not None and limit < 0:
        raise UsageError("--limit: 0 or more")
    now_ms = int(time.time() * 1000)
    host = host_of(site) if site else ""
    config = common.load().config
    default = 100 if site or parked or stopped else _OVERVIEW
    most = (default if limit is None else limit) or None
    with opened(config) as log:
        if site:
            found = _read_site(log, config, host, now_ms, most)
        else:
            report = _read(log, config, now_ms, most)
    if site:
        return _show_site(found, now_ms, as_json=json)
    if parked or stopped:
        lines = report.parked_sites if parked else report.stopped_sites
        _show_list(lines, now_ms, as_json=json)
        _say_cut(len(lines), report.sites["parked" if parked else "stopped"], "site")
        return Exit.OK
    if json:
        put_json(msgspec.to_builtins(report))
    else:
        _tell(report, now_ms)
    return Exit.OK


def _read(log: Log, config: Config, now_ms: int, limit: int | None) -> FrontierReport:
    reader = FrontierReader(config.crawl, now_ms, limit, registrable_domain)
    partitions = log.topics().get(f"state.{FRONTIER_STORE}", 0)
    with counting(partitions, "partitions read") as advance:
        for partition in range(partitions):
            with log.read_state(FRONTIER_STORE, partition) as state:
                reader.add(state)
            advance(1)
    return reader.report()


def _read_site(log: Log, config: Config, site: str, now_ms: int, limit: int | None) -> SiteReport:
    partitions = log.topics().get(f"state.{FRONTIER_STORE}", 0)
    found = None
    if partitions:
        with log.read_state(FRONTIER_STORE, partition_of(site, partitions)) as state:
            found = site_report(state, config.crawl, site, now_ms, limit)
    if found is None:
        raise NotFound(one_line(f"--site {site!r}: no such host is in the frontier; `farmwatch frontier` lists some"))
    return found


def _tell(report: FrontierReport, now_ms: int) -> None:
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
        _put_parked(
            report.parked_sites, now_ms, f"parked, {counted(sites['parked'], 'site')}: {_counts(report.parked_reasons)}"
        )
    if report.stopped_reasons:
        put_table(
            ("reason", "sites", "what it means", "what ends it"),
            (
                (reason, count, meaning_of_reason(reason).text, meaning_of_reason(reason).passes or "nothing")
                for reason, count in report.stopped_reasons.items()
            ),
            title="stopped",
        )
    if report.revisits:
        others = "" if len(report.revisits) == sites["resting"] else "; others wait for a hit, or to read sitemaps anew"
        put_table(
            ("site", "asked again", "pages known"),
            ((each.site, when(each.revisit_at, now_ms), each.fetched) for each in report.revisits),
            title=f"resting, {counted(sites['resting'], 'site')}: with pages to ask for again, the next first{others}",
        )
    several = [line for line in report.domains if line.sites > 1]
    if several:
        put_table(
            ("registrable domain", "sites"),
            ((line.domain, f"{line.sites}{' or more' if line.at_least else ''}") for line in several),
            title="domains with the most sites",
        )
    if not any(sites.values()):
        message("the frontier is empty: hits come by `farmwatch search`, and `farmwatch crawl` reads them")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"


def _show_list(lines: Sequence[FrontierSiteLine], now_ms: int, *, as_json: bool) -> None:
    if as_json:
        for line in lines:
            put_json(msgspec.to_builtins(line))
        return
    if not lines:
        message("none")
    elif lines[0].stopped_why:
        columns: dict[str, str | Callable[[FrontierSiteLine], Any]] = {
            "site": "site",
            "reason": "stopped_why",
            "stopped": lambda each: when(each.stopped_at, now_ms),
            "fetched": "fetched",
            "left": "queued",
            "what it means": lambda each: meaning_of_reason(each.stopped_why).text,
            "what ends it": lambda each: meaning_of_reason(each.stopped_why).passes or "nothing",
        }
        put_columns(lines, columns, less=("left",))
    else:
        _put_parked(lines, now_ms, "")


def _say_cut(shown: int, found: int, noun: str) -> None:
    """A list that was cut says so on stderr, JSON or not."""
    if shown < found:
        message(f"{shown} of {counted(found, noun)}; --limit shows more, --limit 0 all")


def _put_parked(lines: Sequence[FrontierSiteLine], now_ms: int, title: str) -> None:
    columns: dict[str, str | Callable[[FrontierSiteLine], Any]] = {
        "site": "site",
        "asked again": lambda each: when(each.parked_until, now_ms),
        "reason": "parked_why",
        "what it means": lambda each: meaning_of_reason(each.parked_why).text,
        "queued": "queued",
    }
    put_columns(lines, columns, title)


def _show_site(report: SiteReport, now_ms: int, *, as_json: bool) -> int:
    if as_json:
        put_json(msgspec.to_builtins(report))
        _say_cut(len(report.urls), report.urls_known, "URL")
        return Exit.OK
    for text in _site_in_words(report, now_ms):
        put_wrapped(one_line(text), "  ")
    put_table(
        ("URL", "status", "what of it", "found by", "visits", "hits"),
        (
            (each.url, each.status, _url_in_words(each, now_ms), each.found_by, each.visits, each.hits)
            for each in report.urls
        ),
        less=("hits", "visits"),
    )
    _say_cut(len(report.urls), report.urls_known, "URL")
    return Exit.OK


def _site_in_words(report: SiteReport, now_ms: int) -> list[str]:
    line = report.line
    said = [f"{line.site}: {line.state}, {counted(line.fetched, 'page')} fetched, {line.queued} queued"]
    if line.stopped_why:
        passes = meaning_of_reason(line.stopped_why).passes
        said.append(f"stopped {when(line.stopped_at, now_ms)}: {in_words(line.stopped_why)}")
        said.append(f"what ends it: {passes or 'nothing'}")
    elif line.state == "parked":
        said.append(
            f"parked until {moment(line.parked_until)} ({when(line.parked_until, now_ms)}): {in_words(line.parked_why)}"
        )
        said.append(f"failures in a row that parked it: {report.park_level}")
    elif line.due_at:
        said.append(f"next request: {moment(line.due_at)} ({when(line.due_at, now_ms)})")
    said.append(f"asked at {report.origin or '-'}, {lasting(report.delay_s)} between the starts of requests at least")
    if report.robots_until > now_ms:
        said.append(f"robots.txt: {counted(report.robots_bytes, 'byte')}, believed until {moment(report.robots_until)}")
    else:
        said.append("robots.txt: none at hand; it is asked for before anything else")
    left = f", {counted(report.sitemaps_left, 'file')} left" if report.sitemaps_left else ""
    said.append(f"sitemaps: {report.sitemaps}{left}")
    said.append(f"URLs: {_counts(line.urls)}")
    return said


def _url_in_words(url: UrlLine, now_ms: int) -> str:
    parts = []
    if url.waits_in:
        parts.append("waits to be asked again" if url.waits_in == "again" else f"waits among the {url.waits_in}")
    if url.attempts:
        parts.append(f"{counted(url.attempts, 'attempt')} failed")
    if url.reason:
        parts.append(in_words(url.reason))
    if url.due_at:
        parts.append(f"asked again {when(url.due_at, now_ms)}")
    return "; ".join(parts)
