"""The command `plan`: the cost of further sites, and the interval that they bring. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, opened
from farmwatch.crawl.append_hits import hits_of
from farmwatch.crawl.plan import LEAST_SITES, FurtherSites, SiteFigures, figures_of, plan_of
from farmwatch.share.current_rate import current_rate
from farmwatch.share.cut_options import read_part
from farmwatch.terminal.messages import put_json, put_wrapped
from replay.rows.site_table import read_rows
from replay.runs.lookup import names_to_read
from scoring.rates.split_rates import RateLine
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, lasting, size


def plan(
    *,
    sites: Annotated[int | None, Parameter(help="So many further sites.", validator=Number(gte=1))] = None,
    hits: Annotated[
        list[Path] | None, Parameter(help="The sites of files with hits that the log does not have.", negative="")
    ] = None,
    half_width: Annotated[
        str, Parameter(help="As many further sites as bring this half width of the interval: 5% or 0.05.")
    ] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Plan a measurement: further sites with their requests, time and disk, and the interval of the share with them.

    It plans the share and the interval that `farmwatch rate` prints. Cost and yield of a site are those of this log,
    from 30 sites with a scored article on; before that, averages measured elsewhere, and it says so.
    """
    if [sites is None, hits is None, not half_width].count(False) != 1:
        raise UsageError("give one of --sites, --hits and --half-width")
    wanted = read_part(half_width, "--half-width", 0.5) if half_width else 0.0
    config, now_ms = common.load().config, int(time.time() * 1000)
    line, figures, known = _measured(config, now_ms)
    if hits is not None:
        sites = len({hit.site for hit in hits_of(hits, now_ms)[0]} - known)
    planned = plan_of(line, figures, config.crawl, config.rate.confidence, sites or 0, wanted)
    if json:
        put_json(msgspec.to_builtins(planned))
        return Exit.OK
    for text in _lines(planned, config, hits is not None):
        put_wrapped(text, "  ")
    return Exit.OK


def _measured(config: Config, now_ms: int) -> tuple[RateLine | None, SiteFigures, set[str]]:
    """The share now, the figures of its sites, and the names of all sites of the log."""
    if not log_exists(config):
        return None, SiteFigures(), set()
    with opened(config) as log:
        lines = current_rate(log, config, now_ms, by="").lines
        rows = read_rows(log, names_to_read(log, "").sites)
        figures = figures_of(log, rows)
    return max(lines, key=lambda line: line.scored_sites), figures, {row.site for row in rows}


def _lines(planned: FurtherSites, config: Config, is_of_files: bool) -> Iterator[str]:
    figures, at = planned.figures, f"the {config.rate.confidence:.0%} interval of the share"
    further, now = counted(planned.sites, "further site"), planned.half_width_now
    scored = counted(planned.scored_sites_now, "site")
    if not planned.sites:
        yield "no further site: the log has all sites of the files" if is_of_files else "no further site is needed"
        return
    if now is None:
        best = f"a half width of {planned.half_width:.1%} at best"
        yield f"{further} would give {at} {best if planned.half_width < 0.5 else 'no half width below 50%'}"
        few = planned.scored_sites_now < LEAST_SITES or not figures.sites
        yield "  for a share of one half, if each were told apart without an error: this log " + (
            f"has {scored} with a scored article, and {LEAST_SITES} are needed for a plan from its own figures"
            if few
            else "does not tell the kinds of sites apart (`farmwatch rate`)"
        )
    else:
        yield (
            f"{further} would bring {at} to a half width of about {planned.half_width:.1%}; now it is"
            f" {now:.1%}, by {scored} with a scored article"
        )
    if planned.labelled is not None:
        yield f"  labels    of {planned.labelled:,} sites in all, as large a part of the sites as now has labels"
    yield f"  requests  {planned.requests:,} for pages ({figures.requests:.1f} a site), besides robots.txt and sitemaps"
    if planned.pace_s is None:
        yield f"  time      unknown: crawl {LEAST_SITES} sites and plan again; the pace is then that of this log"
    else:
        yield f"  time      {lasting(planned.pace_s)} at the pace of this crawl ({figures.pace:.1f} requests a second)"
    yield f"  disk      {size(planned.disk_bytes)} before retention ({size(figures.disk_bytes)} a site)"
    yield f"  texts     {planned.texts:,} to score ({figures.texts:.1f} a site)"
    if figures.sites:
        has = f"{figures.scored:.0%} have a scored article"
        yield f"measured on {counted(figures.sites, 'site')} of this log, of which {has}"
    else:
        yield "measured elsewhere: averages of docs/explanation/sites.md and docs/how-to/deploy.md"
