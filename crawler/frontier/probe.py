"""The probe: one request for a URL that cannot exist, before the first page of a site's term or after a stop.

Some sites answer it with 200 and a page that says "not found", or recommends others. The row of the site keeps the
outline of that answer, and its pages with the same outline are `soft_404`. It is asked once, whatever the answer.
"""

from __future__ import annotations

import xxhash

from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.frontier.rows import SiteRow
from crawler.robots.rules import RobotsRules
from crawler.web.inspection import Inspector
from crawler.web.urls import origin_of
from stream.schema.vocabulary import FetchOutcome


def next_probe(row: SiteRow, rules: RobotsRules) -> Job | None:
    """The probe of a site, the same after a crash; None if it was made, or robots.txt forbids it."""
    name = xxhash.xxh3_128_hexdigest(f"probe {row.site} {row.term}".encode())
    url = f"{row.origin}/{name}"
    if row.probed or not rules.allows(url):
        return None
    return Job(RequestKind.PROBE, row.site, url, row.delay_s, rules)


def keep_probe(row: SiteRow, answer: FetchResult) -> None:
    """Keep the outline of the site's page "not found", if that has the status of a page."""
    row.probed = True
    is_page = answer.outcome in (FetchOutcome.FETCHED, FetchOutcome.NO_PAGE) and not answer.transient
    row.outline = answer.outline if is_page and answer.status == 200 else b""


def is_soft_404(row: SiteRow, answer: FetchResult, inspector: Inspector) -> bool:
    """Whether a page is the site's page "not found".

    The home page is none, because some sites send it for any URL; but it is no sign of pages where none has come.
    """
    if not row.outline or not answer.outline:
        return False
    is_home = answer.final_url.removeprefix(origin_of(answer.final_url)) in ("", "/")
    return (not is_home or row.seems_empty) and inspector.same(row.outline, answer.outline)
