"""Reports on a frontier, from its committed rows."""

from __future__ import annotations

import tracemalloc

import pytest

from crawler.errors import OldFrontier
from crawler.frontier.report import FrontierReport, lines_of, queued_pages, report_on, site_report, why_no_page
from crawler.frontier.rows import TOTALS_KEY, SiteRow, Totals, pack
from crawler.frontier.statuses import Status
from crawler.settings import CrawlSettings
from crawler.stages.dry_run import DryRun
from farmwatch.commands.crawl.frontier import site_in_words
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import hits_of
from tests.support.web.frontier_site import Site, begun, fail, status, with_hits

FORBIDDING = b"User-agent: *\nDisallow: /forbidden\n"


def report_of(site: Site, limit: int | None = 10) -> FrontierReport:
    """The report of one partition, now."""
    return report_on(lines_of(site.committed, site.settings, site.now), site.now, limit)


def small_world() -> Site:
    """A resting site with a re-visit, a parked one, a stopped one, and two of one domain that wait."""
    settings = {"refetch_fetched_s": 3600.0, "use_sitemaps": False, "crawl_delay_cap_s": 100.0}
    site = begun("1", "2", "forbidden", robots=FORBIDDING, **settings)
    site.step()
    site.step(outcome=fail()["outcome"], reason="http_404", status=404)
    site.now += 10_000
    assert site.jobs() == []  # the third is refused on the way
    site.hits(*hits_of("http://parked.test/"))
    site.step(**status(503, retry_after_s=1800.0))
    site.hits(*hits_of("http://slow.test/"))
    site.step(body=b"User-agent: *\nCrawl-delay: 900\n")
    site.jobs()
    site.hits(*hits_of("http://x.farm.co.uk/", "http://y.farm.co.uk/", "http://y.farm.co.uk/2"))
    site.now += 7000
    return site


def test_the_sums_are_those_of_the_rows() -> None:
    """Sites by state, queued URLs, pages, parks and stops by reason: each is counted once."""
    report = report_of(small_world())
    assert report.sites == {"active": 2, "parked": 1, "resting": 1, "stopped": 1}
    assert report.queued == 4
    assert (report.due, report.fetched) == (2, 1)
    assert (report.parked_reasons, report.stopped_reasons) == ({"robots.txt:http_503": 1}, {"crawl_delay": 1})


def test_the_lists_say_who_waits_for_what() -> None:
    """The lists show the oldest due site, the parked site with end and reason, and the next re-visit."""
    site = small_world()
    report = report_of(site)
    assert [(line.site, site.now - line.due_at) for line in report.oldest_due] == [
        ("x.farm.co.uk", 7000),
        ("y.farm.co.uk", 7000),
    ]
    (parked,) = report.parked_sites
    assert (parked.site, parked.parked_why) == ("parked.test", "robots.txt:http_503")
    assert parked.parked_until > site.now + 1_700_000
    (stopped,) = report.stopped_sites
    assert (stopped.site, stopped.stopped_why, stopped.queued) == ("slow.test", "crawl_delay", 0)
    (revisit,) = report.revisits
    assert (revisit.site, revisit.fetched) == ("a.test", 1) and revisit.revisit_at > site.now


def test_one_site_is_told_with_its_urls_in_order() -> None:
    """The report of one site lists queued URLs in order, then re-visits, then the rest with the reason."""
    site = small_world()
    site.hits(*hits_of("http://a.test/new"))
    report = site_report(site.committed, site.settings, "a.test", site.now, None)
    assert report is not None
    assert [(url.url.removeprefix("http://a.test"), url.status, url.waits_in, url.reason) for url in report.urls] == [
        ("/new", "discovered", "hits", ""),
        ("/1", "fetched", "", ""),
        ("/2", "error", "", "http_404"),
        ("/forbidden", "refused", "", "robots"),
    ]
    assert report.urls[1].due_at > site.now and report.robots_bytes > 0
    assert (report.line.state, report.urls_known) == ("active", 4)
    short = site_report(site.committed, site.settings, "a.test", site.now, 1)
    assert short is not None and (len(short.urls), short.urls_known) == (1, 4)
    assert site_report(site.committed, site.settings, "none.test", site.now, None) is None


@pytest.mark.parametrize(
    ("robots", "failure", "why"),
    [
        (b"User-agent: *\nDisallow: /\n", {}, "refused by robots.txt"),
        (b"", fail("dns_no_name"), "host unreachable"),
        (b"", fail("proxy_refused"), "host unreachable"),
        (b"", fail("http_404", status=404, unreachable=False, transient=False), "pages gone or forbidden"),
        (b"", {"outcome": FetchOutcome.REFUSED, "reason": "content_type"}, "no HTML"),
        (b"", {"outcome": FetchOutcome.REFUSED, "reason": "opt_out"}, "opted out of mining"),
    ],
)
def test_why_a_site_has_no_page_is_said_in_a_few_words(robots: bytes, failure: dict[str, object], why: str) -> None:
    """A site without a page has a reason: that of its stop, or the commonest one of its URLs; at first it waits."""
    site = Site(tries=1, use_sitemaps=False)
    site.hits(*hits_of("http://a.test/1", "http://a.test/2"))
    assert why_no_page(site.committed, site.settings, "a.test", site.now) == "not yet crawled"
    assert why_no_page(site.committed, site.settings, "b.test", site.now) == "not yet crawled"
    site.robots(robots)
    site.walk(**failure)
    assert why_no_page(site.committed, site.settings, "a.test", site.now) == why


