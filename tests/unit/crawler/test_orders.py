"""CRAWL follows the operator's orders, and pauses while a disk is short of room."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from crawler.frontier.rows import SiteRow, site_key, unpack
from crawler.stages.crawl import CrawlStage
from crawler.stages.orders import DISK, LOOK_S, OPERATOR, CrawlOrders
from stream.log.contract import CleanupPolicy, Topic, partition_of
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import beat, is_heartbeat
from stream.schema.orders import PAUSE, Order, OrderChange, Orders, exclusion, output_of
from stream.schema.records import Decision
from stream.schema.topics import CONTROL, HITS, PAGES, all_topics
from tests.support.logs.loops import count, cycle, loop_on
from tests.support.logs.stage_work import put
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import Driver, Store, driving, hits_of, settings_for
from tests.support.web.loopback import Web, page, redirect

MARK = 1000


class Desk:
    """The operator's side: orders in a log, the free bytes of the disk, and a clock that each look advances."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
        self.free: float | None = 10 * MARK
        self.now_s = 0.0

    def order(self, name: str, *, on: bool) -> None:
        before = {PAUSE: Orders(self.log).pause}.get(name, Order())
        self.log.append([output_of(name, before.changed(OrderChange(on, 1_700_000_000_000, "ann@desk", "her reason")))])

    def orders(self) -> CrawlOrders:
        return CrawlOrders(self.log, {"log": Path("/")}, MARK, free=lambda _: self.free, monotonic=self._tick)

    def _tick(self) -> float:
        self.now_s += LOOK_S
        return self.now_s


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Orders on a log of its own."""
    made = Desk()
    yield made
    made.log.close()


def rounds(driver: Driver, while_: Callable[[], bool] = lambda: True, for_s: float = 0.3) -> None:
    """Rounds for a while: time in which a crawl that goes on would make several requests."""
    until = time.monotonic() + for_s
    while while_() and time.monotonic() < until:
        driver.round()
        time.sleep(0.005)


def gauge(driver: Driver, reason: str) -> float | None:
    return driver.metrics.registry.get_sample_value("farmwatch_crawl_paused", {"reason": reason})


def test_a_pause_stops_requests_and_ends_where_it_began(loopback: Web, desk: Desk) -> None:
    """While paused no request starts, the one under way finishes, hits are still read; afterwards nothing is lost."""
    loopback.routes |= {f"a.test/{n}": page(f"{n}") for n in range(6)}
    urls = [f"http://a.test/{n}" for n in range(6)]
    with driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        driver.round(hits_of(*urls[:3]))
        driver.run_until(lambda: driver.store.pages)
        desk.order(PAUSE, on=True)
        driver.run_until(lambda: driver.stage.paused and not driver.stage.in_flight)
        asked, deferred = len(loopback.seen), count(driver.metrics, "fetch_deferred_total", kind="page")
        driver.round(hits_of(*urls[3:]))
        rounds(driver)
        assert len(loopback.seen) == asked
        assert count(driver.metrics, "fetch_deferred_total", kind="page") == deferred  # no site is claimed in vain
        assert (gauge(driver, OPERATOR), gauge(driver, DISK)) == (1, 0)
        assert driver.stage.paused == {OPERATOR: "by ann@desk since 2023-11-14 22:13:20Z: her reason"}
        desk.order(PAUSE, on=False)
        driver.run_until(lambda: driver.at_rest)
        assert gauge(driver, OPERATOR) == 0
    assert sorted(found.url for found in driver.store.pages) == urls
    assert [loopback.paths("a.test").count(f"/{n}") for n in range(6)] == [1] * 6


def test_a_pause_survives_a_restart(loopback: Web, desk: Desk) -> None:
    """A process that starts in a pause makes no request, and another one that starts after it does."""
    loopback.routes["a.test/x"] = page("x")
    store = Store()
    desk.order(PAUSE, on=True)
    with driving(settings_for(loopback.target), store, orders=desk.orders()) as driver:
        driver.round(hits_of("http://a.test/x"))
        rounds(driver)
        assert not loopback.seen
    desk.order(PAUSE, on=False)
    with driving(settings_for(loopback.target), store, orders=desk.orders()) as driver:
        driver.run_until(lambda: store.pages)


def test_heartbeats_and_health_go_on_in_a_pause(desk: Desk) -> None:
    """A paused CRAWL keeps its partitions, reads its input, passes heartbeats on, and is healthy."""
    desk.order(PAUSE, on=True)
    desk.log.create(all_topics(2, "e"))
    put(desk.log, HITS, *hits_of("http://a.test/x"))
    beat(desk.log, 2, 1)
    stage = CrawlStage(settings_for("127.0.0.1:1"), orders=desk.orders())
    loop = loop_on(desk.log, stage)

    def has_read_all() -> bool:
        cycle(loop, 1)
        return [offset or 0 for offset in desk.log.committed("group", HITS)] == desk.log.end(HITS)

    wait_until(has_read_all, "the input", every_s=0.0)
    assert loop.health().ok and loop.health().ready and stage.paused
    assert any(is_heartbeat(message) for p in range(2) for message in desk.log.read(PAGES, p))
    stage.close()


def test_a_request_that_waits_for_its_turn_does_not_start_in_a_pause(loopback: Web, desk: Desk) -> None:
    """A redirect's second request waits for the delay; a pause meanwhile puts it off without counting a failure."""
    loopback.routes |= {"a.test/from": redirect("/to"), "a.test/to": page("there")}
    with driving(settings_for(loopback.target, delay_s=0.4), orders=desk.orders()) as driver:
        driver.round(hits_of("http://a.test/from"))
        driver.run_until(lambda: "/from" in loopback.paths("a.test"))
        desk.order(PAUSE, on=True)
        rounds(driver, for_s=0.8)
        assert "/to" not in loopback.paths("a.test") and not driver.store.pages
        desk.order(PAUSE, on=False)
        (found,) = driver.run()
    assert (found.outcome, found.final_url) == ("fetched", "http://a.test/to")


