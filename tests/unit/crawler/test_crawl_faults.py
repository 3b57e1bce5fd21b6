"""Internal errors and rollbacks: the crawl of other sites continues."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from crawler.frontier.rows import site_key
from crawler.robots.rules import RobotsRules
from crawler.web.links import internal_links
from stream.log.contract import partition_of
from stream.log.errors import LogUnavailable
from tests.support.web.crawl_driver import Store, crawl, driving, hits_of, same_on_every_run, settings_for
from tests.support.web.loopback import Reply, Web, held, page

SITES = [f"site{n}.test" for n in range(3)]
ASKED = hits_of(*(f"http://{site}/hit/{n}" for n in range(3) for site in SITES))


@pytest.fixture
def loopback() -> Iterator[Web]:
    """Three sites whose pages link to another."""
    with Web() as served:
        for site in SITES:
            served.routes |= {f"{site}/hit/{n}": page("hit", "/link") for n in range(3)}
            served.routes[f"{site}/link"] = page("link")
        yield served


def test_an_answer_that_cannot_be_applied_ends_its_url(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """If processing an answer fails, its URL ends as failed, without partial changes; other sites continue."""
    calm = crawl(settings_for(loopback.target), ASKED)

    def breaking(body: bytes, encoding: str, url: str) -> Iterator[str]:
        if url == "http://site0.test/hit/1":
            yield "http://site0.test/half-done"
            raise UnicodeError("poison")
        yield from internal_links(body, encoding, url)

    monkeypatch.setattr("crawler.frontier.discovery.internal_links", breaking)
    pages = crawl(settings_for(loopback.target), ASKED)
    (broken,) = [page for page in pages if page.url == "http://site0.test/hit/1"]
    assert (broken.outcome, broken.reason, broken.body) == ("failed", "internal_error", b"")
    assert "/half-done" not in loopback.paths("site0.test")
    assert {hit.id for hit in ASKED} == {hit for page in pages for hit in page.hits}
    for site in SITES[1:]:
        assert same_on_every_run(pages, site) == same_on_every_run(calm, site)


def test_a_page_that_the_log_does_not_take_has_its_own_reason(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page whose record is above the cap of the log ends as failed, without a body; its site goes on."""
    loopback.routes["site0.test/hit/1"] = page(os.urandom(40_000).hex())
    monkeypatch.setattr("stream.log.contract.RECORD_CAP_BYTES", 20_000)
    pages = crawl(settings_for(loopback.target), ASKED)
    ended = {page.url: (page.outcome, page.reason, bool(page.body)) for page in pages}
    assert ended.pop("http://site0.test/hit/1") == ("failed", "record_too_large", False)
    assert set(ended.values()) == {("fetched", "", True)}


@pytest.mark.parametrize("error", [LogUnavailable("away"), sqlite3.DatabaseError("malformed"), OSError("disk")])
def test_faults_of_the_log_are_not_put_down_to_a_site(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the state cannot be read, the loop gets the error and no site is given up."""

    def breaking(*args: object, **fields: object) -> str:
        raise error

    monkeypatch.setattr("crawler.frontier.frontier.Frontier.claim", breaking)
    with driving(settings_for("127.0.0.1:1")) as driver, pytest.raises(type(error)):
        driver.round(ASKED)
    assert not driver.store.pages


def test_a_site_that_cannot_be_claimed_is_given_up(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the next request of a site cannot be chosen, its hits are refused; other sites continue."""
    allows = RobotsRules.allows

    def breaking(rules: RobotsRules, url: str) -> bool:
        if url == "http://site0.test/hit/2":
            raise RecursionError
        return allows(rules, url)

    monkeypatch.setattr(RobotsRules, "allows", breaking)
    pages = crawl(settings_for(loopback.target), ASKED)
    assert {hit.id for hit in ASKED} == {hit for page in pages for hit in page.hits}
    given_up = [page.url for page in pages if page.reason == "internal_error"]
    assert "http://site0.test/hit/2" in given_up and all(url.startswith("http://site0.test/") for url in given_up)
    assert {page.site for page in pages if page.outcome == "fetched"} == set(SITES)


def test_a_site_that_cannot_even_be_given_up_rests(loopback: Web) -> None:
    """A broken row stops the requests of its own site only."""
    store = Store()
    broken = store.states[partition_of("site0.test", 4)]
    broken.rows[site_key("site0.test")] = (b"\xc1", 1)
    with capture_logs() as logs, driving(settings_for(loopback.target), store) as driver:
        driver.round(hits_of("http://site1.test/hit/0", "http://site2.test/hit/0"))
        driver.run_until(lambda: store.of("site1.test") and store.of("site2.test"))
    value, due_at = broken.rows[site_key("site0.test")]
    assert value == b"\xc1" and (due_at or 0) > time.time() * 1000 + 3_000_000
    assert not loopback.paths("site0.test")
    assert [entry["rest_s"] for entry in logs if entry["event"] == "site_rests"] == [3600]


@pytest.mark.parametrize(("collected", "retry_after"), [(True, "30"), (False, "30"), (True, "0")])
def test_a_rollback_does_not_forget_a_wait(loopback: Web, collected: bool, retry_after: str) -> None:
    """A Retry-After and our own back-off hold even if the batch of the answer is rolled back."""
    may_answer = threading.Event()
    loopback.routes["busy.test/x"] = held(Reply(b"slow", 429, {"Retry-After": retry_after}), may_answer)
    started = time.time()
    with driving(settings_for(loopback.target, delay_s=0.02, retry_s=30.0)) as driver:
        driver.round(hits_of("http://busy.test/x"))
        driver.run_until(lambda: "/x" in loopback.paths("busy.test"))
        may_answer.set()
        driver.wait_for_result()  # a rollback cancels a request without an answer
        if not collected:
            driver.stage.lost(range(4))
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            driver.round(commit=time.monotonic() > until - 0.3)
            time.sleep(0.005)
    assert loopback.paths("busy.test").count("/x") == 1
    due = driver.store.states[partition_of("busy.test", 4)].next_due()
    assert due is not None and due / 1000 > started + 29


def test_no_request_outlives_its_claim(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of a rolled-back batch are never requested; requests of a lost partition are cancelled."""
    submitted: list[int] = []
    cancelled: list[int] = []
    with driving(settings_for(loopback.target)) as driver:
        monkeypatch.setattr(driver.stage._thread, "submit", submitted.extend)
        monkeypatch.setattr(driver.stage._thread, "cancel", cancelled.extend)
        driver.round(ASKED, commit=False)
        driver.stage.committed()
        assert submitted == cancelled == []
        driver.round(ASKED)
        assert len(submitted) == len(SITES) and cancelled == []
        driver.stage.lost(range(4))
        assert sorted(cancelled) == sorted(submitted)


def test_waits_are_counted_with_their_batch(loopback: Web) -> None:
    """The wait of a claim counts when its batch is committed, and not after a rollback."""
    with driving(settings_for(loopback.target)) as driver:
        for commit in (False, True):
            driver.round(hits_of("http://site0.test/hit/0"), commit=commit)
            waits = driver.metrics.registry.get_sample_value("farmwatch_frontier_wait_seconds_count")
            assert (waits or 0) == commit
