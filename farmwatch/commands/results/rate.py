"""The command `rate`: the present share, split and cut on request, its history, or the causes of a change."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.share.change_since import change_since, day_time, in_points
from farmwatch.share.current_rate import current_rate
from farmwatch.share.cut_options import cut_text, read_days, read_ranks
from farmwatch.share.rate_series import read_points
from farmwatch.share.words import sentence, sentences, share_columns, short_judged, short_share, text_of
from farmwatch.tables.columns import fields_of
from farmwatch.terminal.messages import message, put, put_columns, put_json, put_wrapped
from replay.live.epoch_change import seams_of
from replay.rows.site_table import Counts
from replay.runs.lookup import find_run
from scoring.rates.cuts import Cut
from scoring.rates.direct_share import ShareState
from scoring.rates.groups import OTHER, day_of, group_order
from scoring.rates.series import SERIES, series_of
from scoring.rates.split_rates import RateLine
from stream.schema.control import Control
from stream.schema.records import RatePoint
from stream.schema.runs import shown_run
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

_REASONS_WIDTH = 79 - len("  not judged:  ()")
_DAYS_SHOWN = 7  # of the history, without --from


ShareOf = Literal["sites", "domains", "results", "ranked-results", "any-article", "every-article"]
RateSplit = Literal["source", "query", "query-group", "rank", "day", "week", "month"]


def rate(
    *,
    by: Annotated[
        RateSplit | None,
        Parameter(help="Split by source, query, group of queries or rank of the hits, or by day, week or month."),
    ] = None,
    of: Annotated[
        ShareOf,
        Parameter(
            help="What the share is of: sites, registrable domains, search results, these by rank, or,"
            " after a review, sites with any or with every article by a language model."
        ),
    ] = "sites",
    source: Annotated[str, Parameter(help="Only sites that this source has returned.")] = "",
    group: Annotated[str, Parameter(help="Only sites that queries of this group (rate.groups) have returned.")] = "",
    rank: Annotated[str, Parameter(help="Only sites whose best rank lies here, such as 1-10.")] = "",
    since: Annotated[
        str, Parameter(name="--from", help="Only sites returned on this day or later, such as 2026-05-01; UTC.")
    ] = "",
    until: Annotated[str, Parameter(name="--to", help="Only sites returned on this day or before.")] = "",
    history: Annotated[
        bool, Parameter(negative="", help="The series that were kept, of all sites or of source, rank or query-group.")
    ] = False,
    why: Annotated[str, Parameter(help="Why the share has changed since this day, such as 2026-05-01; UTC.")] = "",
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    verbose: Annotated[
        bool, Parameter(negative="", help="All remarks, reasons, bounds, counts of verdicts and whole versions.")
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The share of LLM sites with its interval and denominators, in six lines; once per ruleset, detector and method.

    The share is estimated from the flagged pages of all sites that have a scored article. The share by site verdicts
    alone is printed below it: it misses LLM sites that have too few pages for a verdict. Of domains, each counts once;
    of search results, a site counts as often as they name it; by rank, a result counts less the lower the best rank of
    its site is.

    By day, week (ISO) or month, in UTC: the sites that search results returned in it, with the verdicts that held then.
    A site counts in each window that returned it. An interval that is too wide says why, and what would help.

    History: the share as it was at each point in time, by default of the last 7 days.

    Why: the change since the first point of a day, split into new sites, other sources, left sites, sites known
    before, and another ruleset, detector or method. The parts add up to the change.

    JSON: one object a line, with the fields of `estimate`, the group, the versions and the detector's warning.
    """
    config = common.load().config
    now_ms = int(time.time() * 1000)
    cut = Cut(source, group, read_ranks(rank), *read_days(since, until, now_ms))
    if group and group not in (names := [*config.rate.groups, OTHER]):
        raise UsageError(f"--group {group!r}: the groups of rate.groups are {', '.join(names)}")
    if why:
        if by or history or cut != Cut() or of != "sites":
            raise UsageError("--why explains the share of all sites: leave out --by, --of, --history and the cuts")
        return _show_change(config, why, run, now_ms, as_json=json)
    if history:
        return _show_history(config, by or "", cut, json, now_ms, run)
    with opened(config) as log:
        current = current_rate(log, config, now_ms, by=by or "", of=of, cut=cut, run=run)
    lines = current.lines
    if current.kept_at:
        message(f"as TALLY's process found it at {datetime.fromtimestamp(current.kept_at / 1000, UTC):%H:%M:%S} UTC")
    warnings = caveats(config, (line.detector for line in lines))
    if current.waiting:
        message(
            f"{counted(current.waiting, 'hit')} {'waits' if current.waiting == 1 else 'wait'}; start `farmwatch up`"
        )
    if json:
        columns = share_columns(warnings)
        for line in lines:
            put_json(fields_of(columns, line))
        return Exit.OK
    if cut_text(cut):
        message(f"only these sites: {cut_text(cut)}")
    for line in lines:
        _put_line(line, verbose=verbose)
    said = (sentence(line.canary_remark) for line in lines if line.canary_remark and verbose and line.by)
    for correction in dict.fromkeys(said):
        message(correction)
    for seam in current.seams:
        message(seam)
    if current.undated:
        message(f"left out: {counted(current.undated, 'site')} without a known search day")
    _warn_unscored(current.counts, run)
    print_caveats(warnings, short=not verbose)
    return Exit.OK


