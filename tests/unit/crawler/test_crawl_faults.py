"""What a hostile site, a fault of this program, and a rollback must not do to the crawl of the others."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Iterator

import pytest

from crawler.crawl_stage import CrawlStage, frontier_left
from crawler.frontier.rows import site_key
from crawler.robots.rules import RobotsRules
from crawler.settings import CrawlSettings
from crawler.web.links import internal_links
from stream.log.contract import Message, Output, partition_of
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Page, decode, encode
from stream.schema.topics import DEAD_LETTERS, HITS, PAGES, all_topics
from tests.support.crawl_driver import Driver, Store, crawl, hits_of, settings_for
from tests.support.loopback import Reply, Web, page, raw
from tests.support.waiting import wait_until

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


def told(pages: list[Page], site: str) -> list[tuple[object, ...]]:
    """What is the same on every run of the pages of a site, in order."""
    return [(p.id, p.url, p.outcome, p.reason, p.status, p.body, p.found_by, p.hits) for p in pages if p.site == site]


def looped(settings: CrawlSettings, *urls: str) -> tuple[list[Page], list[Message]]:
    """Crawl hits in a loop on a log to the end; pages and their messages."""
    log = MemoryLog()
    log.create(all_topics(2, "epoch"))
    log.append([Output(HITS, partition_of(hit.site, 2), hit.site.encode(), encode(hit)) for hit in hits_of(*urls)])
    metrics = Metrics()
    stage = CrawlStage(settings, metrics)
    loop = StageLoop(stage, log.join("crawl", list(stage.inputs), member="m", store=stage.store), metrics=metrics)
    stop = threading.Event()
    until = time.monotonic() + 20
    try:
        while (left := frontier_left(log, 2)).active or left.sites < len({hit.site for hit in hits_of(*urls)}):
            assert time.monotonic() < until, "the crawl did not end"
            loop.cycle(stop)
    finally:
        stage.close()
    assert not [message for p in range(2) for message in log.read(DEAD_LETTERS, p)]
    messages = [message for p in range(2) for message in log.read(PAGES, p)]
    return [decode(Page, message.value or b"") for message in messages], messages


HOSTILE = [
    b"Server: caf\xe9", b"Content-Type: text/html\xe9", b"ETag: \xff\xfe", b"Content-Type: text/html; charset=idna",
    b"Content-Type: text/html; charset=punycode", b"Content-Type: text/html; charset=\xe9", b"X-Robots-Tag: \x80noai",
    b"Last-Modified: \xed\xa0\x80", b"Content-Encoding: \xe9", b"Retry-After: \xe9", b"Location: \xe9",
]  # fmt: skip


def test_no_header_of_one_site_stops_the_crawl(loopback: Web) -> None:
    """Headers of raw bytes and charsets that are none end in a record each, and the other sites are crawled."""
    for n, header in enumerate(HOSTILE):
        kind = b"" if b"Content-Type" in header else b"Content-Type: text/html\r\n"
        head = b"HTTP/1.1 200 OK\r\n" + header + b"\r\n" + kind + b"Connection: close\r\n\r\n"
        loopback.routes[f"evil{n}.test/x"] = raw(head + b'<html><a href="/y">y</a>')
    hits = ["http://site0.test/hit/0", *(f"http://evil{n}.test/x" for n in range(len(HOSTILE)))]
    pages, _ = looped(settings_for(loopback.target), *hits)
    assert {page.url for page in pages} >= set(hits)
    ends = {page.url: page.reason for page in pages}
    refused = HOSTILE.index(b"Content-Encoding: \xe9"), HOSTILE.index(b"Content-Type: text/html\xe9")
    assert {url for url in hits if ends[url]} == {f"http://evil{n}.test/x" for n in refused}


def test_page_records_carry_a_trace(loopback: Web) -> None:
    """Each page record has a traceparent of W3C Trace Context, whose trace is the fetch, and its run."""
    pages, messages = looped(settings_for(loopback.target), "http://site0.test/hit/0", "http://site1.test/gone")
    assert len(pages) >= 2
    for page_, message in zip(pages, messages, strict=True):
        assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", message.headers["traceparent"])
        assert message.headers["traceparent"].split("-")[1:3] == [page_.id, page_.page_id[:16]]
        assert "run" not in message.headers  # a page belongs to no run


def test_an_answer_that_cannot_be_applied_ends_its_url(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this program fails at an answer its URL ends as failed, nothing half done stays, and all others go on."""
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
        assert told(pages, site) == told(calm, site)


@pytest.mark.parametrize("error", [LogUnavailable("away"), sqlite3.DatabaseError("malformed"), OSError("disk")])
def test_faults_of_the_log_are_not_put_down_to_a_site(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the state cannot be read no site is given up: the loop hears of it, and nothing is staged."""

    def breaking(*args: object) -> str:
        raise error

    monkeypatch.setattr("crawler.frontier.frontier.Frontier.claim", breaking)
    driver = Driver(settings_for("127.0.0.1:1"), Store())
    try:
        with pytest.raises(type(error)):
            driver.round(ASKED)
    finally:
        driver.close()
    assert not driver.store.pages


def test_a_site_that_cannot_be_claimed_is_given_up(loopback: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this program fails at choosing the next request of a site, its hits end as refused; all others go on."""
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
    """A row that is no row keeps its site from being asked, and nothing else."""
    store = Store()
    broken = store.states[partition_of("site0.test", 4)]
    broken.rows[site_key("site0.test")] = (b"\xc1", 1)
    driver = Driver(settings_for(loopback.target), store)
    try:
        driver.round(hits_of("http://site1.test/hit/0", "http://site2.test/hit/0"))
        driver.run_until(lambda: store.of("site1.test") and store.of("site2.test"))
    finally:
        driver.close()
    value, due_at = broken.rows[site_key("site0.test")]
    assert value == b"\xc1" and (due_at or 0) > time.time() * 1000 + 3_000_000
    assert not loopback.paths("site0.test")


@pytest.mark.parametrize("collected", [True, False])
def test_a_rollback_does_not_forget_a_retry_after(loopback: Web, collected: bool) -> None:
    """An answer whose batch is rolled back, or that nobody collects, still keeps its site from being asked too soon."""
    loopback.routes["busy.test/x"] = Reply(b"slow", 429, {"Retry-After": "30"})
    driver = Driver(settings_for(loopback.target, delay_s=0.02), Store())
    started = time.time()
    try:
        driver.round(hits_of("http://busy.test/x"))
        driver.run_until(lambda: "/x" in loopback.paths("busy.test"))
        if not collected:
            results = driver.stage._thread._done
            wait_until(lambda: not results.empty(), "a result that is not collected", 10)
            driver.stage.lost(range(4))
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            driver.round(commit=time.monotonic() > until - 0.3)
            time.sleep(0.005)
    finally:
        driver.close()
    assert loopback.paths("busy.test").count("/x") == 1
    due = driver.store.states[partition_of("busy.test", 4)].next_due()
    assert due is not None and due / 1000 > started + 29


def test_waits_are_counted_with_their_batch(loopback: Web) -> None:
    """The wait of a claim shows when its batch is committed, and not for one that is rolled back."""
    driver = Driver(settings_for(loopback.target), Store())

    def waits() -> float:
        return driver.metrics.registry.get_sample_value("farmwatch_frontier_wait_seconds_count") or 0.0

    try:
        driver.round(hits_of("http://site0.test/hit/0"), commit=False)
        assert waits() == 0
        driver.round(hits_of("http://site0.test/hit/0"))
        assert waits() == 1
    finally:
        driver.close()
