"""Requests in metrics: status and reason for operators, and no label that a server can choose."""

from __future__ import annotations

from collections import Counter

import pytest

from crawler.fetch.jobs import ABSENT, REDIRECTED, RequestKind
from crawler.stages.crawl_metrics import STATUSES, WORDS, expected, reason_label
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import driving, hits_of, settings_for
from tests.support.web.loopback import Handler, Reply, Web, page, raw, redirect
from tests.unit.crawler.test_reasons import used


def counted(loopback: Web, url: str) -> Counter[tuple[str, ...]]:
    """Crawl and count the requests by their labels: kind, outcome, status, reason."""
    few = {"tries": 1, "robots_tries": 1, "redirects": 1, "use_sitemaps": False, "use_links": False}
    with driving(settings_for(loopback.target, **few)) as driver:
        driver.run(hits_of(url))
    samples = (sample for family in driver.metrics.registry.collect() for sample in family.samples)
    found: Counter[tuple[str, ...]] = Counter()
    for sample in samples:
        if sample.name == "farmwatch_fetch_requests_total" and sample.value:
            labels = tuple(sample.labels[name] for name in ("kind", "outcome", "status", "reason"))
            found[labels] += int(sample.value)
    return found


@pytest.mark.parametrize(
    ("kind", "reply", "outcome", "status", "reason"),
    [
        ("page", page("good"), "fetched", "2xx", ""),
        ("page", Reply(status=429), "failed", "429", "status"),
        ("page", Reply(status=503), "failed", "503", "status"),
        ("page", Reply(status=500), "failed", "5xx", "status"),
        ("page", Reply(status=403), "failed", "403", "status"),
        ("page", Reply(status=404), "failed", "404", "status"),
        ("page", Reply(status=410), "failed", "4xx", "status"),
        ("page", redirect("http://elsewhere.test/"), "redirected", "3xx", "redirect_offsite"),
        ("page", redirect("/forbidden"), "redirected", "3xx", "robots"),
        ("page", redirect("http://["), "redirected", "3xx", "bad_redirect"),
        ("page", Reply(b"%PDF-1.7", headers={"Content-Type": "application/pdf"}), "refused", "2xx", "content_type"),
        ("page", raw(b""), "failed", "none", "connection"),
        ("page", raw(b"HTTP/1.1 abc def\r\n\r\n"), "failed", "none", "bad_response"),
        ("page", raw(b'HTTP/1.1 799 a"b{c}\\n\r\nContent-Length: 0\r\n\r\n'), "failed", "other", "status"),
        ("page", raw(b"HTTP/1.1 999 \r\nContent-Length: 0\r\n\r\n"), "failed", "other", "status"),
        ("robots", Reply(b""), "fetched", "2xx", ""),
        ("robots", Reply(status=404), ABSENT, "404", ""),  # a site without the file has not failed
        ("robots", Reply(status=410), ABSENT, "4xx", ""),
        ("robots", Reply(status=403), "failed", "403", "status"),
        ("robots", Reply(status=503), "failed", "503", "status"),
        ("robots", raw(b""), "failed", "none", "connection"),
    ],
)
def test_a_request_is_counted_by_status_and_reason(
    loopback: Web, kind: str, reply: Reply | Handler, outcome: str, status: str, reason: str
) -> None:
    """The status, and the reason of a refusal or failure, are labels of the request."""
    robots = Reply(b"User-agent: *\nDisallow: /forbidden\n")
    loopback.routes |= {"a.test/robots.txt": robots, "a.test/x": page("good")}
    loopback.routes["a.test/x" if kind == "page" else "a.test/robots.txt"] = reply
    found = counted(loopback, "http://a.test/x")
    assert {labels for labels in found if labels[0] == kind} == {(kind, outcome, status, reason)}


def test_reasons_are_of_a_fixed_set() -> None:
    """Each reason of the crawler has its own label, except HTTP statuses; all other texts share one."""
    words = {word for word in used() if not word.startswith("http_")}
    assert {reason_label(word) for word in words} == words
    assert {reason_label(f"http_{status}") for status in range(1000)} == {"status"}
    assert reason_label("") == "" and reason_label('x"} 1\n') == reason_label("Timeout") == "other"
    assert len(WORDS) <= 50


def test_series_are_bounded() -> None:
    """There are six kinds, at most eight outcomes, eleven statuses and 45 reasons; expected series begin at 0."""
    outcomes = {*(outcome.value for outcome in FetchOutcome), REDIRECTED, ABSENT} - {FetchOutcome.DEFERRED.value}
    for kind in RequestKind:
        assert {outcome for outcome, _, _ in expected(kind)} <= outcomes
        assert {status for _, status, _ in expected(kind)} <= set(STATUSES)
        assert {reason for _, _, reason in expected(kind)} <= set(WORDS)
        assert len(set(expected(kind))) == len(list(expected(kind))) <= 34
