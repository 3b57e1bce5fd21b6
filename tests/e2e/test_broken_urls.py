"""CRAWL with its inspector on a site of which some URLs are broken."""

from __future__ import annotations

from crawler.frontier.rows import SiteRow, site_key, unpack
from farmwatch.daemon import page_inspector
from tests.support.web.crawl_driver import Store, driving, hits_of, settings_for
from tests.support.web.loopback import Reply, Web

BROKEN = Reply(b"<html><title>500 Internal Server Error</title><h1>Internal Server Error</h1></html>", 500)


def test_two_broken_urls_do_not_stop_their_site() -> None:
    """The first two hits are answered by 500, each as often as it is asked for; the other four are fetched."""
    story = b"<!doctype html><title>Boat %d</title><p>The boat %d was moved to higher ground before the rain.</p>"
    with Web() as loopback:
        loopback.routes |= {f"a.test/{number}": Reply(story % (number, number)) for number in range(2, 6)}
        loopback.routes |= {f"a.test/{number}": BROKEN for number in range(2)}
        hits = hits_of(*(f"http://a.test/{number}" for number in range(6)))
        with driving(settings_for(loopback.target), Store(partitions=1), inspector=page_inspector) as driver:
            pages = {page.url[-1]: (page.outcome, page.reason) for page in driver.run(hits)}
            value = driver.store.states[0].get(site_key("a.test"))
    assert pages == dict.fromkeys("01", ("failed", "http_500")) | dict.fromkeys("2345", ("fetched", ""))
    assert value is not None and unpack(SiteRow, value).stopped == ""
