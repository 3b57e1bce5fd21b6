"""The end of a visit: one page record, and the fields that the URL's row keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.frontier.rows import FOUND_BY, Priority, SiteRow, UrlRow
from crawler.frontier.site_store import STEP, SiteStore
from crawler.frontier.statuses import Status
from crawler.robots.preferences import capped, is_preference
from crawler.web.urls import fetch_id, page_id_of_normal
from stream.schema.records import Page
from stream.schema.vocabulary import FetchOutcome

_STATUS_OF = {
    FetchOutcome.FETCHED: Status.FETCHED,
    FetchOutcome.UNCHANGED: Status.FETCHED,
    FetchOutcome.NO_PAGE: Status.ERROR,
    FetchOutcome.REFUSED: Status.REFUSED,
    FetchOutcome.FAILED: Status.ERROR,
}
# Validators that may be sent back: RFC 9110 section 8.8.3, without obs-text; characters of a date
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"')
_DATE = re.compile(r"[A-Za-z0-9,:+ -]{10,40}")


@dataclass(slots=True)
class PageLog:
    """Ends visits: emits page records and stores URLs."""

    store: SiteStore
    emit: Callable[[Page], None]

    def end(self, row: SiteRow, url_row: UrlRow, answer: FetchResult, signals: Sequence[str] = ()) -> None:
        """Record a visit, with `signals` beyond the answer's opt-outs; dequeue its URL, and schedule the next visit."""
        url_row.visit += 1
        url_row.status, url_row.reason, url_row.attempts = _STATUS_OF[answer.outcome], answer.reason, 0
        url_row.site_failed = False
        if url_row.status is Status.FETCHED:
            # Keep validators that are harmless to send back; a 304 renews those that it names (RFC 9111 section 3.2)
            etag, modified = answer.headers.get("etag", ""), answer.headers.get("last-modified", "")
            renewed = answer.outcome is FetchOutcome.UNCHANGED
            url_row.etag = etag if _ETAG.fullmatch(etag) else url_row.etag if renewed else ""
            url_row.last_modified = modified if _DATE.fullmatch(modified) else url_row.last_modified if renewed else ""
            url_row.has_page = True
        if any(stated := [signal for signal in answer.opt_out if is_preference(signal)]):
            row.preferences = capped([*row.preferences, *stated])
        self.emit(_page(row, url_row, answer, [*answer.opt_out, *signals]))
        self.store.schedule(row, url_row, answer.started_ms)

    def refuse(self, row: SiteRow, url_row: UrlRow, reason: str, signals: Sequence[str] = ()) -> None:
        """Record that a URL is refused without a request."""
        job = Job(RequestKind.PAGE, row.site, url_row.url, row.delay_s)
        refusal = FetchResult(job=job, outcome=FetchOutcome.REFUSED, reason=reason, started_ms=self.store.now_ms)
        self.end(row, url_row, refusal, signals)

    def drain(self, row: SiteRow) -> None:
        """Process a part of the queue of a stopped site.

        URLs of hits are recorded as refused; discovered URLs are forgotten. Revisits leave no record: the page has one.
        """
        for place, _, page in self.store.places(row.site, STEP):
            url_row = self.store.stored_url(row.site, page)
            if place == Priority.AGAIN:
                self.store.schedule(row, url_row, self.store.now_ms)
            elif url_row.hits:
                self.refuse(row, url_row, row.stopped)
            else:
                self.store.forget_url(row, url_row)
                row.known -= 1
        if not row.queued and not self.store.may_reopen(row):
            self.store.forget_revisits(row, STEP)


def _page(row: SiteRow, url_row: UrlRow, answer: FetchResult, opt_out: list[str]) -> Page:
    return Page(
        id=fetch_id(url_row.url, url_row.visit),
        site=row.site,
        page_id=page_id_of_normal(url_row.url),
        url=url_row.url,
        visit=url_row.visit,
        outcome=answer.outcome.value,
        reason=answer.reason,
        final_url=answer.final_url,
        status=answer.status,
        headers=answer.headers,
        content_type=answer.content_type,
        encoding=answer.encoding,
        body=answer.packed,
        body_bytes=len(answer.body),
        truncated=answer.truncated,
        fetched_at=answer.started_ms,
        duration_ms=answer.duration_ms,
        found_by=FOUND_BY[url_row.priority],
        opt_out=opt_out,
        hits=url_row.hits,
        address=answer.address,
        first_at=row.first_at,
    )


def page_headers(page: Page) -> dict[str, str]:
    """The headers of a page record: a trace (W3C Trace Context) that starts with the fetch."""
    return {"traceparent": f"00-{page.id}-{page.page_id[:16]}-01"}
