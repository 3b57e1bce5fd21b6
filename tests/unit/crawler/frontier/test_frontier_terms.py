"""A new term of a site in the frontier: a fresh sample under the same politeness, with a whole budget."""

from __future__ import annotations

from crawler.fetch.jobs import RequestKind
from crawler.web.sitemaps import SitemapFile
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.frontier_site import Site, begun, hits_at, with_hits

ETAG = {"etag": '"v1"'}


def stopped(*paths: str, **changes: object) -> Site:
    """A decided site with pages at these paths."""
    site = Site(**{"use_sitemaps": False, **changes})
    site.hits(*hits_at(*paths))
    site.robots()
    site.walk(headers=ETAG)
    site.decide(stop=True)
    return site


def test_a_stopped_site_is_measured_again_in_its_next_term() -> None:
    """robots.txt is read again, the home page comes first, and known pages last, without a condition."""
    site = stopped("1", "2")
    assert site.walk() == []
    site.decide(stop=False, term=1)
    assert (site.row.spent, site.row.fetched, site.row.stopped) == (0, 2, "")
    paths = site.walk(headers=ETAG)
    assert paths[:2] == ["/robots.txt", "/"] and set(paths[2:]) == {"/1", "/2"}
    assert [(page.visit, page.outcome) for page in site.pages[2:]] == [(1, "fetched"), (2, "fetched"), (2, "fetched")]
    assert site.row.spent == 3


def test_known_pages_are_requested_without_a_condition_once_a_term() -> None:
    """The first request of a term sends no validators; a re-visit in the same term does."""
    day_s = 86_400.0
    site = begun("1", use_sitemaps=False, refetch_fetched_s=30 * day_s)
    site.step(headers=ETAG)
    site.decide(stop=True)
    site.decide(stop=False, term=1)
    jobs = []
    for _ in range(5):
        site.now = max(site.now, site.committed.next_due() or 0)
        (job,) = site.jobs()
        jobs.append((job.url.removeprefix("http://a.test"), job.etag))
        site.answer(job, headers=ETAG)
    assert jobs[:3] == [("/robots.txt", ""), ("/", ""), ("/1", "")]
    assert {path for path, etag in jobs[3:] if etag} <= {"/", "/1"} and jobs[4][1] == '"v1"'


def test_new_pages_come_before_known_ones() -> None:
    """URLs of sitemaps and links that no term has seen are fetched first; the budget of the term ends the rest."""
    site = stopped("1", "2", "3", page_budget=4, use_sitemaps=True)
    site.decide(stop=False, term=1)
    order = []
    for _ in range(20):
        due = site.committed.next_due()
        if due is None:
            break
        site.now = max(site.now, due)
        for job in site.jobs():
            order.append(job.url.removeprefix("http://a.test"))
            fields: dict[str, object] = {}
            if job.kind is RequestKind.SITEMAP:
                fields = {"sitemap": SitemapFile(pages=("http://a.test/1", "http://a.test/m1"))}
            elif job.url == "http://a.test/":
                fields = {"body": b"<a href=/new>x</a><a href=/2>x</a>"}
            site.answer(job, **fields)
    assert order[:5] == ["/robots.txt", "/sitemap.xml", "/", "/m1", "/new"]
    assert order[5] in ("/1", "/2", "/3") and len(order) == 6
    assert (site.row.stopped, site.row.spent) == ("budget", 4)


def test_a_hit_that_a_stop_refused_is_fetched_in_the_next_term() -> None:
    """URLs of hits that were refused because their site was decided are queued first."""
    site = stopped("1")
    site.hits(*hits_at("late"))
    assert site.pages[-1].reason == "site_decided"
    site.decide(stop=False, term=1)
    assert site.walk()[:2] == ["/robots.txt", "/late"]


def test_a_lasting_stop_is_not_lifted() -> None:
    """A site at a private address stays stopped in every term."""
    site = with_hits("1")
    site.step(outcome=FetchOutcome.REFUSED, reason="private_address", status=0)
    assert site.row.stopped == "private_address"
    site.decide(stop=False, term=1)
    assert site.row.stopped == "private_address" and site.walk() == []


def test_a_stop_for_an_earlier_term_does_not_count() -> None:
    """A decision on the last term that comes late leaves the new one open; one on the new term stops it."""
    site = stopped("1")
    site.decide(stop=False, term=2)
    site.decide(stop=True, term=1)
    assert site.row.stopped == ""
    site.decide(stop=True, term=2)
    assert site.row.stopped == "site_decided"


def test_a_term_that_has_begun_does_not_begin_again() -> None:
    """The same decision twice, as after a cutover, queues nothing twice and leaves the budget as it is."""
    site = stopped("1", "2")
    site.decide(stop=False, term=1)
    site.walk()
    spent, pages = site.row.spent, len(site.pages)
    site.decide(stop=False, term=1)
    assert site.walk() == [] and (site.row.spent, len(site.pages)) == (spent, pages)


def test_a_site_without_a_url_is_not_opened() -> None:
    """Pages of an archive have terms, too; the crawler does not know their site, and does not visit it."""
    site = Site()
    site.decide(stop=False, term=3)
    assert site.committed.rows == {}
    site.decide(stop=True, term=3)
    site.decide(stop=False, term=4)
    assert site.committed.next_due() is None


def test_pages_name_the_first_one_of_their_site() -> None:
    """Each page record has the time of the site's first page: where its terms begin."""
    site = stopped("1", "2")
    site.decide(stop=False, term=1)
    site.walk()
    assert {page.first_at for page in site.pages} == {site.pages[0].fetched_at}
