"""When failures are put down to our own network, and what the log says of them."""

from __future__ import annotations

from structlog.testing import capture_logs

from crawler.fetch.jobs import REDIRECTED, FetchOutcome, FetchRequest, FetchResult, Job, RequestKind
from crawler.fetch.network_health import NetworkWatch
from crawler.settings import CrawlSettings

SETTINGS = CrawlSettings(contact="a@example.org")
LATER_MS = 100_000


def answer(site: str, reason: str = "dns", **fields: object) -> FetchResult:
    """An answer to a page of a site: by default none at all."""
    known = {"outcome": FetchOutcome.FAILED if reason else FetchOutcome.FETCHED, "unreachable": bool(reason)}
    job = Job(RequestKind.PAGE, site, f"http://{site}/secret", 5.0)
    return FetchResult(job=job, started_ms=0, reason=reason, **(known | fields))  # type: ignore[arg-type]


def fail(watch: NetworkWatch, sites: int, *, times: int = 2, known: bool = False, now_ms: int = LATER_MS) -> None:
    """Let sites fail in turn."""
    for _ in range(times):
        for n in range(sites):
            watch.note(answer(f"{n}.test"), now_ms, has_answered=known)


def test_many_sites_without_any_answer_are_an_outage() -> None:
    """Ten failures of five sites and no answer are our side's, once it has been quiet for a while."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 5)
    assert not watch.is_down(LATER_MS + 1000)
    assert watch.is_down(LATER_MS + 10_000)
    watch.note(answer("9.test", ""), LATER_MS + 11_000, has_answered=False)
    assert not watch.is_down(LATER_MS + 20_000)


def test_few_sites_or_few_failures_are_none() -> None:
    """Four sites, or nine failures, are put down to the sites."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 4, times=50)
    assert not watch.is_down(LATER_MS + 10_000)
    watch = NetworkWatch(SETTINGS)
    fail(watch, 9, times=1)
    assert not watch.is_down(LATER_MS + 10_000)


def test_dead_sites_of_a_live_web_are_none() -> None:
    """After an answer, sites that never answered are dead; sites that did answer are not, all at once."""
    watch = NetworkWatch(SETTINGS)
    watch.note(answer("live.test", ""), LATER_MS, has_answered=False)
    fail(watch, 9, times=9)
    assert not watch.is_down(LATER_MS + 10_000)
    fail(watch, 1, times=1, known=True)
    assert watch.is_down(LATER_MS + 10_000)


def test_a_job_that_was_put_off_says_nothing_of_the_network() -> None:
    """Without a request nothing is known: it neither counts as a failure nor ends a row of them."""
    put_off = answer("x.test", "", outcome=FetchOutcome.DEFERRED)
    watch = NetworkWatch(SETTINGS)
    fail(watch, 5)
    watch.note(put_off, LATER_MS, has_answered=True)
    assert watch.is_down(LATER_MS + 10_000)


def test_a_router_that_denies_all_names_is_an_outage() -> None:
    """Names that are said not to exist count like names that nobody resolves."""
    watch = NetworkWatch(SETTINGS)
    for _ in range(2):
        for n in range(5):
            watch.note(answer(f"{n}.test", "dns_no_name"), LATER_MS, has_answered=True)
    assert watch.is_down(LATER_MS + 10_000)


def test_any_http_status_is_an_answer() -> None:
    """An error of a server, or of TLS, shows that the network works; what we refuse ourselves shows nothing."""
    for reason, status, is_down in (("http_503", 503, False), ("tls", 0, False), ("private_address", 0, True)):
        watch = NetworkWatch(SETTINGS)
        fail(watch, 5)
        watch.note(answer("9.test", reason, status=status), LATER_MS, has_answered=False)
        assert watch.is_down(LATER_MS + 10_000) is is_down


def test_an_outage_ends_by_itself() -> None:
    """After network_wait_s failures count again, so that a crawl of dead sites ends."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 5)
    assert watch.is_down(LATER_MS + 10_000)
    with capture_logs() as logs:
        assert not watch.is_down(LATER_MS + 21_600_000)
    assert [entry["event"] for entry in logs] == ["no_network_for_too_long"]


def test_an_outage_is_logged_once_with_how_to_mend_it() -> None:
    """One warning when it begins, one line when it is over."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 5)
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


def test_failures_are_summed_up_once_a_minute() -> None:
    """A summary of counts by reason a minute, and at the end; no site and no URL in it."""
    watch = NetworkWatch(SETTINGS)
    with capture_logs() as logs:
        for second in range(100):
            watch.note(answer("a.test", "timeout" if second % 3 else "dns"), 1000 + second * 1000, has_answered=False)
            watch.note(answer("b.test", ""), 1000 + second * 1000, has_answered=False)
            watch.summarise(1000 + second * 1000)
        assert [(entry["event"], entry["total"]) for entry in logs] == [("fetches_failed", 61)]
        watch.summarise(0, last=True)
        watch.summarise(0, last=True)
    assert [entry["total"] for entry in logs] == [61, 39]
    assert logs[0]["reasons"] == "timeout 40, dns 21"
    assert ".test" not in str(logs)


def test_what_failed_before_a_rest_is_another_story() -> None:
    """One dead site hours ago does not keep an outage of today from being seen."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 1, times=1)
    today = LATER_MS + 8 * 3_600_000
    fail(watch, 6, known=True, now_ms=today)
    assert watch.is_down(today + 10_000)


def test_retries_thin_out_while_an_outage_lasts() -> None:
    """What looks like our outage may be a server that shut us out: the wait grows with it, up to the cap."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 6, known=True)
    waits = [watch.excused_wait_s(LATER_MS + hours * 3_600_000) for hours in (0, 1, 3, 6)]
    assert waits == [SETTINGS.retry_s, 900, 2700, SETTINGS.park_cap_s]


def test_a_site_that_sent_us_elsewhere_has_answered() -> None:
    """A redirect to a host that is gone is an answer of the site: the streak ends."""
    watch = NetworkWatch(SETTINGS)
    fail(watch, 6, known=True)
    hop = FetchRequest(RequestKind.PAGE, REDIRECTED, 0.1, 0)
    watch.note(answer("9.test", requests=[hop]), LATER_MS, has_answered=True)
    assert not watch.is_down(LATER_MS + 10_000)


def test_a_site_without_robots_txt_has_not_failed() -> None:
    """The summary names what failed; a robots.txt that is not there is none of that, a page that is gone is."""
    watch = NetworkWatch(SETTINGS)
    with capture_logs() as logged:
        for kind in (RequestKind.ROBOTS, RequestKind.PAGE):
            job = Job(kind, "a.test", "http://a.test/x", 5.0)
            gone = FetchResult(job=job, outcome=FetchOutcome.FAILED, started_ms=0, reason="http_404", status=404)
            watch.note(gone, LATER_MS, has_answered=True)
        watch.summarise(LATER_MS, last=True)
    assert [(event["event"], event["total"]) for event in logged] == [("fetches_failed", 1)]
