"""The command `rate`: the present share, split and cut on request, its history, or the causes of a change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.share.change_since import change_since, day_time, in_points
from farmwatch.share.current_rate import CurrentRate, current_rate, field_of_ruleset
from farmwatch.share.cut_options import cut_text, read_days, read_ranks
from farmwatch.share.published_rate import PUBLISHED_SHOWN, published_columns, published_rate
from farmwatch.share.rate_series import POINT_COLUMNS, points_of_run
from farmwatch.share.second_opinions import opinion_words, second_opinions
from farmwatch.share.words import controls_text, sentence, sentences, share_columns, short_share, text_of
from farmwatch.tables.columns import Column
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message, put, put_json, put_wrapped
from filters.segments.names import SegmentKind
from replay.live.epoch_change import seams_of
from replay.rows.site_table import Counts, read_rows
from replay.runs.lookup import names_to_read, second_runs
from scoring.estimate.definitions import FARM, OF_RESULTS
from scoring.rates.cuts import Cut
from scoring.rates.direct_share import ShareState
from scoring.rates.groups import OTHER, day_of, group_order
from scoring.rates.published import PUBLISHED_SPLITS
from scoring.rates.second_opinion import SecondOpinion
from scoring.rates.series import SERIES, series_of
from scoring.rates.split_rates import RateLine
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import RatePoint
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

_DAYS_SHOWN = 7  # of the history, without --from
_SHOWN = ("group", "share", "low", "high", "scored_sites", "sites", "llm", "human", "undecided", "method", "ruleset")
_RESULTS_SHOWN = (
    *("group", "share", "low", "high", "results", "scored_results", "scored_sites"),
    *("first_ten", "new", "returning", "method", "ruleset"),
)
_HISTORY_SHOWN = (
    *("at", "group", "share", "low", "high", "scored_sites", "method", "ruleset", "digest", "detector"),
    *("site_method", "site_method_digest", "epoch"),
)


ShareOf = Literal["sites", "domains", "results", "ranked-results", "any-article", "every-article", "farm"]
PublishedSplit = Literal["published", "published-year"]
HitSplit = Literal["source", "query", "query-group", "rank", "engine", "day", "week", "month"]
RateSplit = Literal[HitSplit, "monetised", "cms", "operator-size"]


def rate(
    *,
    by: Annotated[
        Literal[RateSplit, PublishedSplit] | None,
        Parameter(
            help="Split by source, query, group of queries or rank of the hits, of results also by engine, by day, week"
            " or month, by whether sites earn by ads or affiliate links, by CMS or number of the operator's sites; or"
            " the series by the quarter (published) or year in which articles were published."
        ),
    ] = None,
    of: Annotated[
        ShareOf,
        Parameter(
            help="What the share is of: sites, registrable domains, search results, these by rank; after a review,"
            " sites with any or with every article by a language model; farm: LLM sites that publish in mass and are"
            " monetised."
        ),
    ] = "sites",
    source: Annotated[str, Parameter(help="Only sites that this source has returned.")] = "",
    engine: Annotated[str, Parameter(help="Of search results: only those that this engine has given.")] = "",
    group: Annotated[str, Parameter(help="Only sites that queries of this group (rate.groups) have returned.")] = "",
    rank: Annotated[str, Parameter(help="Only sites whose best rank lies here, such as 1-10.")] = "",
    since: Annotated[
        str, Parameter(name="--from", help="Only sites returned on this day or later, such as 2026-05-01; UTC.")
    ] = "",
    until: Annotated[str, Parameter(name="--to", help="Only sites returned on this day or before.")] = "",
    least: Annotated[
        int,
        Parameter(
            help="Of a series by publication: only sites with so many articles of the period.", validator=Number(gte=1)
        ),
    ] = 1,
    history: Annotated[
        bool, Parameter(negative="", help="The series that were kept, of all sites or of source, rank or query-group.")
    ] = False,
    why: Annotated[str, Parameter(help="Why the share has changed since this day, such as 2026-05-01; UTC.")] = "",
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    verbose: Annotated[
        bool, Parameter(negative="", help="All remarks, reasons, bounds, counts of verdicts and whole versions.")
    ] = False,
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """The share of LLM sites with its interval and denominators, in a few lines; once per ruleset, detector and method.

    The share is estimated from the flagged pages of all sites that have a scored article, also of those that are still
    open: the sites decided one by one, below it, miss LLM sites that have few pages. Of domains, each counts once;
    of search results, a site counts as often as they name it; by rank, a result of rank r counts 1 / log2(1 + r). The
    cuts are then of results: --of ranked-results --by week --rank 1-10 --engine brave.

    By day, week (ISO) or month, in UTC: the sites that search results returned in it, with the verdicts that held then.
    A site counts in each window that returned it. An interval that is too wide says why, and what would help.

    Of farm: the share of sites that are by a language model by their articles, list 100 article URLs or more in their
    sitemaps, and have an ad signal on 2 pages or affiliate links on 2 articles. Where that is unknown of some sites,
    the share is that of those that surely do, to that of those that may. Monetisation is no evidence of the writer.

    By published: of the articles of each period that a language model wrote, corrected for the detector's errors, and
    of the sites that have such articles. Only trusted days of publication count; --from and the other cuts are of the
    search results of the sites.

    A run that follows the live one under the same ruleset for another detector is a second opinion: its share has its
    own line, and is never pooled.

    History: the share as it was at each point in time, by default of the last 7 days.

    Why: the change since the first point of a day, split into new sites, other sources, left sites, sites known
    before, and another ruleset, detector or method. The parts add up to the change.

    JSON: one object a line, with the fields of `estimate`, the group, the versions and the detector's warning.
    """
    config = common.load().config
    now_ms = int(time.time() * 1000)
    cut = Cut(source, group, read_ranks(rank), *read_days(since, until, now_ms), engine)
    if group and group not in (names := [*config.rate.groups, OTHER]):
        raise UsageError(f"--group {group!r}: the groups of rate.groups are {', '.join(names)}")
    is_series = by in PUBLISHED_SPLITS and not history
    if least != 1 and not is_series:
        raise UsageError(f"--least goes with --by {' or '.join(PUBLISHED_SPLITS)}")
    columns: Sequence[Column[Any]] = POINT_COLUMNS if history else share_columns({})
    columns = published_columns({}) if is_series else columns
    listing.of(columns)  # its errors are said before the log is read
    if why:
        if by or history or cut != Cut() or of != "sites":
            raise UsageError("--why explains the share of all sites: leave out --by, --of, --history and the cuts")
        if listing != Listing(json=listing.json):
            raise UsageError("--why is text, or JSON with --json: leave out the options of lists")
        return _show_change(config, why, run, now_ms, as_json=listing.json)
    if (by == "engine" or engine) and of not in OF_RESULTS and not history:
        raise UsageError(
            f"{'--engine' if engine else '--by engine'} is of search results: add --of {' or --of '.join(OF_RESULTS)}"
        )
    if is_series:
        if of != "sites":
            raise UsageError(f"--by {by} is of articles: leave --of out")
        return _show_published(config, by or "", cut, listing, now_ms, run, least)
    if history:
        return _show_history(config, by or "", cut, listing, now_ms, run)
    with opened(config) as log:
        current = current_rate(log, config, now_ms, by=by or "", of=of, cut=cut, run=run)
        of_all = not by and of == "sites" and cut == Cut()
        running = _kept_lately(log, config, now_ms, run) if of_all else None
        opinions = _second_opinions(log, config, current, now_ms) if of_all and not run else []
    lines = current.lines
    if running and {running, *(line.method for line in lines)} == {ShareState.DIRECT, ShareState.REVIEWED}:
        message("the share kept last had another review: a running farmwatch takes a new rate.review when it restarts")
    if current.kept_at:
        message(f"as TALLY's process found it at {datetime.fromtimestamp(current.kept_at / 1000, UTC):%H:%M:%S} UTC")
    warnings = caveats(config, (line.detector for line in (*lines, *(opinion.line for opinion in opinions))))
    if current.waiting:
        message(
            f"{counted(current.waiting, 'hit')} {'waits' if current.waiting == 1 else 'wait'}; start `farmwatch up`"
        )
    if cut_text(cut):
        message(f"only these {'results' if of in OF_RESULTS else 'sites'}: {cut_text(cut)}")
    is_list = by or listing.sort or listing.where or listing.limit is not None
    if not listing.is_table or (is_list and not verbose):
        shown = [*lines, *(opinion.line for opinion in opinions)]
        of_line = (*_SHOWN[:2], "at_most", *_SHOWN[2:]) if of == FARM else _SHOWN
        of_line = _RESULTS_SHOWN if of in OF_RESULTS else of_line
        listing.of(share_columns(warnings)).put(shown, "line", of_line, most=None)
        if not listing.is_table:
            return Exit.OK
    else:
        for line in lines:
            kinds = field_of_ruleset(current.rulesets, line.digest, "kinds")  # comments are never beside other text
            _put_line(line, of_visitors=SegmentKind.COMMENT in kinds, verbose=verbose)
        for opinion in opinions:
            put_wrapped(one_line(opinion_words(opinion)), "  ")
    said = (sentence(line.canary_remark) for line in lines if line.canary_remark and verbose and line.by)
    for correction in dict.fromkeys(said):
        message(correction)
    for note in current.notes:
        message(note)
    if current.undated:
        message(f"left out: {counted(current.undated, 'site')} without a known search day")
    _warn_unscored(current.counts, run)
    print_caveats(warnings, short=not verbose)
    return Exit.OK


def _second_opinions(log: Log, config: Config, current: CurrentRate, now_ms: int) -> list[SecondOpinion]:
    """Those of the runs that follow the live one; not beside a stored answer, because their rows are as many."""
    control = Control(log)
    judged = [line for line in current.lines if control.live and line.digest == control.live.digest]
    if len(judged) != 1 or not second_runs(control):
        return []
    if current.kept_at:
        message("a second detector is not read beside a stored answer: `farmwatch rate --run` names its run")
        return []
    rows = read_rows(log, names_to_read(log).sites)
    of_line = [row for row in rows if row.digest in ("", judged[0].digest) and row.detector == judged[0].detector]
    return list(
        second_opinions(
            control, judged[0], of_line, lambda other: read_rows(log, other.names().sites), config.rate, now_ms
        )
    )


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


def _put_line(line: RateLine, *, of_visitors: bool, verbose: bool) -> None:
    """Print the share, its main remark, sites not judged and decided, and the versions; `verbose`: everything."""
    group = f"{line.by} {line.group}: " if line.by else ""
    group += "visitors' text: " if of_visitors else ""
    group += "content farms: " if line.definition == FARM and not line.farms else ""
    group += "LLM: " if line.share is not None and not line.farms else ""
    share, *remarks = sentences(line.remarks)
    if line.change is not None:
        since, before = day_of(line.change.day), f"{line.change.before:.1%} before"
        remarks.insert(0, f"changed: {line.change.after:.1%} of sites first named since {since}, {before}")
    put_wrapped(one_line(group + share), "  ")
    if not line.sites:
        put("  no site yet")
        return
    shown = len(remarks) if line.farms else 2 if line.labelled else 1  # its labels, and the weak point
    for remark in remarks if verbose else remarks[:shown]:
        put_wrapped(f"  {remark}", "    ")
    said = [f"not judged: {_not_judged(line)}"]
    if verbose and line.bound_low is not None and line.bound_high is not None:
        said.append(f"bounds over all sites, judged or not: {line.bound_low:.1%} to {line.bound_high:.1%}")
        wide = max(map(len, line.not_judged_bounds), default=0)
        for reason, (low, high) in line.not_judged_bounds.items():
            said.append(f"  {reason:<{wide}}  {line.not_judged[reason]:>6,}  {low:.1%} to {high:.1%} with them")
    if verbose and line.preferring:
        said.append(f"{counted(line.preferring, 'site')} of the crawl with a preference on the use by AI")
    said.append(f"decided one by one: {line.llm:,} llm, {line.human:,} human; {line.open_of_scored:,} open")
    if line.controls:
        said.append(f"controls: {controls_text(line.controls)}")
    if line.declared and verbose:
        said.append(f"declared older, perhaps changed since: {controls_text(line.declared)}")
    if verbose:
        said.append(f"by these verdicts alone: {text_of(line.judged_remarks)}")
    digest = line.digest if verbose else line.digest[:8]
    said.append(f"ruleset {line.ruleset or '-'} {digest or '-'}; detector {line.detector or '-'}")
    if verbose:
        said.append(f"site method {line.site_method or '-'} {line.site_method_digest or '-'}")
    for text in said:
        put_wrapped(one_line(f"  {text}"), "    ")


def _not_judged(line: RateLine) -> str:
    """Sites without a scored article, which the share leaves out, with the reasons."""
    said = f"{line.sites - line.scored_sites:,} of {counted(line.sites, 'site')}"
    still = f"; {line.crawling:,} still crawled" if line.crawling and not line.by else ""
    shown = ", ".join(f"{sites:,} {reason}" for reason, sites in line.not_judged.items())
    only = f"; {line.through_segments:,} judged through segments alone" if line.through_segments else ""
    return (f"{said} ({shown})" if shown else said) + still + only


def _kept_lately(log: Log, config: Config, now_ms: int, run: str) -> str:
    """The method of the share that TALLY's process kept last; "" if none is of the last two intervals."""
    since_ms = now_ms - 2000 * config.rate.series_s
    points = points_of_run(log, run, datetime.fromtimestamp(since_ms / 1000, UTC).date())
    kept = [point for point in points if not point.by and point.at > since_ms]
    return max(kept, key=lambda point: point.at).share_method if kept else ""


