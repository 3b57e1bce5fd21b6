"""The frontier alone: the next job and the effect of an answer, with a simulated clock."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from crawler.errors import UnusableUrl
from crawler.fetch.jobs import RequestKind
from crawler.frontier.report import site_report
from crawler.frontier.rows import Stop
from crawler.robots.rules import RobotsRules
from crawler.web.sitemaps import SitemapFile
from scoring.sites.settings import TallySettings
from stream.schema.vocabulary import FetchOutcome
from stream.text.times import DAY_MS
from tests.support.web.crawl_driver import hits_of
from tests.support.web.frontier_site import Site, begun, fail, hits_at, status, with_hits


def test_robots_first_then_hits_in_order_then_sitemap() -> None:
    """The order is robots.txt, hits in their order, then the sitemap; a repeated hit is known."""
    site = Site()
    assert site.hits(*hits_at("3", "1", "3#again")) == ["queued", "queued", "known"]
    assert site.walk() == ["/robots.txt", "/3", "/1", "/sitemap.xml"]
    assert [page.url for page in site.pages] == ["http://a.test/3", "http://a.test/1"]
    assert len(site.pages[0].hits) == 2
    assert site.hits(*hits_at("1")) == ["known"] and site.committed.next_due() is None


def test_the_delay_is_kept_from_start_to_start() -> None:
    """A request is due one delay after the start of the last one; slow answers and Crawl-delay extend the delay."""
    site = begun("1", "2", "3")
    assert site.committed.next_due() == site.now + 5000
    site.now += 4999
    assert site.jobs() == []
    site.step(duration_ms=10_000)
    assert site.committed.next_due() == site.now + 20_000
    site.step(duration_ms=600_000)
    assert site.committed.next_due() == site.now + 60_000


def test_crawl_delay_is_obeyed_up_to_its_cap() -> None:
    """A Crawl-delay becomes the site's delay; one beyond the cap stops the site with a reason."""
    site = begun("1", robots=b"User-agent: *\nCrawl-delay: 30")
    assert site.committed.next_due() == site.now + 30_000
    site = begun("1", robots=b"User-agent: *\nCrawl-delay: 86401")
    assert site.walk() == [] and [page.reason for page in site.pages] == ["crawl_delay"]


@pytest.mark.parametrize(("asked_s", "days"), [(600, 1), (28_800, 28), (86_400, TallySettings().term_days)])
def test_a_site_of_the_slow_lane_is_read_within_its_term(asked_s: int, days: float) -> None:
    """Up to a day, a Crawl-delay is kept between all requests, and the page budget is read in the time foreseen."""
    robots = b"User-agent: *\nCrawl-delay: %d" % asked_s
    site = begun(*map(str, range(40)), robots=robots, page_budget=40, ask_tdmrep=True)
    began_ms = site.now
    foreseen = site_report(site.committed, site.settings, "a.test", site.now, 0)
    starts, kinds = [began_ms], Counter[RequestKind]()
    while not site.row.stopped:
        kinds[site.step(body=robots).kind] += 1
        starts.append(site.now)
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 1000 * asked_s
    assert site.row.stopped == "budget" and kinds[RequestKind.PAGE] == 40
    assert kinds[RequestKind.ROBOTS] <= sum(kinds.values()) // 4 + 1
    assert foreseen is not None and site.now <= foreseen.line.read_by <= began_ms + days * DAY_MS
    assert site.now >= began_ms + (foreseen.line.read_by - began_ms) / 1.2


@pytest.mark.parametrize(
    "answer",
    [
        fail("connection"),
        fail("timeout"),
        status(404),
        status(429, retry_after_s=0.0),
        status(503, retry_after_s=5.0),
        {"outcome": FetchOutcome.NO_PAGE, "reason": "challenge", "transient": True},
        {"outcome": FetchOutcome.UNCHANGED, "status": 304},
    ],
    ids=["connection", "timeout", "404", "429", "503", "challenge", "304"],
)
def test_a_site_of_the_slow_lane_is_never_asked_sooner(answer: dict[str, object]) -> None:
    """After no answer, an error with a shorter Retry-After, or a new hit, its delay is kept too."""
    site = begun("1", "2", robots=b"User-agent: *\nCrawl-delay: 600\n")
    starts = [site.now]
    while not site.row.stopped and len(starts) < 8:
        number = len(starts)
        site.hits(*hits_at(f"later-{number}"))
        site.now += 599_000 if number % 2 else 0
        site.step(**answer)
        starts.append(site.now)
    assert len(starts) > 3 and min(later - earlier for earlier, later in pairwise(starts)) >= 600_000


