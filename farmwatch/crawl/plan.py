"""The cost of further sites, and how they narrow the interval of the share, by what a log has measured so far.

An interval of n sites is about sqrt(m / n) times as wide as that of m sites of the same kind, found by queries of the
same number of sites. The same holds for a share by labels, if the same part of the sites is labelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from statistics import NormalDist

import msgspec

from crawler.settings import CrawlSettings
from farmwatch.share.topic_records import topic_records
from scoring.rates.canary import is_canary
from scoring.rates.direct_share import ShareState
from scoring.rates.split_rates import RateLine
from stream.log.contract import Log
from stream.schema.projection import projection_of
from stream.schema.records import Page, Record, SiteState
from stream.schema.topics import PAGES
from stream.schema.vocabulary import FetchOutcome

LEAST_SITES = 30  # with a scored article; with fewer, a log's own figures are not used
_SITES_READ = 2_000  # whole partitions are read until they have as many
_PAUSE_MS = 60_000  # between two requests; the rest of a longer pause is not the crawl's work


@projection_of(Page)
class _Request(Record, frozen=True, kw_only=True):
    visit: int
    outcome: str
    fetched_at: int
    found_by: str


class SiteFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a site costs and shows. The defaults: docs/explanation/sites.md (sprt), docs/how-to/deploy.md."""

    sites: int = 0  # of the log, that have these figures; 0 = the defaults
    requests: float = 6.7  # for pages
    scored: float = 1.0  # share of the sites with a scored article; the default is the most
    texts: float = 6.7  # scored
    disk_bytes: float = 6.7 * 46_300  # in all topics
    pace: float | None = None  # requests a second of the whole crawl, at work


class FurtherSites(msgspec.Struct, frozen=True, kw_only=True):
    """Further sites with their cost, and the half width of the interval that they bring."""

    sites: int
    half_width: float  # with the further sites; at best, if `half_width_now` is unknown
    half_width_now: float | None
    scored_sites_now: int
    labelled: int | None  # sites with a label that the half width takes; None: it takes none
    requests: int
    texts: int
    disk_bytes: int
    pace_s: float | None  # seconds at the pace of the crawl so far
    figures: SiteFigures


def figures_of(log: Log, rows: Iterable[SiteState]) -> SiteFigures:
    """The figures of the crawled sites of a log, of which these are the rows; the defaults if they are too few.

    Revisits and imported pages are left out.
    """
    topics, partitions = log.topics(), log.topics().get(PAGES, 0)
    scored = {row.site: row.scored for row in rows}
    sites: set[str] = set()
    times: list[int] = []
    read = 0
    while read < partitions and len(sites) < _SITES_READ:
        for page in topic_records(log, _Request, PAGES, [read]):
            if page.visit > 1 or page.found_by == "import" or is_canary(page.site):
                continue
            sites.add(page.site)
            if page.outcome != FetchOutcome.REFUSED:
                times.append(page.fetched_at)
        read += 1
    texts = [scored.get(site, 0) for site in sites]
    if sum(map(bool, texts)) < LEAST_SITES or not times:
        return SiteFigures()
    at_work_ms = sum(min(after - before, _PAUSE_MS) for before, after in pairwise(sorted(times)))
    disk_bytes = sum(held.bytes for held in log.sizes(list(topics)).values()) * read / partitions
    return SiteFigures(
        sites=len(sites),
        requests=len(times) / len(sites),
        scored=sum(map(bool, texts)) / len(sites),
        texts=sum(texts) / len(sites),
        disk_bytes=disk_bytes / len(sites),
        pace=1000 * len(times) * partitions / read / max(at_work_ms, 1),
    )


def plan_of(
    line: RateLine | None, figures: SiteFigures, crawl: CrawlSettings, confidence: float, sites: int, half_width: float
) -> FurtherSites:
    """The plan of so many further sites, or, if `half_width` is not 0, of the number that brings this one.

    `line`: the share as it is printed now. Without a usable one, each site is taken as told apart without an error, at
    a share of one half.
    """
    now = _half_width_now(line) if line is not None and figures.sites else None
    scored_now = line.scored_sites if line is not None and now is not None else 0
    of_one = NormalDist().inv_cdf((1 + confidence) / 2) / 2 if now is None else now * math.sqrt(scored_now)
    if half_width:
        missing = (of_one / half_width) ** 2 - scored_now
        sites = max(0, math.ceil(missing / figures.scored - 1e-9))
    scored = scored_now + sites * figures.scored
    requests = sites * figures.requests
    pace_s = None
    if figures.pace is not None and sites:
        pace_s = max(crawl.delay_s * figures.requests, requests / figures.pace)
    labelled = line.labelled if line is not None and line.method == ShareState.REVIEWED else 0
    return FurtherSites(
        sites=sites,
        half_width=of_one / math.sqrt(scored) if scored else 1.0,
        half_width_now=now,
        scored_sites_now=0 if line is None else line.scored_sites,
        labelled=math.ceil(labelled * scored / scored_now) if labelled and scored_now else None,
        requests=math.ceil(requests),
        texts=math.ceil(sites * figures.texts),
        disk_bytes=math.ceil(sites * figures.disk_bytes),
        pace_s=pace_s,
        figures=figures,
    )


def _half_width_now(line: RateLine) -> float | None:
    """The half width of the printed interval; None if it rests on too few sites, or says nothing."""
    says = line.method in (ShareState.DIRECT, ShareState.REVIEWED, ShareState.TOO_WIDE)
    if line.low is None or line.high is None or not says or line.scored_sites < LEAST_SITES:
        return None
    return (line.high - line.low) / 2