def test_rows_of_another_version_are_not_guessed_at() -> None:
    """Reports, audit and dry run refuse a frontier of another format and name the format."""
    site = with_hits("1")
    site.committed.rows[TOTALS_KEY] = (pack(Totals(format=1)), None)
    with pytest.raises(OldFrontier, match="another version"):
        report_of(site)
    with pytest.raises(OldFrontier):
        site_report(site.committed, site.settings, "a.test", site.now, None)
    with pytest.raises(OldFrontier, match="partition 0"):
        list(queued_pages(site.store, 0))  # type: ignore[arg-type]
    with pytest.raises(OldFrontier):
        DryRun(site.settings, site.now, None).add(site.committed)


class _Large:
    """A frontier of 20,000 sites with a queued URL each, generated on reading."""

    SITES = 20_000

    def get(self, key: bytes) -> bytes | None:
        """As `StateReader.get`."""
        return None

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        """As `StateReader.scan`."""
        assert after is not None and limit == 1 and not prefix
        number = 0 if after == TOTALS_KEY else 1 + _number(after)
        return [_site_row(number)] if number < self.SITES else []


def _number(key: bytes) -> int:
    return int(key[1:7])


_NAME = b"h000000.d.example"
_URLS = [1] + [0] * (len(Status) - 1)
_WAITS = pack(SiteRow(_NAME.decode(), "http://x", next_start=5, queued=1, wanted=1, urls=_URLS))
_STOPPED = pack(SiteRow(_NAME.decode(), "http://x", queued=1, wanted=1, stopped="unreachable", urls=_URLS))


def _site_row(number: int) -> tuple[bytes, bytes]:
    name = b"h%06d" % number
    return b"%s.d.example\0" % name, (_WAITS if number % 10 else _STOPPED).replace(b"h000000", name)


@pytest.mark.slow
def test_a_large_frontier_is_reported_in_bounded_memory() -> None:
    """20,000 sites are read one by one, in memory that does not grow with them."""
    tracemalloc.start()
    try:
        lines = lines_of(_Large(), CrawlSettings(), 10_000_000)  # type: ignore[arg-type]  # it is only scanned
        report = report_on(lines, 10_000_000, 10)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (sum(report.sites.values()), report.stopped_reasons) == (20_000, {"unreachable": 2_000})
    assert report.queued == 20_000
    assert [line.site for line in report.oldest_due[:2]] == ["h000001.d.example", "h000002.d.example"]
    assert peak_bytes < 2_500_000


@pytest.mark.parametrize(
    "failure",
    [
        *(fail(reason) for reason in ("dns", "dns_no_name", "timeout", "connection")),
        fail("tls_expired", transient=False),
        status(503),
        status(404),
        {"outcome": FetchOutcome.REFUSED, "reason": "content_type"},
    ],
)
@pytest.mark.parametrize("tries", [1, 3])
def test_a_url_has_the_reason_of_its_page_record(failure: dict[str, object], tries: int) -> None:
    """For each outcome of a URL, `frontier --site` shows the reason of its newest record."""
    site = begun("1", "2", "forbidden", robots=FORBIDDING, tries=tries, use_sitemaps=False)
    site.walk(**failure)
    report = site_report(site.committed, site.settings, "a.test", site.now, None)
    assert report is not None
    newest = {page.url: page.reason for page in site.pages}
    assert len(newest) == 3 and {line.url: line.reason for line in report.urls} == newest
    assert failure["reason"] in newest.values()


def test_a_list_is_no_longer_than_asked_for() -> None:
    """A limit bounds each list, and None shows all; the sums always cover all sites."""
    site = Site()
    for number in range(30):
        site.hits(*hits_of(f"http://s{number:02}.test/"))
    site.now += 1
    assert [line.site for line in report_of(site, 2).oldest_due] == ["s00.test", "s01.test"]
    assert len(report_of(site, None).oldest_due) == 30
    assert report_of(site, 2).sites["active"] == 30


@pytest.mark.parametrize(
    ("ask_ads_txt", "robots", "body", "told"),
    [
        (True, b"", b"googletagservices.com/tag/js/gpt.js", "asked for"),
        (
            True,
            b"User-agent: *\nDisallow: /ads.txt\n",
            b"googletagservices.com/tag/js/gpt.js",
            "forbidden by robots.txt",
        ),
        (True, b"", b"<p>none</p>", "no page with ads yet"),
        (False, b"", b"googletagservices.com/tag/js/gpt.js", ""),
    ],
)
def test_what_became_of_an_ads_txt_is_told(ask_ads_txt: bool, robots: bytes, body: bytes, told: str) -> None:
    """One that robots.txt forbids is told from one that was asked for; nothing is told of what is off."""
    site = begun("1", robots=robots, use_sitemaps=False, ask_ads_txt=ask_ads_txt)
    site.walk(body=body)
    report = site_report(site.committed, site.settings, "a.test", site.now, 10)
    assert report is not None and report.ads_txt == told
    assert ("ads.txt: " in "\n".join(site_in_words(report, site.now))) == ask_ads_txt
