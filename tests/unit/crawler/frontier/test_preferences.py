"""Preferences on the use by AI, of robots.txt and headers: on the records of pages, on the site, and in the totals."""

from __future__ import annotations

import msgspec

from crawler.frontier.report import lines_of
from crawler.frontier.rows import TOTALS_KEY
from crawler.robots.preferences import prefers_no
from tests.support.web.crawl_driver import hits_of
from tests.support.web.frontier_site import Site, begun

ROBOTS = b"User-agent: *\nContent-Usage: / train-ai=y\nContent-Usage: /mine train-ai=n\n"
YES, NO = "robots.txt:content-usage:train-ai=y", "robots.txt:content-usage:train-ai=n"
HEADER = "header:content-signal:ai-train=no"


def preferences_of(site: Site) -> list[str]:
    return next(lines_of(site.committed, site.settings, site.now)).preferences


def test_pages_and_their_site_carry_the_preferences() -> None:
    """A page has those of its path, the site those of its home page; both are recorded, none is obeyed unasked."""
    site = begun("mine/1", "free", robots=ROBOTS, use_sitemaps=False)
    assert site.walk() == ["/mine/1", "/free"]
    assert [page.opt_out for page in site.pages] == [[NO], [YES]]
    assert preferences_of(site) == [YES] and site.totals.preferring == 1


def test_a_no_is_obeyed_on_request_before_the_page_is_asked_for() -> None:
    """With obey_preferences a URL with a no is refused without a request; obey_opt_out does not do so."""
    site = begun("mine/1", "free", robots=ROBOTS, use_sitemaps=False, obey_preferences=True)
    assert site.walk() == ["/free"]
    assert [(page.outcome, page.reason, page.opt_out) for page in site.pages] == [
        ("refused", "opt_out", [NO]),
        ("fetched", "", [YES]),
    ]
    assert begun("mine/1", robots=ROBOTS, use_sitemaps=False, obey_opt_out=True).walk() == ["/mine/1"]


def test_headers_that_contradict_the_file_are_kept_beside_it() -> None:
    """The page and the site have both statements, and the no prevails; a new robots.txt replaces only its own."""
    site = begun("free", robots=ROBOTS, use_sitemaps=False)
    site.walk(opt_out=["meta:nofollow", HEADER])
    assert site.pages[0].opt_out == ["meta:nofollow", HEADER, YES] and prefers_no(site.pages[0].opt_out)
    assert preferences_of(site) == [YES, HEADER]
    site.now += 90_000_000
    site.hits(*hits_of("http://a.test/more"))
    site.robots(b"User-agent: *\nContent-Usage: / other=n\n")
    assert preferences_of(site) == ["robots.txt:content-usage:other=n", HEADER]


def test_preferences_in_headers_end_with_the_term_of_their_page() -> None:
    """A page of the next term that states none any more leaves the site with those of robots.txt alone."""
    site = begun("free", robots=ROBOTS, use_sitemaps=False)
    site.walk(opt_out=[HEADER])
    site.decide(stop=True)
    assert preferences_of(site) == [YES, HEADER]
    site.decide(stop=False, term=1)
    site.robots(ROBOTS)
    site.walk()
    assert preferences_of(site) == [YES]


def test_sites_without_a_preference_are_not_counted() -> None:
    """A site stops being counted when its file states none any more."""
    site = begun("1", robots=ROBOTS, use_sitemaps=False)
    site.walk()
    site.now += 90_000_000
    site.hits(*hits_of("http://a.test/2"))
    site.robots(b"")
    assert site.totals.preferring == 0 and preferences_of(site) == []


def test_totals_of_a_version_before_are_counted_on() -> None:
    """Stored totals without the count get it with the next change."""
    site = begun("1", robots=b"", use_sitemaps=False)
    value, due = site.committed.rows[TOTALS_KEY]
    site.committed.rows[TOTALS_KEY] = (msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:-1]), due)
    site.walk(opt_out=[HEADER])
    assert site.totals.preferring == 1 and site.totals.sites == 1