def test_a_low_disk_pauses_and_ends_with_hysteresis(loopback: Web, desk: Desk) -> None:
    """Below the mark no request starts; just above it the pause holds; well above it the crawl resumes by itself."""
    loopback.routes["a.test/x"] = page("x")
    with capture_logs() as logs, driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        desk.free = MARK - 1
        driver.round(hits_of("http://a.test/x"))
        for free in (MARK - 1, MARK * 1.2):
            desk.free = free
            rounds(driver, for_s=0.1)
            assert not loopback.seen and gauge(driver, DISK) == 1
        desk.free = MARK * 1.3
        driver.run_until(lambda: driver.at_rest)
        assert [found.outcome for found in driver.store.pages] == ["fetched"] and gauge(driver, DISK) == 0
    events = [(each["event"], each["reason"]) for each in logs if each["event"].startswith("crawl_pause")]
    assert events == [("crawl_paused", DISK), ("crawl_pause_ended", DISK)]


def test_an_excluded_host_is_not_visited_again(loopback: Web, desk: Desk) -> None:
    """Its queued and later hits end as refused, with the reason; another site goes on."""
    for site in ("a.test", "b.test"):
        loopback.routes |= {f"{site}/{n}": page(f"{n}") for n in range(8)}
    hits = hits_of(*(f"http://{site}/{n}" for n in range(7) for site in ("a.test", "b.test")))
    with driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        driver.round(hits)
        driver.run_until(lambda: driver.store.of("a.test"))
        desk.order(exclusion("a.test"), on=True)
        driver.round()  # from its commit on no request to the site starts
        time.sleep(0.1)
        asked = len(loopback.paths("a.test"))
        driver.run()
        driver.run(hits_of("http://a.test/7"))
        assert len(loopback.paths("a.test")) == asked < 7
    ends = [(found.outcome, found.reason) for found in driver.store.of("a.test")]
    assert len(ends) == 8 and set(ends) == {("fetched", ""), ("refused", "excluded")}
    assert ends[-1] == ("refused", "excluded")
    assert {found.outcome for found in driver.store.of("b.test")} == {"fetched"}


def test_a_request_that_waits_for_its_turn_does_not_start_after_an_exclusion(loopback: Web, desk: Desk) -> None:
    """A redirect's second request waits for the delay; the site is excluded meanwhile, and is not asked again."""
    loopback.routes |= {"a.test/from": redirect("/to"), "a.test/to": page("there")}
    with driving(settings_for(loopback.target, delay_s=0.4), orders=desk.orders()) as driver:
        driver.round(hits_of("http://a.test/from"))
        driver.run_until(lambda: "/from" in loopback.paths("a.test"))
        desk.order(exclusion("a.test"), on=True)
        (found,) = driver.run()
    assert "/to" not in loopback.paths("a.test")
    assert (found.outcome, found.reason) == ("refused", "excluded")


