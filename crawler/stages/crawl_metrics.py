"""The metrics of CRAWL and their labels. Servers choose statuses, so labels come from fixed sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crawler.fetch.jobs import ABSENT, REDIRECTED, FetchResult, RequestKind
from crawler.frontier.rows import Totals
from crawler.frontier.statuses import Status
from crawler.metrics import (
    CRAWL_PAUSED,
    FETCH_DEFERRED,
    FETCH_DURATION_SECONDS,
    FETCH_REQUESTS,
    FETCH_RESPONSE_BYTES,
    FRONTIER_SITES,
    FRONTIER_URLS,
    ROBOTS_LOOKUPS,
    WARC_RECORDS,
)
from crawler.reasons import CONNECTION_FAILURES, NO_PAGES, REASONS
from crawler.stages.orders import PAUSE_REASONS
from crawler.warc.exchange import RECORD_TYPES
from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Series
from stream.schema.vocabulary import FetchOutcome

_NO_STATUS, _NO_CLASS = "none", "other"
_EXACT = (403, 404, 429, 503)  # actionable statuses; others by class
STATUSES = (_NO_STATUS, *(f"{first}xx" for first in range(1, 6)), *map(str, _EXACT), _NO_CLASS)

_BY_STATUS, _OTHER = "status", "other"  # the status is the reason; an unknown word
WORDS = ("", *(word for word in REASONS if not word.startswith("http_")), _BY_STATUS, _OTHER)


def status_label(status: int) -> str:
    """403, 404, 429, 503, else the class (2xx); none without an answer, other for an invalid status."""
    if status in _EXACT:
        return str(status)
    if 100 <= status < 600:
        return f"{status // 100}xx"
    return _NO_CLASS if status else _NO_STATUS


def reason_label(reason: str) -> str:
    """The reason, as in docs/reference/reasons.md; `status` if the status is the reason; "" if nothing was wrong."""
    if reason.startswith("http_"):
        return _BY_STATUS
    return reason if reason in WORDS else _OTHER


def expected(kind: RequestKind) -> Iterator[tuple[str, str, str]]:
    """Outcome, status and reason of usual requests, so that their series start at 0."""
    yield FetchOutcome.FETCHED.value, "2xx", ""
    yield REDIRECTED, "3xx", ""
    yield FetchOutcome.REFUSED.value, _NO_STATUS, "private_address"
    for status in ("403", "429", "4xx", "503", "5xx"):
        yield FetchOutcome.FAILED.value, status, _BY_STATUS
    for reason in ("bad_response", *sorted(CONNECTION_FAILURES)):
        yield FetchOutcome.FAILED.value, _NO_STATUS, reason
    if kind is RequestKind.PAGE:
        yield FetchOutcome.UNCHANGED.value, "3xx", ""
        yield FetchOutcome.FAILED.value, "404", _BY_STATUS
        yield FetchOutcome.REFUSED.value, "2xx", "content_type"
        for reason in NO_PAGES:
            yield FetchOutcome.NO_PAGE.value, "2xx", reason
        for status in ("403", "503"):
            yield FetchOutcome.NO_PAGE.value, status, "challenge"
    else:
        yield ABSENT, "404", ""


def count_requests(answer: FetchResult, meter: Meter) -> None:
    """Count the requests of a result."""
    if answer.outcome is FetchOutcome.DEFERRED:
        meter.count(FETCH_DEFERRED, kind=answer.job.kind.value)
    for request in answer.requests:
        kind, outcome, reason = request.kind.value, request.outcome, reason_label(request.reason)
        if request.kind is not RequestKind.PAGE and request.status in (404, 410) and outcome == FetchOutcome.FAILED:
            outcome, reason = ABSENT, ""  # a site without robots.txt, tdmrep.json, ads.txt or a sitemap has not failed
        status = status_label(request.status)
        meter.count(FETCH_REQUESTS, kind=kind, outcome=outcome, status=status, reason=reason)
        meter.count(FETCH_RESPONSE_BYTES, request.body_bytes, kind=kind)
        meter.observe(FETCH_DURATION_SECONDS, request.duration_s, kind=kind)


def crawl_series() -> Iterator[Series]:
    """The series of requests, robots.txt and archives that start at 0."""
    for kind in RequestKind:
        for metric in (FETCH_RESPONSE_BYTES, FETCH_DURATION_SECONDS, FETCH_DEFERRED):
            yield metric, {"kind": kind.value}
        for outcome, status, reason in expected(kind):
            yield FETCH_REQUESTS, {"kind": kind.value, "outcome": outcome, "status": status, "reason": reason}
    for result in ("allowed", "disallowed"):
        yield ROBOTS_LOOKUPS, {"result": result}
    for record_type in RECORD_TYPES:
        yield WARC_RECORDS, {"type": record_type}


def show_frontier(metrics: Metrics, totals: Sequence[Totals], paused: Mapping[str, str]) -> None:
    """Set the gauges of pauses, URLs and sites."""
    for reason in PAUSE_REASONS:
        metrics.set(CRAWL_PAUSED, float(reason in paused), reason=reason)
    metrics.set(FRONTIER_URLS, sum(each.queued for each in totals), state="queued")
    for status in Status:
        metrics.set(FRONTIER_URLS, sum(each.urls[status] for each in totals if each.urls), state=status.label)
    states = {name: sum(getattr(each, name) for each in totals) for name in ("resting", "parked", "stopped")}
    states["active"] = sum(each.sites for each in totals) - sum(states.values())
    for state, sites in states.items():
        metrics.set(FRONTIER_SITES, sites, state=state)
