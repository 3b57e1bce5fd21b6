"""Says why a page has no measures, from the records of the crawl: its page records and its rows in the frontier."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from crawler.frontier.report import QUEUES, stored_rows
from crawler.frontier.rows import Priority, SiteRow, UrlRow
from crawler.frontier.statuses import Status
from crawler.reasons import CONNECTION_FAILURES, reason_text, what_ends_stop
from stream.log.contract import Log, partition_of
from stream.schema.records import Page
from stream.schema.topics import FRONTIER_STORE
from stream.schema.vocabulary import FetchOutcome
from stream.text.wording import counted, moment, one_line

_LEFT = "its record has left the log"
_SAID = {  # status in the frontier, without a page record
    Status.DISCOVERED: "not requested yet",
    Status.FETCH_ERROR: "could not be fetched so far",
    Status.FETCHED: f"fetched; {_LEFT}",
    Status.REDIRECTION: "another URL of the site redirects to it, and has the record",
    Status.ERROR: "could not be fetched",
    Status.REFUSED: "refused",
}


def why_not_measured(
    log: Log, url: str, site: str, page_ids: Sequence[str], pages: Iterable[Page], *, asks_crawl: bool = True
) -> str:
    """Why a page has no measures: how its last visit ended and when, how often it was asked, and what comes next.

    `page_ids` are those of the spellings of `url`; `pages` are the page records of its site. `asks_crawl`: read the
    state of CRAWL, too.
    """
    last = None
    for page in pages:
        if page.page_id in page_ids:
            last = page
    row, url_row = _rows(log, site, page_ids) if asks_crawl else (None, None)
    if last is not None:
        at = f"; visit {last.visit}, at {moment(last.fetched_at)}" if last.fetched_at else ""
        if last.outcome == FetchOutcome.FETCHED:
            said = [f"fetched, and not measured yet{at}"]
        elif last.outcome == FetchOutcome.UNCHANGED:
            said = [f"unchanged since an earlier visit, whose measures have left the log{at}"]
        else:  # a site that does not answer is stopped
            has_failed = last.outcome == FetchOutcome.FAILED or last.reason in CONNECTION_FAILURES
            outcome = "could not be fetched" if has_failed else last.outcome.replace("_", " ")
            said = [f"{outcome}: {reason_text(last.reason)}{at}"]
    elif url_row is not None:
        said = [_SAID[Status(url_row.status)]]
        if url_row.status in (Status.ERROR, Status.REFUSED):
            said = [f"{said[0]}: {reason_text(url_row.reason)}; visit {url_row.visit}; {_LEFT}"]
    else:
        said = ["not in the log: it has no hit, was not fetched yet, or expired"]
    return one_line(f"{url}: {'; '.join([*said, *_next(row, url_row)])}")


def _rows(log: Log, site: str, page_ids: Collection[str]) -> tuple[SiteRow | None, UrlRow | None]:
    partitions = log.topics().get(f"state.{FRONTIER_STORE}", 0)
    if not partitions:
        return None, None
    with log.read_state(FRONTIER_STORE, partition_of(site, partitions)) as state:
        return stored_rows(state, site, [bytes.fromhex(page) for page in page_ids])


def _next(row: SiteRow | None, url_row: UrlRow | None) -> Iterator[str]:
    """The failures that are not on record yet, and what ends the wait."""
    if url_row is not None and url_row.attempts:
        yield f"{counted(url_row.attempts, 'attempt')} failed"
    if row is None:
        return
    if row.stopped:
        passes = what_ends_stop(row.stopped) or "nothing"
        yield f"the site is stopped since {moment(row.stopped_at)}: {reason_text(row.stopped)}; what ends it: {passes}"
        return
    if url_row is not None and url_row.place is not None:
        queue = "to be asked again" if url_row.place is Priority.AGAIN else f"among the {QUEUES[url_row.place]}"
        yield f"it waits {queue}"
    elif url_row is not None and url_row.status is not Status.REDIRECTION:
        yield f"it is asked again from {moment(url_row.due)} on" if url_row.due else "it is not asked again"
    if row.parked_until:
        times = f"{counted(row.park_level, 'failure')} in a row, the last at {moment(row.parked_at)}"
        yield f"the host is parked until {moment(row.parked_until)}: {reason_text(row.parked_why)} ({times})"
