"""The end of a visit: one page record, and what the URL's row keeps of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crawler.fetch.jobs import FetchOutcome, FetchResult
from crawler.frontier.rows import FOUND_BY, SiteRow, UrlRow
from crawler.frontier.site_store import SiteStore
from crawler.frontier.statuses import Status
from crawler.web.urls import fetch_id, page_id_of_normal
from stream.schema.records import Page

_STATUS_OF = {
    FetchOutcome.FETCHED: Status.FETCHED,
    FetchOutcome.UNCHANGED: Status.FETCHED,
    FetchOutcome.REFUSED: Status.REFUSED,
    FetchOutcome.FAILED: Status.ERROR,
}
# Validators that may be sent back: RFC 9110 section 8.8.3, without obs-text; characters of a date
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"')
_DATE = re.compile(r"[A-Za-z0-9,:+ -]{10,40}")


class PageLog:
    """Ends visits: emits page records and stores URLs."""

    def __init__(self, store: SiteStore, emit: Callable[[Page], None]) -> None:
        self._store = store
        self._emit = emit

    def end(
        self,
        row: SiteRow,
        page: bytes,
        found: UrlRow,
        outcome: FetchOutcome,
        reason: str,
        answer: FetchResult | None = None,
        *,
        signals: Sequence[str] | None = None,
    ) -> None:
        """Record a visit, take its URL out of the queue, and schedule the next visit.

        `signals` are opt-outs beyond those of the answer.
        """
        if found.is_queued:
            self._store.unqueue(row, found)
        found.visit += 1
        found.status, found.reason, found.attempts = _STATUS_OF[outcome], reason, 0
        found.site_failed = False
        if answer is not None:
            _keep_conditions(found, answer)
        opt_out = [*(answer.opt_out if answer else ()), *(signals or ())]
        self._emit(_page(row.site, found, outcome, answer, opt_out, self._store.now_ms))
        self._store.schedule(row, page, found, answer.started_ms if answer else self._store.now_ms)


def _page(
    site: str, found: UrlRow, outcome: FetchOutcome, answer: FetchResult | None, opt_out: list[str], now_ms: int
) -> Page:
    """The record of a visit; `answer` is None if no request was made."""
    return Page(
        id=fetch_id(found.url, found.visit),
        site=site,
        page_id=page_id_of_normal(found.url),
        url=found.url,
        visit=found.visit,
        outcome=outcome.value,
        reason=found.reason,
        final_url=answer.final_url if answer else "",
        status=answer.status if answer else 0,
        headers=answer.headers if answer else {},
        content_type=answer.content_type if answer else "",
        encoding=answer.encoding if answer else "",
        body=answer.packed if answer else b"",
        body_bytes=len(answer.body) if answer else 0,
        truncated=answer.truncated if answer else False,
        fetched_at=answer.started_ms if answer else now_ms,
        duration_ms=answer.duration_ms if answer else 0,
        found_by=FOUND_BY[found.priority],
        opt_out=opt_out,
        hits=found.hits,
        address=answer.address if answer else "",
    )


def _keep_conditions(found: UrlRow, answer: FetchResult) -> None:
    """Keep the validators for the next visit, if they are harmless to send back.

    A 304 renews the validators that it names (RFC 9111 section 3.2) and leaves the rest.
    """
    if answer.outcome not in (FetchOutcome.FETCHED, FetchOutcome.UNCHANGED):
        return
    etag, modified = answer.headers.get("etag", ""), answer.headers.get("last-modified", "")
    renewed = answer.outcome is FetchOutcome.UNCHANGED
    found.etag = etag if _ETAG.fullmatch(etag) else found.etag if renewed else ""
    found.last_modified = modified if _DATE.fullmatch(modified) else found.last_modified if renewed else ""
    found.has_page = True


def page_headers(page: Page) -> dict[str, str]:
    """The headers of a page record: a trace (W3C Trace Context) that starts with the fetch. A page belongs to
    no run.
    """
    return {"traceparent": f"00-{page.id}-{page.page_id[:16]}-01"}
