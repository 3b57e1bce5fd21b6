"""The size of a measurement: from a wanted half width to sites, queries, requests, days, disk and device hours.

    classifiable sites n   the least for which the interval of a share of one half is narrow enough (Wilson); with
                           figures of a log: by its own share and correction, as in `farmwatch rate`
    sites                  n / (classifiable share)
    requests               sites * (pages a site + robots.txt, tdmrep.json and a sitemap)

The time is that of the crawl, which visits sites concurrently: the longer of one site's visit at the configured delay,
and of all requests at `crawl.max_in_flight` at once.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec

from crawler.settings import CrawlSettings
from scoring.estimate.sites_needed import sites_needed
from scoring.rates.settings import RateSettings
from stream.text.times import DAY_S

LEAST_SITES = 100  # pages of a log needed to use its own figures
REQUEST_S = 1.0  # of a request, from connection to last byte: assumed
_EXTRA_REQUESTS = 3  # per site: robots.txt, tdmrep.json, one sitemap file


class SiteFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The cost and yield of a site. The defaults: docs/explanation/sites.md, docs/how-to/deploy.md, or supposed."""

    classifiable: float = 0.31  # share of sites with a verdict llm or human: supposed
    pages: float = 6.7  # per site; 5.7 with p0 = .10
    texts: float = 6.7  # scored articles per site
    page_bytes: float = 46_300.0  # on the log, all topics together
    sites_a_query: float = 10.0  # new ones: supposed
    sites: int = 0  # of the log with these figures; 0 = the defaults


class Sizing(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a measurement. None = unknown, or without end."""

    half_width: float
    confidence: float
    queries_given: int
    classifiable_sites: int | None
    sites: int | None
    queries: int | None
    pages: int | None
    requests: int | None
    days: float | None
    disk_bytes: int | None
    texts: int | None
    device_hours: float | None  # of SCORE
    figures: SiteFigures


def sizing_of(
    queries: int,
    half_width: float,
    figures: SiteFigures,
    crawl: CrawlSettings,
    rate: RateSettings,
    *,
    needed: int | None = None,
    known: bool = False,
    texts_per_s: float | None = None,
) -> Sizing:
    """The size of a measurement; `needed`: classifiable sites by the figures of a log, if they are `known`."""
    if not known:
        z = NormalDist().inv_cdf((1 + rate.confidence) / 2)
        needed = sites_needed(0, 0, None, z, half_width).more_sites
    sites = None if needed is None else math.ceil(needed / figures.classifiable)
    pages = None if sites is None else math.ceil(sites * figures.pages)
    texts = None if sites is None else math.ceil(sites * figures.texts)
    requests = None if sites is None or pages is None else pages + sites * _EXTRA_REQUESTS
    visit_s = crawl.delay_s * (figures.pages + _EXTRA_REQUESTS)
    seconds = None if requests is None else max(visit_s, requests * REQUEST_S / crawl.max_in_flight)
    return Sizing(
        half_width=half_width,
        confidence=rate.confidence,
        queries_given=queries,
        classifiable_sites=needed,
        sites=sites,
        queries=None if sites is None else math.ceil(sites / figures.sites_a_query),
        pages=pages,
        requests=requests,
        days=None if seconds is None else seconds / DAY_S,
        disk_bytes=None if pages is None else round(pages * figures.page_bytes),
        texts=texts,
        device_hours=None if texts is None or texts_per_s is None else texts / texts_per_s / 3600,
        figures=figures,
    )