def test_disallowed_hits_are_refused_without_a_request() -> None:
    """A hit that robots.txt disallows has a page record with the reason; disallowed links are not queued."""
    site = begun("no/1", "yes", robots=b"User-agent: *\nDisallow: /no")
    assert site.walk(body=b"<a href=/no/2>x</a><a href=/more>x</a>") == ["/yes", "/sitemap.xml", "/more"]
    assert [(page.url[-5:], page.outcome, page.reason) for page in site.pages[:1]] == [("/no/1", "refused", "robots")]


@pytest.mark.parametrize("status", [500, 503, 429, 200])
def test_unavailable_robots_disallow_and_are_asked_again(status: int) -> None:
    """A robots.txt with 5xx, 429 or a cut body disallows all; it is retried hourly, three times at most."""
    site = with_hits("1")
    for _ in range(3):
        assert site.step(**fail(f"http_{status}", status=status, unreachable=False)).kind is RequestKind.ROBOTS
        assert site.row.stopped or site.committed.next_due() == site.now + 3_600_000
    assert site.walk() == [] and [page.reason for page in site.pages] == ["robots_unavailable"]


def test_robots_are_asked_again_after_a_day() -> None:
    """robots.txt is valid for a day; the next request after that fetches it again, and the new rules apply."""
    site = with_hits("1")
    site.walk()
    site.now += 25 * 3_600_000
    site.hits(*hits_at("2"))
    site.robots(b"User-agent: *\nDisallow: /2")
    assert site.walk() == [] and site.pages[-1].reason == "robots"


def test_the_budget_refuses_the_rest_of_the_hits() -> None:
    """At the page budget the site stops: the remaining hits have a record, discovered URLs leave no trace."""
    site = begun(*(f"{n}" for n in range(7)))
    assert site.walk(body=b"<a href=/link>x</a>") == ["/0", "/1", "/2", "/3", "/4"]
    assert [page.reason for page in site.pages] == [""] * 5 + ["budget"] * 2
    assert (site.totals.queued, site.totals.active, site.totals.stopped, site.totals.fetched) == (0, 0, 1, 5)


def test_a_site_of_failures_ends() -> None:
    """Failed pages do not use up the page budget, but a budget of requests ends the site."""
    site = begun(*(f"{n}" for n in range(30)))
    gone = status(404)
    assert len(site.walk(**gone)) == 15
    assert [page.reason for page in site.pages] == ["http_404"] * 15 + ["too_many_requests"] * 15


def test_a_decision_stops_and_refuses_the_rest() -> None:
    """A decided site gets no further request; one in flight still counts; a lifted stop resumes the crawl."""
    site = begun("1", "2", "3")
    site.now += 5000
    (job,) = site.jobs()
    site.decide(stop=True)
    assert site.jobs(busy=("a.test",)) == [] and site.pages == []
    site.answer(job)
    assert site.walk() == []
    assert [(page.outcome, page.reason) for page in site.pages] == [
        ("fetched", ""), ("refused", "site_decided"), ("refused", "site_decided"),
    ]  # fmt: skip
    assert site.hits(*hits_at("4")) == ["refused"]
    site.decide(stop=False)
    assert site.hits(*hits_at("5", "3", "1")) == ["queued", "queued", "known"]
    assert site.walk() == ["/robots.txt", "/5", "/3", "/sitemap.xml"]


def test_decisions_may_be_switched_off() -> None:
    """With stop_when_decided off, a decision changes nothing."""
    site = with_hits("1", stop_when_decided=False)
    site.decide(stop=True)
    assert "/1" in site.walk()


