"""The command `plan`: what a measurement of a wanted half width takes. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from crawler.sources.queries import query_file
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, opened
from farmwatch.crawl.search_rounds import queries_of
from farmwatch.crawl.sizing import LEAST_SITES, REQUEST_S, SiteFigures, Sizing, sizing_of
from farmwatch.share.review_labels import read_review
from farmwatch.terminal.messages import message, put_json, put_wrapped
from replay.rows.site_table import read_rows
from replay.runs.lookup import names_of_live
from scoring.estimate.rate import HALF_WIDTH
from scoring.rates.canary import is_canary
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.schema.control import Control
from stream.text.times import DAY_S
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, lasting, size


def plan(
    queries: Annotated[
        Path,
        Parameter(
            help="File with queries: one a line, or CSV and JSONL with a column query; or how-to, the list that ships"
            " with farmwatch."
        ),
    ],
    /,
    *,
    half_width: Annotated[
        float | None, Parameter(help="Wanted half width of the interval, such as 0.05. Default: 0.1.")
    ] = None,
    texts_per_s: Annotated[
        float | None,
        Parameter(help="Texts that a pair of models reads in a second on your GPU; `make gpu` measures it."),
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Plan a measurement: the sites, requests, days, disk and GPU hours for an interval of a wanted half width.

    From the figures of the log, where 100 of its sites have pages; else from assumptions. They are printed with the
    plan and their sources. Nothing is asked or written.

    Exit code 1 when the queries bring too few sites, or no number of sites would do.
    """
    config = common.load().config
    wanted = HALF_WIDTH if half_width is None else half_width
    if not 0 < wanted < 0.5:
        raise UsageError(f"--half-width {wanted:g}: give a number above 0 and below 0.5, such as 0.05")
    if texts_per_s is not None and not texts_per_s > 0:
        raise UsageError(f"--texts-per-s {texts_per_s:g}: give a number above 0")
    listed, skipped = queries_of(query_file(queries))
    figures, needed = _figures(config, wanted)
    known = figures.sites > 0
    sized = sizing_of(
        len(listed), wanted, figures, config.crawl, config.rate, needed=needed, known=known, texts_per_s=texts_per_s
    )
    if json:
        put_json(msgspec.to_builtins(sized))
    else:
        for line in _lines(sized, config):
            put_wrapped(line, "  ")
    if skipped:
        message(f"{counted(skipped, 'line')} of {queries} without a query, skipped")
    few = sized.queries is None or sized.queries > len(listed)
    return Exit.PROBLEM if few or skipped else Exit.OK


def _figures(config: Config, half_width: float) -> tuple[SiteFigures, int | None]:
    """The figures of the log with the classifiable sites that it needs in all, or the defaults."""
    if not log_exists(config):
        return SiteFigures(), None
    with opened(config) as log:
        topics = log.topics()
        rows = [row for row in read_rows(log, names_of_live(Control(log)).sites) if row.detector]
        real = [row for row in rows if not is_canary(row.site)]
        visited = [row for row in real if row.pages]
        if len(visited) < LEAST_SITES:
            return SiteFigures(), None
        log_bytes = sum(held.bytes for held in log.sizes(list(topics)).values())
        now_ms = int(time.time() * 1000)
        rate = config.rate
        line = max(
            rate_lines(
                rows, RateQuery(settings=rate, now_ms=now_ms, review=read_review(rate, now_ms), half_width=half_width)
            ),
            key=lambda line: line.sites,
        )
    pages, names = sum(row.pages for row in visited), {query for row in real for query in row.queries}
    figures = SiteFigures(
        classifiable=max(1, line.classifiable) / line.sites,
        pages=pages / len(real),
        texts=sum(row.scored for row in real) / len(real),
        page_bytes=log_bytes / pages,
        sites_a_query=len(real) / max(1, len(names)),
        sites=len(real),
    )
    return figures, None if line.more_sites is None else line.classifiable + line.more_sites


def _lines(sized: Sizing, config: Config) -> Iterator[str]:
    figures = sized.figures
    yield f"For a half width of {sized.half_width:.1%} (confidence {sized.confidence:.0%}) of the judged share:"
    if sized.sites is None or sized.queries is None or sized.requests is None or sized.disk_bytes is None:
        yield "no number of sites would do: the errors of the verdicts are known too badly; add canaries or a review"
        return
    yield f"sites      {sized.sites:,}, of which {sized.classifiable_sites:,} get a verdict llm or human"
    few = sized.queries > sized.queries_given
    yield f"queries    {sized.queries:,}; the file has {sized.queries_given:,}{': too few' if few else ''}"
    yield f"requests   {sized.requests:,} for {sized.pages:,} pages, robots.txt, tdmrep.json and sitemaps"
    yield f"time       {lasting((sized.days or 0) * DAY_S)} at least, for the crawl"
    yield f"disk       {size(sized.disk_bytes)}, before retention"
    yield f"device     {_device(sized, config)}"
    brought = f"{figures.classifiable:.0%} of sites get a verdict, {figures.sites_a_query:.1f} new sites a query"
    pages = f"{figures.pages:.1f} pages and {figures.texts:.1f} scored texts a site"
    disk = f"{figures.page_bytes / 1000:.0f} kB a page"
    if figures.sites:
        yield f"Measured on the {figures.sites:,} sites of this log: {brought}, {pages}, {disk}."
    else:
        yield (
            f"Measured elsewhere: {pages} (docs/explanation/sites.md), {disk} (docs/how-to/deploy.md). Pages that the"
            f" ruleset drops come on top. From {LEAST_SITES} visited sites on, the log's own figures count."
        )
    supposed = "" if figures.sites else f"{brought}, "
    yield (
        f"Supposed: {supposed}{REQUEST_S:g} s a request, {config.crawl.max_in_flight} at once (crawl.max_in_flight),"
        f" {config.crawl.delay_s:g} s between two requests to a host (crawl.delay_s); hosts of one domain or address"
        " take longer."
    )


def _device(sized: Sizing, config: Config) -> str:
    texts = counted(sized.texts or 0, "text")
    if not config.score.uses_pair:
        return f"no GPU; lite-ngram reads {texts} on the CPU (docs/reference/benchmarks.md)"
    if sized.device_hours is None:
        return f"unknown for {texts}: measure your GPU (`make gpu`) and give --texts-per-s"
    return f"{sized.device_hours:,.1f} GPU hours for {texts}"
