"""Answers that are no page: which are asked for again, which stop their site, and the probe that finds soft 404s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from crawler.fetch.jobs import FetchRequest, RequestKind
from crawler.frontier.statuses import Status
from stream.schema.records import Page
from tests.support.web.frontier_site import Site, begun, fail, hits_at, status, with_hits
from tests.support.web.inspecting import FakeInspector, no_page

DAY_MS = 86_400_000
MISSING: dict[str, object] = status(404)


def probed(*paths: str, outline: bytes = b"", **changes: Any) -> Site:
    """A site with robots.txt read and the probe answered: by 404, or by a page with this outline."""
    site = begun(*paths, inspector=FakeInspector(), **changes)
    assert site.step(**({"outline": outline} if outline else MISSING)).kind is RequestKind.PROBE
    return site


def outcomes(pages: list[Page]) -> list[tuple[str, str, str]]:
    return [(page.url.removeprefix("http://a.test/"), page.outcome, page.reason) for page in pages]


def turned_away(site: Site, fields: Mapping[str, object], probe: Mapping[str, object] | None = None) -> int:
    """Answer all jobs alike until the site rests or stops; returns the number of requests.

    robots.txt and tdmrep.json get a 403, and the probe its own answer if there is one.
    """
    requests = 0
    while (due := site.committed.next_due()) is not None:
        site.now = max(site.now, due)
        for job in site.jobs():
            own = probe if job.kind is RequestKind.PROBE else None
            is_file = job.kind in (RequestKind.ROBOTS, RequestKind.TDMREP)
            site.answer(job, **(status(403) if is_file else own or fields))
            requests += 1
    return requests


def test_a_challenged_url_stays_queued_and_is_asked_again_ever_later() -> None:
    """After a challenge the whole site waits, longer each time; its page has no record before it is fetched."""
    site = probed("0", "1", retry_s=30.0)
    waits = []
    for _ in range(2):
        site.step(**no_page("challenge", 403))
        waits.append(site.row.parked_until - site.now)
        assert site.row.parked_why == "challenge" and not site.jobs()
    assert waits == [30_000, 60_000]
    assert (site.pages, site.row.fetched, site.row.queued) == ([], 0, 2)
    assert [site.step().url for _ in range(2)] == ["http://a.test/0", "http://a.test/1"]
    assert outcomes(site.pages) == [("0", "fetched", ""), ("1", "fetched", "")]


def test_a_challenge_on_one_url_does_not_stop_its_site() -> None:
    """The URL fails after crawl.tries requests, with the challenge as evidence; the others are fetched."""
    site = probed("0", "1", "2")
    for _ in range(3):
        site.step(**no_page("challenge"))
    assert outcomes(site.pages) == [("0", "no_page", "challenge")]
    assert (site.pages[0].body, site.pages[0].body_bytes, site.row.stopped) == (b"packed", 10, "")
    site.step()
    site.step()
    assert outcomes(site.pages)[1:] == [("1", "fetched", ""), ("2", "fetched", "")]
    assert site.row.urls[Status.ERROR] == 1


@pytest.mark.parametrize(
    ("reason", "code"), [("challenge", 200), ("challenge", 403), ("blocked", 429), ("maintenance", 503)]
)
@pytest.mark.parametrize("paths", [("0",), ("0", "1", "2", "3")])
@pytest.mark.parametrize("probe", [None, MISSING, {"outline": b"gone"}])
def test_a_site_that_only_turns_us_away_costs_six_requests(
    reason: str, code: int, paths: tuple[str, ...], probe: Mapping[str, object] | None
) -> None:
    """With robots.txt, tdmrep.json, probe and sitemap included; its own reason stops it and refuses its other hits."""
    site = with_hits(*paths, inspector=FakeInspector(), ask_tdmrep=True)
    assert turned_away(site, no_page(reason, code), probe) <= 6
    assert (site.row.stopped, site.row.queued, site.row.fetched) == (reason, 0, 0)
    assert outcomes(site.pages) == [("0", "no_page", reason), *((path, "refused", reason) for path in paths[1:])]


EMPTY: list[dict[str, object]] = [
    no_page("soft_404"),
    no_page("soft_404", outline=b"gone"),
    {"outline": b"gone"},
    no_page("parked"),
    no_page("default_page"),
]


@pytest.mark.parametrize("answer", EMPTY)
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_an_empty_site_costs_sixteen_requests(answer: dict[str, object], hops: int) -> None:
    """All its URLs, probe and home page too, have an answer as of a site without pages: its reason stops it."""
    site = with_hits(*map(str, range(40)), inspector=FakeInspector(), ask_tdmrep=True, page_budget=15)
    assert turned_away(site, answer | {"requests": [FetchRequest(RequestKind.PAGE)] * hops}) <= 16
    reason = str(answer.get("reason", "soft_404"))
    assert (site.row.stopped, site.row.queued, site.row.fetched) == (reason, 0, 0)
    ended = Counter((outcome, why) for _, outcome, why in outcomes(site.pages))
    assert ended == {("no_page", reason): 13, ("refused", reason): 28}


@pytest.mark.parametrize("answer", EMPTY)
@pytest.mark.parametrize("hops", [2, 3])
def test_a_site_that_redirects_is_not_stopped_before_its_first_page(answer: dict[str, object], hops: int) -> None:
    """Neither by the answer to the probe nor by those of the sitemaps, each of which takes some requests."""
    site = with_hits("0", "1", inspector=FakeInspector(), ask_tdmrep=True, page_budget=9)
    several: dict[str, object] = {"requests": [FetchRequest(RequestKind.PROBE)] * hops}
    kinds = []
    while (due := site.committed.next_due()) is not None:
        site.now = max(site.now, due)
        for job in site.jobs():
            is_file = job.kind in (RequestKind.ROBOTS, RequestKind.TDMREP)
            own = MISSING if is_file else {} if job.kind is RequestKind.PAGE else answer
            site.answer(job, **several | own)
            kinds.append(job.kind)
    assert RequestKind.PROBE in kinds and RequestKind.SITEMAP in kinds
    assert (site.row.stopped, site.row.fetched) == ("", 2)


@pytest.mark.parametrize("answer", EMPTY)
@pytest.mark.parametrize("gone", [4, 6, 11, 12, 20])
def test_dead_hits_come_before_the_pages_of_a_site(answer: dict[str, object], gone: int) -> None:
    """However many they are, no page is lost: after twelve the home page shows that the site has pages."""
    real = [f"real{number}" for number in range(6)]
    site = probed(*(f"gone{number}" for number in range(gone)), *real, outline=b"gone", page_budget=15)
    while site.committed.next_due() is not None:
        site.now = max(site.now, site.committed.next_due() or 0)
        for job in site.jobs():
            site.answer(job, **(answer if "gone" in job.url else {"outline": job.url.encode()}))
    fetched = {path for path, outcome, _ in outcomes(site.pages) if outcome == "fetched"}
    assert fetched == {*real, *([""] if gone >= 12 else [])} and site.row.stopped == ""


@pytest.mark.parametrize("home", [MISSING, status(500), {"robots": b"User-agent: *\nDisallow: /$"}])
def test_an_empty_site_may_have_no_home_page(home: dict[str, object]) -> None:
    """Then it is asked for no more often than any URL, and the next empty page stops the site."""
    forbids = bytes(home.get("robots", b""))  # type: ignore[call-overload]
    site = begun(*map(str, range(40)), robots=forbids, inspector=FakeInspector(), page_budget=15, tries=2)
    asked = []
    while site.row.queued:
        site.now = max(site.now, site.committed.next_due() or 0)
        for job in site.jobs():
            asked.append(job.url.removeprefix("http://a.test"))
            site.answer(job, **(home if asked[-1] == "/" else no_page("soft_404")))
    assert asked.count("/") <= 2 and len(asked) <= 16
    assert (site.row.stopped, site.row.fetched) == ("soft_404", 0)


@pytest.mark.parametrize("answer", EMPTY)
def test_a_new_hit_opens_an_empty_site(answer: dict[str, object]) -> None:
    """From a day after the stop on, for the hits that it refused and those that were empty."""
    site = with_hits(*map(str, range(20)), inspector=FakeInspector(), page_budget=15)
    turned_away(site, answer)
    assert site.hits(*hits_at("0", "19", "new")) == ["known", "known", "refused"]
    site.now += DAY_MS
    assert site.hits(*hits_at("0", "19", "new")) == ["queued"] * 3
    assert {"/0", "/19", "/new"} <= set(site.walk())
    assert (site.row.stopped, site.row.fetched) == ("", 3)


@pytest.mark.parametrize("answer", EMPTY)
def test_empty_pages_do_not_stop_a_site_with_a_page(answer: dict[str, object]) -> None:
    """Not however many follow, nor where there is nothing more to ask for: a new hit is fetched."""
    site = probed(*map(str, range(30)), outline=b"gone", page_budget=15)
    for fields in (answer, answer, {}, *[answer] * 27):
        site.step(**fields)
    assert (site.row.stopped, site.row.fetched) == ("", 1)
    few = probed("0", "1", outline=b"gone", use_sitemaps=False)
    few.step(**answer)
    few.step(**answer)
    assert few.row.stopped == "" and few.hits(*hits_at("2")) == ["queued"]


@pytest.mark.parametrize("outline", [b"", b"gone"])
def test_pages_have_outlines_where_the_site_has_a_page_not_found(outline: bytes) -> None:
    """An outline takes a third of an inspection: elsewhere there is nothing to compare it with."""
    site = probed("0", "1", outline=outline)
    site.now = site.committed.next_due() or 0
    (job,) = site.jobs()
    assert (job.kind, job.has_outline) == (RequestKind.PAGE, bool(outline))


def test_redirects_count_among_the_six_requests() -> None:
    """A site that redirects first gets fewer tries."""
    site = begun("0", "1", inspector=FakeInspector(), robots=b"")
    hops = [FetchRequest(RequestKind.PAGE), FetchRequest(RequestKind.PAGE)]
    requests = 1
    while not site.row.stopped:
        site.step(**no_page("challenge"), requests=hops)
        requests += 2
    assert requests <= 6


def test_a_new_hit_opens_a_stopped_site_for_six_more_requests() -> None:
    """From a day after the stop on, a hit asks again for what was refused, and the site is probed again."""
    site = with_hits("0", "1", inspector=FakeInspector())
    first = turned_away(site, no_page("challenge"))
    site.now += 1000
    assert site.hits(*hits_at("2")) == ["refused"] and not site.walk()
    site.now += DAY_MS
    assert site.hits(*hits_at("0", "1")) == ["queued", "queued"]
    again = turned_away(site, no_page("challenge"))
    assert (first <= 6, again <= 6, site.row.stopped) == (True, True, "challenge")
    site.now += DAY_MS
    site.hits(*hits_at("0", "1"))
    walked = site.walk()
    assert {"/0", "/1"} <= set(walked) and any(len(path) == 33 for path in walked)
    assert (site.row.stopped, site.row.fetched) == ("", 2)


def test_a_site_with_pages_is_stopped_by_many_challenges_in_a_row() -> None:
    """Six challenged URLs in a row end a site that has answered before; one page in between starts the count again."""
    paths = [str(number) for number in range(20)]
    site = probed(*paths, page_budget=40)
    site.step()
    for _ in range(15):
        site.step(**no_page("challenge"))
    site.step()
    for _ in range(17):
        site.step(**no_page("challenge"))
    assert site.row.stopped == ""
    site.step(**no_page("challenge"))
    assert site.row.stopped == "challenge"


def test_other_answers_end_their_url_as_a_404_does() -> None:
    """A wall is final for its URL, uses the budget of requests and none of the budget of pages."""
    site = probed("0", "1")
    site.step(**no_page("login_wall"))
    site.step(**no_page("blocked", 403))
    assert outcomes(site.pages) == [("0", "no_page", "login_wall"), ("1", "no_page", "blocked")]
    assert (site.row.stopped, site.row.parked_until, site.row.fetched, site.row.page_requests) == ("", 0, 0, 2)
    assert site.hits(*hits_at("0")) == ["known"]


def test_no_link_of_what_is_no_page_is_followed() -> None:
    """Neither of a challenge nor of a wall."""
    site = probed("0", use_sitemaps=False)
    site.step(**no_page("consent_wall", body=b'<a href="/linked">on</a>'))
    assert site.committed.next_due() is None and site.row.known == 0


def test_one_probe_precedes_the_first_page_of_a_term() -> None:
    """The URL is the same after a crash, another in the next term, and has no record; robots.txt is asked first."""
    site = with_hits("0", "1", inspector=FakeInspector(), use_sitemaps=False)
    assert site.step(status=404).kind is RequestKind.ROBOTS
    site.now = max(site.now, site.committed.next_due() or 0)
    (job,) = site.jobs()
    (again,) = site.jobs()
    assert job.kind is RequestKind.PROBE and job.url == again.url
    site.answer(job, **MISSING)
    assert site.walk() == ["/0", "/1"] and len(site.pages) == 2
    site.now += DAY_MS
    site.decide(stop=False, term=1)
    probes = [path for path in site.walk() if len(path) == 33]
    assert len(probes) == 1 and not job.url.endswith(probes[0])


def test_robots_txt_may_forbid_the_probe() -> None:
    """Then the pages are fetched without one."""
    site = begun("a/0", robots=b"User-agent: *\nDisallow: /\nAllow: /a/", inspector=FakeInspector())
    assert site.step().url == "http://a.test/a/0"


def test_a_site_without_an_allowed_page_is_not_probed() -> None:
    """robots.txt forbids its only hit: no request follows."""
    site = begun("a/0", robots=b"User-agent: *\nDisallow: /a/", inspector=FakeInspector(), use_sitemaps=False)
    assert site.walk() == [] and outcomes(site.pages) == [("a/0", "refused", "robots")]


@pytest.mark.parametrize("answer", [fail(), status(503), no_page("challenge"), status(301), {"status": 203}])
def test_a_probe_is_made_once_whatever_its_answer(answer: dict[str, object]) -> None:
    """After a failure, a challenge or a redirect nothing is compared, and the pages come next."""
    site = begun("0", inspector=FakeInspector())
    assert site.step(**answer | {"outline": b"gone"}).kind is RequestKind.PROBE
    assert site.step(outline=b"gone").url == "http://a.test/0"
    assert outcomes(site.pages) == [("0", "fetched", "")] and site.row.outline == b""


def test_pages_like_the_answer_to_the_probe_are_soft_404s() -> None:
    """From the first page on; other pages are kept, and so is the home page, which some sites send for any URL."""
    site = probed("0", "1", "", "2", outline=b"gone", page_budget=9)
    for outline in (b"gone", b"news", b"gone", b"gone"):
        site.step(outline=outline, packed=b"packed")
    assert outcomes(site.pages) == [
        *(("0", "no_page", "soft_404"), ("1", "fetched", ""), ("", "fetched", ""), ("2", "no_page", "soft_404"))
    ]
    assert site.pages[0].body == b"packed" and site.row.fetched == 2


def test_a_probe_that_the_site_answers_as_missing_compares_nothing() -> None:
    """A site with status 404 has no soft 404s."""
    site = probed("0")
    site.step(outline=b"gone")
    assert outcomes(site.pages) == [("0", "fetched", "")]


def test_without_an_inspector_no_site_is_probed() -> None:
    """Then the requests are those of before."""
    assert with_hits("0", use_sitemaps=False).walk() == ["/robots.txt", "/0"]
