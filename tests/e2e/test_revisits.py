"""Sites visited repeatedly over real HTTP: the conditions of the requests, and the records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from crawler.web.hits_file import make_hit
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import patient_settings
from tests.support.web.crawl_process import Crawl
from tests.support.web.raw_web import RawWeb, Visit, head, reply

SITES = [f"again{n}.site{n}.test" for n in range(25)]
DATE = "Sat, 01 Aug 2026 10:00:00 GMT"
VISITS = 3
LIMIT_S = 120.0
# Validators of each kind of page, and the condition of its next request
KINDS = {
    "/tagged": ({"etag": '"a-1"'}, {"if-none-match": '"a-1"'}),
    "/weak": ({"etag": 'W/"b"'}, {"if-none-match": 'W/"b"'}),
    "/dated": ({"last_modified": DATE}, {"if-modified-since": DATE}),
    "/both": ({"etag": '"c"', "last_modified": DATE}, {"if-none-match": '"c"', "if-modified-since": DATE}),
    "/neither": ({}, {}),
    "/changing": ({"etag": '"{n}"'}, {}),  # a new one at each visit: never a 304
}
CONDITIONS = ("if-none-match", "if-modified-since")


async def answer(visit: Visit) -> None:
    """Pages with validators: a request with the current ones gets a 304."""
    if visit.path not in KINDS:
        await reply("", "404 None")(visit)
        return
    said, asked = KINDS[visit.path]
    visit.keep = True
    if asked and all(visit.headers.get(name) == value for name, value in asked.items()):
        await visit.send(head("304 Not Modified", **said))
        return
    now = {name: value.format(n=visit.number) for name, value in said.items()}
    await reply(f"<!doctype html><p>{visit.host}{visit.path}</p>", **now)(visit)


def _visited(crawl: Crawl, wanted: set[str]) -> bool:
    visits = Counter(page.url for page in crawl.pages())
    return all(visits[url] >= VISITS for url in wanted)


def test_pages_that_did_not_change_are_not_sent_again(tmp_path: Path) -> None:
    """Re-visits send the last validators; a 304 is a page `unchanged` without a body, with its own record."""
    with RawWeb(answer) as web:
        settings = patient_settings(
            f"127.0.0.1:{web.port}", delay_s=0.05, delay_per_second=0.0, refetch_fetched_s=2.0, use_sitemaps=False
        )
        with Crawl(tmp_path / "crawl", f"sqlite:{tmp_path / 'log'}", settings) as crawl:
            wanted = {f"http://{site}{path}" for site in SITES for path in KINDS}
            crawl.hits([make_hit({"url": url}) for url in sorted(wanted)])
            crawl.start()
            wait_until(lambda: not crawl.running or _visited(crawl, wanted), "the visits", LIMIT_S)
            assert crawl.running, crawl.output()
            crawl.stop()
            pages, seen = crawl.pages(), list(web.seen)
    assert max(Counter(page.id for page in pages).values()) == 1
    for page in pages:
        changes = page.visit == 1 or page.url.endswith(("/neither", "/changing"))
        assert (page.outcome, page.status) == (("fetched", 200) if changes else ("unchanged", 304)), page.url
        assert bool(page.body) == changes
        assert page.fetched_at > 0
    visits = sorted((page.url, page.visit) for page in pages)
    assert visits == sorted((url, n + 1) for url, count in Counter(u for u, _ in visits).items() for n in range(count))
    for request in seen:
        conditions = {name: value for name, value in request.headers.items() if name in CONDITIONS}
        if request.path == "/changing":
            assert set(conditions) <= {"if-none-match"}
        elif request.path in KINDS and conditions:
            assert conditions == KINDS[request.path][1]
        elif request.path in KINDS:
            assert request.status == "200"
    for site in SITES:
        for path, (_, asked) in KINDS.items():
            known = [r for r in seen if r.host == site and r.path == path]
            assert not set(CONDITIONS) & set(known[0].headers), "a first visit sets no conditions"
            assert not asked or all(set(CONDITIONS) & set(r.headers) for r in known[1:])