def _warn_unscored(counts: Counts, run: str) -> None:
    """Articles without a score, which change the rate when their scores arrive."""
    if counts.unscored:
        verb = "has" if counts.unscored == 1 else "have"
        why = f"; `farmwatch runs show {run}` says why" if run else ""
        articles = counted(counts.articles, "article")
        message(one_line(f"{counts.unscored:,} of {articles} {verb} no score yet: in no verdict{why}"))


def _show_published(config: Config, by: str, cut: Cut, listing: Listing, now_ms: int, run: str, least: int) -> Exit:
    """Print the series by day of publication, oldest first."""
    with opened(config) as log:
        found = published_rate(log, config, now_ms, by=by, cut=cut, run=run, least=least)
    warnings = caveats(config, (line.detector for line in found.lines))
    listing.of(published_columns(warnings)).put(found.lines, "period", PUBLISHED_SHOWN, most=None)
    if listing.is_table:
        if cut_text(cut):
            message(f"only sites by their search results, and all their articles: {cut_text(cut)}")
        for note in found.notes():
            message(note)
        print_caveats(warnings, short=True)
    return Exit.OK


def _show_history(config: Config, by: str, cut: Cut, listing: Listing, now_ms: int, run: str) -> Exit:
    """Print the points of the series of `by` ("": all sites), oldest first; of one run if `run` names it.

    Raises UsageError for an unknown series, NotFound for an unknown run.
    """
    if by not in SERIES:
        names = ", ".join(name for name in SERIES if name)
        raise UsageError(f"--by {by}: series are kept of all sites, and of each {names}; leave --history out")
    if cut.source or cut.engine or cut.group or cut.ranks:
        raise UsageError("--history: a kept series cannot be cut; use --by, or leave --history out")
    since = cut.since or datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=_DAYS_SHOWN)
    with opened(config) as log:
        points = [point for point in points_of_run(log, run, since, cut.until) if point.by == by]
        found_seams = seams_of(Control(log), run)
    points.sort(key=lambda point: (group_order(point.group), *series_of(point), point.at))
    warnings = caveats(config, (point.detector for point in points))
    said: Column[RatePoint] = Column("warning", "text", lambda point: warnings[point.detector])
    columns = [*POINT_COLUMNS, said]
    listing.of(columns).put(points, "point", _HISTORY_SHOWN, most=None)
    if listing.is_table:
        for seam in found_seams:
            message(seam)
        message(f"since {since}, one every {config.rate.series_s} s while TALLY runs; the interval is that of one look")
        print_caveats(warnings, short=True)
    return Exit.OK