def test_sitemaps_are_read_before_links_are_followed() -> None:
    """The sample of the sitemaps, including an index, comes before the links of the hit; the budget is filled."""
    site = begun("hit", robots=b"Sitemap: http://a.test/index.xml\nSitemap: http://b.test/other.xml", page_budget=4)
    assert site.step(body=b"<a href=/link1>x</a><a href=/link2>x</a><a href=/link3>x</a>").url == "http://a.test/hit"
    assert site.step(sitemap=SitemapFile(files=("http://a.test/s1.xml",))).url == "http://a.test/index.xml"
    pages = ("http://a.test/link1", "http://a.test/map1", "http://a.test/tag/x")
    assert site.step(sitemap=SitemapFile(pages=pages)).url == "http://a.test/s1.xml"
    assert site.walk() == ["/map1", "/link1", "/link2"]
    assert [page.found_by for page in site.pages] == ["hit", "sitemap", "link", "link"]


def test_the_urls_in_the_sitemaps_of_a_site_are_counted() -> None:
    """When all files are read: the site's own URLs, files with entries of those known, and the months of changes."""
    site = begun("hit", robots=b"Sitemap: http://a.test/index.xml", page_budget=4)
    site.step()
    site.step(sitemap=SitemapFile(files=("http://a.test/s1.xml", "http://a.test/s2.xml")))
    pages = ("http://a.test/1", "http://a.test/2", "http://a.test/tag/x")
    files = [site.step(sitemap=SitemapFile(pages=pages, months={"2024-05": 2})) for _ in range(2)]
    assert {file.url[-6:] for file in files} == {"s1.xml", "s2.xml"}
    assert site.sitemaps == []
    site.walk()
    counts = [(row.urls, row.files_read, row.files_listed, row.months) for row in site.sitemaps]
    assert counts == [(6, 3, 3, {"2024-05": 4})]
    assert {(row.id, row.site) for row in site.sitemaps} == {("a.test", "a.test")}


def test_a_count_with_a_gap_replaces_no_fuller_one() -> None:
    """If a file cannot be had when the sitemaps are read again, the whole count stays; without one, the part counts."""
    site = begun("hit", robots=b"Sitemap: http://a.test/1.xml\nSitemap: http://a.test/2.xml", page_budget=9)
    site.step()
    one, two = (SitemapFile(pages=tuple(f"http://a.test/{name}{n}" for n in range(3))) for name in "ab")
    for answers in ([one, None, None], [one, two], [None, None, two]):
        for sitemap in answers:
            job = site.reach(RequestKind.SITEMAP)
            site.answer(job, **({"sitemap": sitemap} if sitemap else status(503)))
        site.walk()
        site.decide(stop=False, term=site.row.term + 1)
    assert [(row.urls, row.files_read) for row in site.sitemaps] == [(3, 1), (6, 2)]


@pytest.mark.parametrize("fills", [False, True], ids=["decided", "budget"])
def test_a_reading_that_ends_with_its_site_is_a_lower_bound(fills: bool) -> None:
    """Sitemaps of which some files are unread when the site is stopped are counted so far, if that is no less."""
    robots = b"Sitemap: http://a.test/1.xml\nSitemap: http://a.test/2.xml"
    site = begun("hit", robots=robots, page_budget=2)
    site.step()
    site.step(sitemap=SitemapFile(pages=tuple(f"http://a.test/{n}" for n in range(500))))
    if fills:
        site.hits(*hits_at("more"))
        site.walk()
    else:
        site.decide(stop=True)
    assert site.row.stopped == (Stop.BUDGET if fills else Stop.DECIDED)
    assert [(row.urls, row.files_read, row.files_listed) for row in site.sitemaps] == [(500, 1, 2)]
    site.decide(stop=False, term=site.row.term + 1)
    site.robots(robots)
    site.answer(site.reach(RequestKind.SITEMAP), sitemap=SitemapFile(pages=("http://a.test/1",)))
    site.decide(stop=True, term=site.row.term)
    assert len(site.sitemaps) == 1


def test_a_site_without_sitemaps_has_no_count() -> None:
    """A file that cannot be had, or has no entry, is not counted."""
    site = begun("hit")
    site.step()
    assert site.step(**status(404)).kind is RequestKind.SITEMAP
    assert site.sitemaps == []