def _show_change(config: Config, since: str, run: str, now_ms: int, *, as_json: bool) -> Exit:
    """Print the parts of the change. Raises NotFound if no share was kept since then, or there is none now."""
    with opened(config) as log:
        change = change_since(log, config, since, run, now_ms)
    if as_json:
        put_json(change.fields())
        return Exit.OK
    parts = change.parts
    put_wrapped(one_line(f"now {short_share(change.now)}"), "  ")
    interval = ""
    if parts.before_low is not None and parts.before_high is not None:
        ends = f"{parts.before_low:.1%} to {parts.before_high:.1%}"
        interval = f" ({parts.before_confidence:.0%} interval {ends})"
    put_wrapped(
        f"{parts.before:.1%}{interval} of {counted(parts.before_sites, 'site')} at {day_time(parts.since)}:"
        f" {in_points(parts.after - parts.before)} points since",
        "  ",
    )
    for points, what in change.causes():
        put(f"  {points:>6}  {what}")
    print_caveats({change.now.detector: change.warning}, short=True)
    return Exit.OK


def _put_line(line: RateLine, *, verbose: bool) -> None:
    """Print the share, its main remark, unjudged sites, the judged share and the versions; `verbose`: everything."""
    group = f"{line.by} {line.group}: " if line.by else ""
    group += "LLM: " if line.share is not None else ""
    share, *remarks = sentences(line.remarks)
    if line.change is not None:
        since, before = day_of(line.change.day), f"{line.change.before:.1%} before"
        remarks.insert(0, f"changed: {line.change.after:.1%} of sites first named since {since}, {before}")
    put_wrapped(one_line(group + share), "  ")
    if not line.sites:
        put("  no site yet")
        return
    shown = 2 if line.method == ShareState.REVIEWED else 1  # its labels, and the weak point
    for remark in remarks if verbose else remarks[:shown]:
        put_wrapped(f"  {remark}", "    ")
    said = [f"not judged: {_not_judged(line, verbose=verbose)}"]
    if verbose and line.bound_low is not None and line.bound_high is not None:
        said.append(f"bounds over all sites, judged or not: {line.bound_low:.1%} to {line.bound_high:.1%}")
    said.append(f"by verdicts alone: {text_of(line.judged_remarks) if verbose else short_judged(line)}")
    digest = line.digest if verbose else line.digest[:8]
    said.append(f"ruleset {line.ruleset or '-'} {digest or '-'}; detector {line.detector or '-'}")
    if verbose:
        said.append(f"site method {line.site_method or '-'} {line.site_method_digest or '-'}")
    for text in said:
        put_wrapped(f"  {text}", "    ")


