"""`explain` of a URL without measures: how the crawl failed, when, how often, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from crawler.frontier.rows import Priority, SiteRow, UrlRow, pack, site_key
from crawler.frontier.site_store import url_key
from crawler.frontier.statuses import Status
from crawler.web.urls import page_bytes, page_id
from stream.log.contract import Commit, Output, StateChange, partition_of
from stream.opening import open_log
from stream.schema.records import Page, encode
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.web.console_browser import Answer, Browser, browse

SITE, URL = "away.example", "https://away.example/a"
AT = 1_700_000_000_000  # 2023-11-14 22:13:20
THEN = "2023-11-14 22:13:20Z"


def crawled(folder: Path, row: SiteRow | None, urls: Sequence[UrlRow], pages: Sequence[Page] = ()) -> str:
    """URL of a log whose crawl has these rows, and these page records."""
    url, partition = f"sqlite:{folder / 'log'}", partition_of(SITE, PARTITIONS)
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, "epoch"))
        log.append([Output(PAGES, partition, SITE.encode(), encode(page)) for page in pages])
        member = log.join("crawl", [HITS], member="0", store=FRONTIER_STORE)
        while partition not in member.assignment():
            member.poll(0.05, 1, 1)
        rows = [StateChange(url_key(SITE, page_bytes(each.url)), pack(each)) for each in urls]
        rows += [StateChange(site_key(SITE), pack(row))] if row is not None else []
        member.commit(Commit(state={partition: rows}))
        member.close()
    return url


def record(outcome: str, reason: str, visit: int = 1, url: str = URL) -> Page:
    """The record of a visit at AT."""
    return Page(
        id=f"v{visit}{url}",
        site=SITE,
        page_id=page_id(url),
        url=url,
        visit=visit,
        outcome=outcome,
        reason=reason,
        fetched_at=AT,
    )


STOPPED = SiteRow(site=SITE, stopped="dns_no_name", stopped_at=AT)
PARKED = SiteRow(
    site=SITE, queued=1, parked_until=AT + 60_000, parked_at=AT, parked_why="robots.txt:http_503", park_level=3
)
CASES = {
    "failed for good": (
        STOPPED,
        [UrlRow(URL, Status.ERROR, visit=2, reason="dns_no_name")],
        [record("failed", "timeout"), record("failed", "dns_no_name", 2)],
        [
            "could not be fetched: dns_no_name: ",
            f"visit 2, at {THEN}",
            f"stopped since {THEN}",
            "what ends it: a new hit",
        ],
    ),
    "its site did not answer": (
        STOPPED,
        [UrlRow(URL, Status.REFUSED, visit=1, reason="dns_no_name")],
        [record("refused", "dns_no_name")],
        ["could not be fetched: dns_no_name: ", f"visit 1, at {THEN}", "what ends it: a new hit"],
    ),
    "failed, with a revisit": (
        SiteRow(site=SITE),
        [UrlRow(URL, Status.ERROR, visit=1, reason="http_404", due=AT + 60_000)],
        [record("failed", "http_404")],
        ["could not be fetched: http_404: ", "asked again from 2023-11-14 22:14:20Z on"],
    ),
    "refused for ever": (
        SiteRow(site=SITE),
        [UrlRow(URL, Status.REFUSED, visit=1, reason="robots")],
        [record("refused", "robots")],
        ["refused: robots: ", "it is not asked again"],
    ),
    "no page": (SiteRow(site=SITE), [], [record("no_page", "soft_404")], ["no page: soft_404: "]),
    "failed some times": (
        PARKED,
        [UrlRow(URL, Status.FETCH_ERROR, place=Priority.HIT, attempts=2)],
        [],
        [
            "could not be fetched so far; 2 attempts failed",
            "waits among the hits",
            "parked until 2023-11-14 22:14:20Z: robots.txt:http_503: ",
            f"3 failures in a row, the last at {THEN}",
        ],
    ),
    "its host failed before": (
        PARKED,
        [UrlRow(URL, place=Priority.HIT)],
        [],
        ["not requested yet", "robots.txt:http_503"],
    ),
    "its record expired": (
        SiteRow(site=SITE),
        [UrlRow(URL, Status.ERROR, visit=4, reason="tls_expired")],
        [],
        ["could not be fetched: tls_expired: ", "visit 4", "record has left the log"],
    ),
    "a redirect leads to it": (
        SiteRow(site=SITE),
        [UrlRow(URL, Status.REDIRECTION)],
        [],
        ["another URL of the site redirects to it"],
    ),
    "not known, but its site is": (
        STOPPED,
        [],
        [record("failed", "dns_no_name", url=f"{URL}b")],
        ["not in the log", f"stopped since {THEN}"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_crawl_says_how_it_failed(farmwatch: Runner, tmp_path: Path, name: str) -> None:
    """The last outcome with its reason in words, its time and number, and what comes next; exit code 1."""
    row, urls, pages, wanted = CASES[name]
    log = crawled(tmp_path, row, urls, pages)
    for spelling in (URL, f"{URL}/"):  # a final slash is ignored
        ran = farmwatch("page", spelling, "--log", log)
        assert ran.code == Exit.PROBLEM
        assert [words for words in wanted if words not in ran.err] == []
        assert ("not in the log:" in ran.err) is (name == "not known, but its site is")
        assert ran.err.count("\n") == 1


def test_the_console_says_it_too(tmp_path: Path) -> None:
    """The page of a URL that failed is none, and has the failure and what ends it."""
    row, urls, pages, _ = CASES["failed for good"]

    async def visit(browser: Browser) -> list[Answer]:
        return [await browser.get("/page.json", {"url": url}) for url in (URL, f"{URL}/never")]

    failed, unknown = browse(crawled(tmp_path, row, urls, pages), tmp_path, visit)
    assert failed.status == unknown.status == 404
    for words in (
        "could not be fetched: dns_no_name: ",
        "visit 2, at",
        f"stopped since {THEN}",
        "what ends it: a new hit",
    ):
        assert words in failed.json["error"]
    assert "not in the log" in unknown.json["error"] and "dns_no_name" in unknown.json["error"]