def test_a_sitemap_that_could_not_be_had_is_asked_for_once_more() -> None:
    """A sitemap is retried after one failure; after the second it is skipped and the next one is read."""
    site = begun("hit", robots=b"Sitemap: http://a.test/1.xml\nSitemap: http://a.test/2.xml", page_budget=3)
    site.step()
    broken = status(503)
    assert [site.step(**broken).url[-5:] for _ in range(2)] == ["1.xml", "1.xml"]
    assert site.step(**broken).url[-5:] == "2.xml"
    assert site.step(sitemap=SitemapFile(pages=("http://a.test/map",))).url[-5:] == "2.xml"
    assert site.step().url == "http://a.test/map"


@pytest.mark.parametrize("failed", [status(503), status(429), fail("dns"), fail("timeout")])
@pytest.mark.parametrize(
    ("revisits_h", "waits_h"), [(0, [1, 2, 4, 8, 16]), (720, [1, 2, 4, 8, 16, 32, 64]), (3, [1, 2, 3, 3])]
)
def test_sitemaps_that_were_asked_for_in_vain_are_read_later(
    failed: dict[str, object], revisits_h: int, waits_h: list[int]
) -> None:
    """An hour later, then ever more rarely: not only with the re-visits, nor never."""
    site = begun("hit", page_budget=9, refetch_fetched_s=3600.0 * revisits_h, park_cap_s=30.0)
    site.step()
    found_h = []
    for _ in waits_h:
        for _ in range(2):
            site.answer(site.reach(RequestKind.SITEMAP), **failed)
        site.now = max(site.now, site.row.next_start)
        assert site.jobs() == [] and site.row.stopped == ""
        found_h.append((site.row.sitemaps_at - site.now) / 3_600_000)
    assert found_h == waits_h
    pages = SitemapFile(pages=("http://a.test/map",))
    if site.row.sitemaps_at:
        site.answer(site.reach(RequestKind.SITEMAP), sitemap=pages)
        assert site.reach(RequestKind.PAGE).url == "http://a.test/map"


def test_a_site_without_a_sitemap_is_not_asked_again_soon() -> None:
    """An answer that there is none is one: it holds until the re-visits, or for ever without them."""
    site = begun("hit", refetch_fetched_s=0.0)
    site.step()
    site.answer(site.reach(RequestKind.SITEMAP), **status(404))
    assert site.walk() == [] and site.row.sitemaps_at == 0


def test_a_sitemap_speaks_for_its_own_host_and_port_only() -> None:
    """A sitemap's URLs on the twin or on another port are not requested, even after a redirect."""
    site = begun("hit")
    site.step()
    foreign = ("http://www.a.test/x", "http://a.test:81/x")
    site.step(sitemap=SitemapFile(pages=foreign, files=foreign), final_url="http://www.a.test/sitemap.xml")
    assert site.walk() == []