def _not_judged(line: RateLine, *, verbose: bool) -> str:
    """Sites without a scored article, which the share leaves out, with the reasons: all, or as many as fit."""
    said = f"{line.sites - line.scored_sites:,} of {counted(line.sites, 'site')}"
    still = f"; {line.open_sites:,} still open in the crawl" if line.open_sites and not line.by else ""
    why = [f"{sites:,} {reason}" for reason, sites in line.not_judged.items()]
    shown = ", ".join(why)
    while not verbose and why and len(said + shown + still) > _REASONS_WIDTH:
        why.pop()
        shown = ", ".join([*why, "..."])
    return f"{said} ({shown}){still}" if why else said + still


def _warn_unscored(counts: Counts, run: str) -> None:
    """Articles without a score, which change the rate when their scores arrive."""
    if counts.unscored:
        verb = "has" if counts.unscored == 1 else "have"
        why = f"; `farmwatch runs show {run}` says why" if run else ""
        articles = counted(counts.articles, "article")
        message(one_line(f"{counts.unscored:,} of {articles} {verb} no score yet: in no verdict{why}"))


def _show_history(config: Config, by: str, cut: Cut, as_json: bool, now_ms: int, run: str) -> Exit:
    """Print the points of the series of `by` ("": all sites), oldest first; of one run if `run` names it.

    Raises UsageError for an unknown series, NotFound for an unknown run.
    """
    if by not in SERIES:
        names = ", ".join(name for name in SERIES if name)
        raise UsageError(f"--by {by}: series are kept of all sites, and of each {names}; leave --history out")
    if cut.source or cut.group or cut.ranks:
        raise UsageError("--history: a kept series cannot be cut; use --by, or leave --history out")
    since = cut.since or datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=_DAYS_SHOWN)
    with opened(config) as log:
        if run:
            run = find_run(Control(log), run).name
        found_seams = seams_of(log, run)
        kept = read_points(log, since, cut.until)
        points = [point for point in kept if point.by == by and point.run == (run or point.run)]
    points.sort(key=lambda point: (group_order(point.group), *series_of(point), point.at))
    warnings = caveats(config, (point.detector for point in points))
    if as_json:
        for point in points:
            put_json({**_point_fields(point), "warning": warnings[point.detector]})
        return Exit.OK
    put_columns(
        points,
        {
            "time": lambda point: datetime.fromtimestamp(point.at / 1000, UTC).strftime("%Y-%m-%d %H:%M"),
            "group": "group",
            "share": lambda point: _percent(point.share),
            "look low": lambda point: _percent(point.share_low),
            "look high": lambda point: _percent(point.share_high),
            "scored sites": "scored_sites",
            "sites": lambda point: point.llm + point.human + point.undecided + point.unclassifiable,
            "method": "share_method",
            "ruleset": lambda point: f"{point.ruleset} {point.digest[:8]}",
            "detector": "detector",
            "site method": lambda point: f"{point.site_method} {point.site_method_digest}".strip(),
            "feature epoch": "epoch",
        },
        less=("ruleset", "detector", "site method", "feature epoch", "sites", "method"),
    )
    for seam in found_seams:
        message(seam)
    shown = f"{counted(len(points), 'point')} since {since}"
    message(
        f"{shown}, one every {config.rate.series_s} s while TALLY runs, times in UTC; the interval holds at every look"
    )
    print_caveats(warnings, short=True)
    return Exit.OK


def _point_fields(point: RatePoint) -> dict[str, Any]:
    """The fields of a point under the names of `rate --json`."""
    fields = msgspec.to_builtins(msgspec.structs.asdict(point))
    for name in ("v", "site", "answer"):
        del fields[name]
    judged = {f"judged_{name}": fields.pop(name) for name in ("low", "high", "method")}
    judged["judged_share"] = fields.pop("rate")
    kept = {"low": "share_low_once", "high": "share_high_once", "look_low": "share_low", "look_high": "share_high"}
    looks = {name: fields.pop(field) for name, field in kept.items()}
    method = fields.pop("share_method")
    return {**fields, **looks, "method": method, **judged, "run": shown_run(point.run)}


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
