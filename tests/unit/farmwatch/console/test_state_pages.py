"""The console's pages on the state of farmwatch: flow, health, dead letters."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from html import escape
from pathlib import Path

import pytest

from replay.runs.control_update import ControlUpdate, update_control
from scoring.sites.registry import text_of_method
from scoring.sites.sprt import SiteTest, SprtParams
from stream.log.contract import Message, Output, partition_of
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Hit, SiteState, encode
from stream.schema.runs import LIVE, Run
from stream.schema.topics import HITS, SITES
from tests.support.front_door import PARTITIONS, SITE, Runner
from tests.support.web.console_browser import Answer, Browser, browse, visited


def test_the_funnel_is_the_sum_of_the_sites(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Hits, measured pages, articles and scored articles are those of `sites --json`; a canary is no site."""
    with closing(open_log(finished)) as log:
        for n, site in enumerate(("c.example", "d.example", "x.ab.3.1.human.canary.invalid")):
            row = SiteState(id=site, site=site, hits=7 + n, pages=5, articles=3, scored=2 - n)
            log.append([Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(row))])
    flow, page = visited(finished, tmp_path, "/flow.json", "/flow")
    rows = farmwatch("sites", "--json", "--log", finished).lines
    sums = {name: sum(row[name] for row in rows) for name in ("hits", "pages", "articles", "scored")}
    decided = sum(row["verdict"] in ("llm", "human") for row in rows)
    assert [stage["count"] for stage in flow.json["funnel"]] == [
        *(sums["hits"], len(rows), sums["pages"], sums["articles"], sums["scored"], decided)
    ]
    assert sums["hits"] == 15 and all(f'href="{escape(stage["list"])}"' in page.text for stage in flow.json["funnel"])


def test_a_count_leads_to_the_list_of_what_it_counts(finished: str, tmp_path: Path) -> None:
    """Each count of what became of the pages is that of its list, and the list is a file with the same rows."""
    (flow,) = visited(finished, tmp_path, "/flow.json")
    for kind, reasons in flow.json["outcomes"].items():
        for reason in reasons:
            twin, file = visited(finished, tmp_path, "/pages.json", "/pages.csv", kind=kind, why=reason["why"])
            rows = list(csv.DictReader(file.text.splitlines()))
            assert len(twin.json["pages"]) == len(rows) == reason["pages"]
            assert [row["url"] for row in rows] == [page["url"] for page in twin.json["pages"]]


