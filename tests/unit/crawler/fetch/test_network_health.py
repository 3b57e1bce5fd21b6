"""Failures caused by our own network, and their log entries."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crawler.fetch.jobs import REDIRECTED, FetchRequest, FetchResult, Job, RequestKind
from crawler.fetch.network_health import NetworkWatch
from crawler.settings import CrawlSettings
from stream.schema.vocabulary import FetchOutcome

SETTINGS = CrawlSettings(contact="a@example.org")
LATER_MS = 100_000


def answer(site: str, reason: str = "dns", **fields: object) -> FetchResult:
    """A page's answer; by default the server never responded."""
    known = {"outcome": FetchOutcome.FAILED if reason else FetchOutcome.FETCHED, "unreachable": bool(reason)}
    job = Job(RequestKind.PAGE, site, f"http://{site}/secret", 5.0)
    return FetchResult(job=job, started_ms=0, reason=reason, **(known | fields))  # type: ignore[arg-type]


def failed(
    sites: int, *, times: int = 2, known: bool = False, reason: str = "dns", now_ms: int = LATER_MS
) -> NetworkWatch:
    """A network watch after failures of several sites."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, sites, times=times, known=known, reason=reason, now_ms=now_ms)
    return watch


def fail(
    watch: NetworkWatch, sites: int, times: int = 2, known: bool = False, reason: str = "dns", now_ms: int = LATER_MS
) -> None:
    for _ in range(times):
        for n in range(sites):
            watch.note(answer(f"{n}.test", reason), now_ms, has_answered=known)


@pytest.mark.parametrize("reason", ["dns", "timeout", "proxy_refused"])
def test_many_sites_without_any_answer_are_an_outage(reason: str) -> None:
    """Ten failures of five sites without any response are an outage, after a quiet period."""
    watch = failed(5, reason=reason)
    assert not watch.is_down(LATER_MS + 1000)
    assert watch.is_down(LATER_MS + 10_000)
    watch.note(answer("9.test", ""), LATER_MS + 11_000, has_answered=False)
    assert not watch.is_down(LATER_MS + 20_000)


def test_few_sites_or_few_failures_are_none() -> None:
    """Four sites, or nine failures, are not an outage: the sites have failed."""
    assert not failed(4, times=50).is_down(LATER_MS + 10_000)
    assert not failed(9, times=1).is_down(LATER_MS + 10_000)


def test_dead_sites_of_a_live_web_are_none() -> None:
    """After one response, sites that never answered are dead; a failure of a site that has answered shows an outage."""
    watch = NetworkWatch(SETTINGS)
    watch.note(answer("live.test", ""), LATER_MS, has_answered=False)
    fail(watch, 9, times=9)
    assert not watch.is_down(LATER_MS + 10_000)
    fail(watch, 1, times=1, known=True)
    assert watch.is_down(LATER_MS + 10_000)


HOP = FetchRequest(RequestKind.PAGE, REDIRECTED, 0.1, 0)


@pytest.mark.parametrize(
    ("last", "is_down"),
    [
        (answer("9.test", "http_503", status=503), False),
        (answer("9.test", "tls"), False),
        (answer("9.test", requests=[HOP]), False),  # it sent us elsewhere, to a host that is gone
        (answer("9.test", "private_address", unreachable=False), True),
        (answer("9.test", "", outcome=FetchOutcome.DEFERRED), True),
    ],
    ids=["status", "tls", "redirect", "refused by us", "no request"],
)
def test_any_answer_ends_a_streak(last: FetchResult, is_down: bool) -> None:
    """A server error, a TLS error or a redirect shows that the network works; a job without a request shows nothing."""
    watch = failed(5)
    watch.note(last, LATER_MS, has_answered=True)
    assert watch.is_down(LATER_MS + 10_000) is is_down


def test_an_outage_is_logged_once_with_how_to_mend_it() -> None:
    """The log has one warning with the remedy when an outage begins, and one line when it ends."""
    watch = failed(5)
    with capture_logs() as logs:
        for _ in range(3):
            watch.is_down(LATER_MS + 10_000)
        watch.note(answer("9.test", ""), LATER_MS, has_answered=False)
        watch.is_down(LATER_MS + 11_000)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("no_network", "warning"),
        ("network_is_back", "info"),
    ]
    assert "DNS" in logs[0]["mend"]


def test_an_outage_ends_by_itself() -> None:
    """After network_wait_s, failures count again, so that a crawl of dead sites ends."""
    watch = failed(5)
    assert watch.is_down(LATER_MS + 10_000)
    with capture_logs() as logs:
        assert not watch.is_down(LATER_MS + 21_600_000)
    assert [entry["event"] for entry in logs] == ["no_network_for_too_long"]


def test_failures_before_a_pause_belong_to_another_streak() -> None:
    """One dead site hours ago does not hide an outage of today."""
    watch = failed(1, times=1)
    today = LATER_MS + 8 * 3_600_000
    fail(watch, 6, known=True, now_ms=today)
    assert watch.is_down(today + 10_000)


def test_retries_thin_out_while_an_outage_lasts() -> None:
    """A suspected outage may be a server that blocks us: the wait grows with its length, up to the cap."""
    watch = failed(6, known=True)
    waits = [watch.excused_wait_s(LATER_MS + hours * 3_600_000) for hours in (0, 1, 3, 6)]
    assert waits == [SETTINGS.retry_s, 900, 2700, SETTINGS.park_cap_s]


def test_a_router_that_denies_all_names_is_an_outage() -> None:
    """ "No such name" for every name counts as an outage, like names that no nameserver resolves."""
    assert failed(5, known=True, reason="dns_no_name").is_down(LATER_MS + 10_000)