def test_forbidden_links_are_looked_at_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with thousands of links that robots.txt disallows costs a hundred look-ups."""
    asked: list[str] = []
    allows = RobotsRules.allows

    def counted(rules: RobotsRules, url: str) -> bool:
        asked.append(url)
        return allows(rules, url)

    monkeypatch.setattr(RobotsRules, "allows", counted)
    site = begun("hit", robots=b"User-agent: *\nDisallow: /no", use_sitemaps=False)
    site.step(body=b"".join(b"<a href=/no/%d>x</a>" % n for n in range(5000)))
    assert len(asked) < 110 and site.walk() == []


def test_traps_end() -> None:
    """Endless chains of links end at the depth limit, and at the limit of URLs."""
    site = begun("0", page_budget=1000, use_sitemaps=False, url_cap=7)
    for n in range(4):
        assert site.step(body=f"<a href=/{n + 1}>x</a>".encode()).url == f"http://a.test/{n}"
    assert site.committed.next_due() is None
    site.hits(*hits_at("wide"))
    body = b"".join(b"<a href=/w%d>x</a>" % n for n in range(100))
    assert len(site.walk(body=body)) == 5


def test_what_another_process_may_have_started_waits_a_delay() -> None:
    """A site that was due before this process got the partition waits one delay from then, once."""
    site = with_hits("1")
    site.now += 60_000
    assert site.jobs(since_ms=site.now) == [] and site.committed.next_due() == site.now + 5000
    since, site.now = site.now, site.now + 5000
    assert len(site.jobs(since_ms=since)) == 1


def test_a_site_waits_for_what_an_answer_asked_that_was_rolled_back() -> None:
    """A site keeps a requested wait even if the batch of that answer was rolled back."""
    site = with_hits("1")
    later = site.now + 60_000
    assert site.jobs(not_before_ms=later) == [] and site.committed.next_due() == later
    site.now = later
    assert len(site.jobs()) == 1


def test_a_site_that_is_given_up_accounts_for_its_hits() -> None:
    """After an internal error at a site, the site is stopped once, and its hits are refused with the reason."""
    site = with_hits("1", "2")
    assert site.give_up() is True
    assert site.give_up() is False
    assert site.walk() == [] and [page.reason for page in site.pages] == ["internal_error"] * 2


def test_where_a_redirect_led_is_no_other_page() -> None:
    """Links to a redirect's target are not followed; a hit for it is recorded once as same_page, without a request."""
    site = begun("old", use_sitemaps=False)
    site.step(final_url="http://a.test/new", body=b"<a href=/new>x</a><a href=https://a.test/old>x</a>")
    assert site.committed.next_due() is None
    assert site.hits(*hits_at("new", "new")) == ["refused", "known"]
    assert site.walk() == []
    assert [(page.url[-3:], page.reason) for page in site.pages] == [("old", ""), ("new", "same_page")]


def test_urls_that_redirect_to_one_have_one_page() -> None:
    """Of hits that all redirect to one URL, itself a hit, one is fetched and counted; the others are same_page."""
    site = Site(use_sitemaps=False)
    end = "https://a.test/1"
    site.hits(*hits_of("http://a.test/1", end, "http://a.test/2", "http://a.test/3"))
    site.robots()
    assert site.walk(final_url=end, body=b"x", packed=b"x") == ["/1", "/2", "/3"]
    found = {page.url: (page.outcome, page.reason, page.body, len(page.hits)) for page in site.pages}
    assert len(found) == len(site.pages) == 4 and site.row.fetched == 1
    assert found.pop("http://a.test/1") == ("fetched", "", b"x", 1)
    assert set(found.values()) == {("refused", "same_page", b"", 1)}


def test_what_waits_as_a_link_is_dropped_when_a_redirect_leads_there() -> None:
    """A queued link is dropped when a redirect fetches its page; a re-visit that redirects counts for the target."""
    site = begun("0", "1", use_sitemaps=False, refetch_fetched_s=100_000.0)
    site.step(body=b"<a href=/end>x</a>")
    site.step(final_url="http://a.test/end")
    assert site.row.queued == 0 and site.row.fetched == 2
    site.now = site.committed.next_due() or 0
    site.step()
    paths = [site.step(final_url="http://a.test/end" if n else "http://a.test/0").url[-2:] for n in range(2)]
    assert paths == ["/0", "/1"] and site.row.fetched == 2
    assert [(page.outcome, page.visit) for page in site.pages[2:]] == [("fetched", 2)] * 2


def test_a_hit_for_a_discovered_url_moves_it_to_the_front() -> None:
    """A hit for a discovered link moves it to the front of the queue."""
    site = begun("0", use_sitemaps=False)
    site.step(body=b"<a href=/1>x</a><a href=/2>x</a>")
    assert site.hits(*hits_at("2")) == ["known"]
    assert site.walk() == ["/2", "/1"]
    assert [(page.found_by, len(page.hits)) for page in site.pages] == [("hit", 1), ("hit", 1), ("link", 0)]


def test_other_ports_and_wrong_sites() -> None:
    """A hit on another port is refused with a reason; a hit with the wrong site is unusable."""
    site = Site()
    assert site.hits(*hits_of("http://a.test/1", "http://a.test:8080/2")) == ["queued", "refused"]
    assert site.pages[0].reason == "other_port"
    with pytest.raises(UnusableUrl, match="names the site"):
        site.hits(msgspec.structs.replace(hits_of("http://a.test/1")[0], site="b.test"))