@pytest.mark.usefixtures("no_weights")
def test_health_says_what_the_doctor_says(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """On request only: the checks and results of `farmwatch doctor --json`. A renewed page does not run them again."""
    (plain,) = visited(finished, tmp_path, "/health.json")
    twin, page, again = visited(finished, tmp_path, "/health.json", "/health", "/health.json", doctor="1")
    said = farmwatch("doctor", "--json", "--log", finished).json
    assert plain.json["doctor"] is None
    found = [(one["check"], one["state"]) for one in twin.json["doctor"]["results"]]
    assert found == [(one["check"], one["state"]) for one in said]
    assert again.json["doctor"] == twin.json["doctor"]
    assert "What the doctor says" in page.text and "trafilatura" in page.text


def test_health_says_the_disk_and_the_versions(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """The lines on the disk are those of `farmwatch log topics`; the versions those of program and live run."""
    method = text_of_method(SiteTest(SprtParams()))
    live = Run(
        name=LIVE, ruleset="mine", digest="0123abcd", detector="a-detector", epoch="an-epoch", site_method=method
    )
    with closing(open_log(finished)) as log:
        update_control(log, lambda _: ControlUpdate(live))
    (health,) = visited(finished, tmp_path, "/health.json")
    said = farmwatch("log", "topics", "--log", finished).err
    assert health.json["disk"] and all(line in said for line in health.json["disk"])
    versions = health.json["versions"]
    assert versions["farmwatch"] in farmwatch("--version").out
    shown = [versions[name] for name in ("ruleset", "detector", "site method", "feature epoch")]
    assert shown == ["mine 0123abcd", "a-detector", f"sprt {SiteTest(SprtParams()).digest}", "an-epoch"]


def test_flow_and_health_say_that_the_crawl_is_paused(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """In the words of the page Crawl, with who and why."""
    assert farmwatch("crawl", "pause", "--why", "a <b>look</b>", "--log", finished).code == 0
    crawl, flow, health = visited(finished, tmp_path, "/crawl.json", "/flow.json", "/health.json")
    assert flow.json["pause"] == health.json["pause"] == crawl.json["pause"] != ""
    for page in visited(finished, tmp_path, "/flow", "/health"):
        assert "the crawl is paused" in page.text and "a &lt;b&gt;look" in page.text


_HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"


@pytest.fixture
def url(finished: str) -> str:
    """URL of a log with three letters of CRAWL; the record of the last is unreadable."""
    hit = encode(Hit(id="h", site=SITE, url=f"https://{SITE}/{_HOSTILE}", title=_HOSTILE + "x" * 2000))
    with closing(open_log(finished)) as log:
        for offset, value in enumerate((hit, hit, f"\0{_HOSTILE}".encode())):
            message = Message(HITS, 0, offset, _HOSTILE.encode(), value, {}, 0)
            log.append([dead_letter(message, "crawl", KeyError(_HOSTILE), 1)])
    return finished


def test_a_letter_is_shown_as_the_command_shows_it(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """The group leads to its newest letter; the twin is `dead show --json`; no byte of a record becomes markup."""

    async def visit(browser: Browser) -> list[Answer]:
        pages = [await browser.get("/letters")]
        for letter in ("0/1", "0/2"):
            pages += [await browser.get(path, {"id": letter}) for path in ("/letter", "/letter.json")]
        return pages

    groups, page, twin, unreadable, other = browse(url, tmp_path, visit)
    assert 'href="/letter?id=0/2"' in groups.text
    for letter, answer in (("0/1", twin), ("0/2", other)):
        assert answer.json == farmwatch("log", "dead", "show", letter, "--json", "--log", url).json
    for shown in (page, unreadable):
        assert "&lt;script&gt;" in shown.text and "{{7*7}}" in shown.text
        assert "<script>alert" not in shown.text and "<img" not in shown.text
    assert "x" * 100 in page.text and "x" * 400 not in page.text


def test_a_letter_is_settled_alone(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """One letter is retried or dropped, and the others stay open. A second tab sees its state and no form."""

    async def visit(browser: Browser) -> list[Answer]:
        orders = (("0/0", "drop"), ("0/0", "retry"), ("0/1", "retry"), ("0/9", "drop"), ("1", "drop"))
        forms = [await browser.form("/letter?id=0/0", id=letter, order=order) for letter, order in orders]
        return [*[await browser.post("/letter", form) for form in forms], await browser.get("/letter?id=0/0")]

    dropped, late, retried, missing, wrong, after = browse(url, tmp_path, visit)
    assert (dropped.headers["Location"], retried.headers["Location"]) == ("/letter?id=0/0", "/letter?id=0/1")
    assert [answer.status for answer in (late, missing, wrong)] == [409, 404, 400] and "already dropped" in late.text
    assert "<form" not in after.text
    lines = farmwatch("log", "dead", "list", "--json", "--log", url).out.splitlines()
    assert [one["state"] for one in map(json.loads, lines)] == ["dropped", "waiting", "open"]


def test_the_list_of_letters_reads_the_newest_alone(
    farmwatch: Runner, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts the newest of each partition as `dead list` has them, and says how many are before them."""
    assert farmwatch("log", "dead", "drop", "0/2", "--log", url).code == 0
    monkeypatch.setattr("replay.rows.dead_letters.NEWEST", 2)
    twin, page = visited(url, tmp_path, "/letters.json", "/letters")
    (group,) = twin.json["letters"]
    assert (group["open"], group["settled"], twin.json["older"]) == (1, "1 dropped", 1)
    assert "Up to 1 older one:" in page.text


def test_a_letter_that_is_not_there_is_said(url: str, tmp_path: Path) -> None:
    """An unknown place is 404; no place, or one beyond all numbers of the log, is 400."""

    async def visit(browser: Browser) -> list[int]:
        return [(await browser.get("/letter", {"id": text})).status for text in ("0/7", "99/0", "", "0/" + "9" * 5000)]

    assert browse(url, tmp_path, visit) == [404, 404, 400, 400]