def test_a_request_under_way_at_an_exclusion_publishes_nothing(loopback: Web, desk: Desk) -> None:
    """The answer of a host that was excluded meanwhile leaves a refusal without body, address, status or links."""
    arrived: list[str] = []

    async def slow(request: web.Request) -> web.StreamResponse:
        import asyncio

        arrived.append(request.path)
        await asyncio.sleep(0.3)
        return web.Response(body=page("secret", "/link").body, content_type="text/html")

    loopback.routes["a.test/x"] = slow
    with driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        driver.round(hits_of("http://a.test/x"))
        driver.run_until(lambda: arrived)
        desk.order(exclusion("a.test"), on=True)
        (found,) = driver.run()
    assert (found.outcome, found.reason, found.body, found.status, found.address) == ("refused", "excluded", b"", 0, "")
    assert loopback.paths("a.test")[-1] == "/x"


def test_no_redirect_leads_to_an_excluded_host(loopback: Web, desk: Desk) -> None:
    """Neither a page nor a robots.txt that redirects to an excluded host is followed there."""
    loopback.routes |= {
        "a.test/x": redirect("http://www.a.test/x"),
        "www.a.test/x": page("x"),
        "b.test/robots.txt": redirect("http://www.a.test/robots.txt"),
    }
    desk.order(exclusion("www.a.test"), on=True)
    with driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        driver.run(hits_of("http://a.test/x", "http://b.test/x"))
    assert not loopback.paths("www.a.test")
    assert [(found.outcome, found.reason) for found in driver.store.of("a.test")] == [("refused", "excluded")]
    assert "/x" not in loopback.paths("b.test")


def test_a_removed_exclusion_opens_the_site_at_its_next_hit(loopback: Web, desk: Desk) -> None:
    """After --remove a new hit visits the site again, and a URL that was refused for it is visited with it."""
    loopback.routes |= {"a.test/x": page("x"), "a.test/y": page("y")}
    desk.order(exclusion("a.test"), on=True)
    with driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        driver.run(hits_of("http://a.test/x"))
        assert not loopback.seen
        desk.order(exclusion("a.test"), on=False)
        driver.round()
        pages = driver.run(hits_of("http://a.test/y", "http://a.test/x"))
        assert [found.outcome for found in pages] == ["refused", "fetched", "fetched"]


def test_an_exclusion_stands_above_an_earlier_stop(desk: Desk) -> None:
    """A site that was unreachable is excluded all the same: a day later a hit does not open it again."""
    with driving(settings_for("127.0.0.1:1", tries=1), orders=desk.orders()) as driver:
        driver.run(hits_of("http://a.test/x"))
        desk.order(exclusion("a.test"), on=True)
        driver.round()
        driver.round(hits_of("http://a.test/y"), later_ms=2 * 86_400_000)
        state = driver.store.states[partition_of("a.test", 4)]
        assert unpack(SiteRow, state.get(site_key("a.test")) or b"").stopped == "excluded"


def test_a_new_term_does_not_open_an_excluded_site(loopback: Web, desk: Desk) -> None:
    """Also one that rests and was not looked at since: no request, and no refusal of URLs that it has pages of."""
    loopback.routes["a.test/x"] = page("x")
    with driving(settings_for(loopback.target), orders=desk.orders()) as driver:
        pages, asked = list(driver.run(hits_of("http://a.test/x"))), len(loopback.seen)
        desk.order(exclusion("a.test"), on=True)
        driver.round()
        driver.round([Decision(id="a.test", site="a.test", stop=False, reason="term", term=1)])
        assert driver.run() == pages and len(loopback.seen) == asked


def test_a_log_that_is_away_is_not_read_as_no_orders(desk: Desk) -> None:
    """If the orders cannot be read the batch is rolled back and tried again."""
    orders = desk.orders()

    def away(topic: str) -> list[int]:
        raise LogUnavailable("away")

    desk.log.end = away  # type: ignore[method-assign]
    with driving(settings_for("127.0.0.1:1"), orders=orders) as driver, pytest.raises(LogUnavailable):
        driver.round()


def test_a_disk_that_cannot_be_asked_pauses_nothing(desk: Desk) -> None:
    """A folder that is not there yet has no free bytes to compare; a mark of 0 never pauses."""
    desk.free = None
    assert not desk.orders().paused
    desk.free = 0
    assert not CrawlOrders(desk.log, {"log": Path("/")}, 0, free=lambda _: 0.0).paused
