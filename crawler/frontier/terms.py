"""A new term of a site: it is measured again, with a whole page budget, from a fresh sample of its pages.

The order is that of any site: refused URLs of hits, sitemaps and the home page, links. Pages of earlier terms come
last, where nothing new is found. They are requested without a condition, because an answer "not modified" is no
evidence.
"""

from __future__ import annotations

import xxhash

from crawler.frontier.rows import MAY_PASS, Ask, Priority, SiteRow, Stop, UrlRow
from crawler.frontier.site_store import SiteStore, url_key
from crawler.frontier.statuses import Status
from crawler.robots.preferences import IN_HEADERS
from stream.schema.records import Decision

_LOOKED_AT = 500  # known URLs, drawn at random
_LIFTED = MAY_PASS | {Stop.DECIDED, Stop.BUDGET, Stop.REQUESTS, Stop.CRAWL_DELAY, Stop.INTERNAL}  # other stops last


def begin_term(store: SiteStore, row: SiteRow, decision: Decision) -> None:
    """Open a site for the term of a decision, and queue what is known of it, unless it is stopped for good."""
    if row.stopped and row.stopped not in _LIFTED:
        return
    row.term, row.offset, row.page_requests = decision.term, -row.fetched, 0
    row.first_at = decision.first_at or row.first_at
    # those in headers are of pages of the term before
    row.preferences = [signal for signal in row.preferences if not signal.startswith(IN_HEADERS)]
    row.reopen()
    row.sitemaps_at = 0
    row.ads_txt = Ask.NOT_YET
    budget = store.settings.page_budget
    drawn = _draw(store, row)
    for refused in [each for each in drawn if each.status is Status.REFUSED and each.reason in _LIFTED][:budget]:
        store.queue(row, refused)
    home = store.url(row.site, url := f"{row.origin}/")  # its links lead to new pages
    if home is None:
        row.known += 1
        store.queue(row, UrlRow(url, priority=Priority.SITEMAP))
    elif home.has_page and not home.is_queued:  # the first of the known pages
        home.depth = 0
        store.queue(row, home, Priority.AGAIN)
    for known in [each for each in drawn if each.has_page][:budget]:
        fresh = store.stored_url(row.site, known.page)
        if not fresh.is_queued:
            store.queue(row, fresh, Priority.AGAIN)


def _draw(store: SiteStore, row: SiteRow) -> list[UrlRow]:
    """Known URLs that are not queued: pages are digests, so those behind a random one are a random sample."""
    prefix = url_key(row.site, b"")
    start = prefix + xxhash.xxh3_128_digest(f"{row.site} {row.term}".encode())
    keys = [key for key, _ in store.state.scan(prefix, _LOOKED_AT, start)]
    if len(keys) < _LOOKED_AT:
        keys += [key for key, _ in store.state.scan(prefix, _LOOKED_AT - len(keys)) if key <= start]
    drawn = [store.stored_url(row.site, key[len(prefix) :]) for key in keys]
    return [url_row for url_row in drawn if not url_row.is_queued]
