"""Commands on the log of a finished run: values; read-only ones change nothing and create no log."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from crawler.frontier.rows import Totals
from crawler.web.urls import page_id
from filters.rules.ruleset import load_ruleset
from stream.log.contract import Output, Topic
from stream.opening import open_log
from stream.schema.records import Hit, Page, SiteState, encode
from stream.schema.topics import HITS, PAGES, SITES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, SITE, URL, Runner, StandInDetector
from tests.support.logs.shared_templates import fill
from tests.support.web.console_browser import Answer, Browser, browse

pytestmark = pytest.mark.usefixtures("no_weights")


def test_rate_says_when_the_detector_is_not_the_configured_one(
    farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores of another detector than the configured one do not get the configured one's warning."""
    monkeypatch.setattr(StandInDetector, "identity", "newer/2")
    ran = farmwatch("rate", "--log", finished)
    assert "indicative only" not in ran.err
    assert f"{DETECTOR}: not a detector configured here" in ran.err
    (line,) = farmwatch("rate", "--json", "--log", finished).lines
    assert "not a detector configured here" in line["warning"]


def test_rate_before_any_up_says_what_waits(farmwatch: Runner, tmp_path: Path) -> None:
    """Hits without a site row are unread, and the line has the next step."""
    (tmp_path / "hits.txt").write_text("https://a.example/1\nhttps://b.example/2\n", encoding="utf-8")
    farmwatch("hits", "add", "hits.txt")
    assert "2 hits wait; start `farmwatch up`" in farmwatch("rate").err


def test_rate_says_how_many_sites_are_open(farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the frontier has active sites, `rate` says that the rate is not final; otherwise it does not."""
    assert "still crawled" not in farmwatch("rate", "--log", finished).out
    monkeypatch.setattr("farmwatch.share.current_rate.frontier_now", lambda *_: Totals(sites=5, active=1))
    assert "; 1 still crawled" in farmwatch("rate", "--log", finished).out
    assert "still crawled" not in farmwatch("rate", "--by", "source", "--log", finished).out  # it belongs to no group
    (line,) = farmwatch("rate", "--json", "--log", finished).lines
    assert (line["crawling"], line["without_pages"], line["open"]) == (1, 1, 0)


def test_rate_says_how_many_sites_state_a_preference(
    farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rate --verbose` and its JSON count the sites with a preference on the use by AI."""
    monkeypatch.setattr("farmwatch.share.current_rate.frontier_now", lambda *_: Totals(sites=5, preferring=2))
    assert "2 sites of the crawl with a preference" in farmwatch("rate", "--verbose", "--log", finished).out
    assert "preference" not in farmwatch("rate", "--log", finished).out
    assert [line["preferring"] for line in farmwatch("rate", "--json", "--log", finished).lines] == [2]


def test_sites_shortens_a_long_warning(farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sites` prints the first sentence of a long warning and where to find the rest; `rate --verbose` prints all."""
    monkeypatch.setattr(StandInDetector, "warning", "indicative only. And why.")
    assert "some-detector: indicative only (rate --verbose)" in farmwatch("sites", "--log", finished).err
    assert "And why." in farmwatch("rate", "--verbose", "--log", finished).err


def test_rate_of_an_empty_log_warns_of_nothing(farmwatch: Runner, tmp_path: Path) -> None:
    """Without a score there is no warning: the field is empty."""
    url = f"sqlite:{tmp_path / 'new'}"
    farmwatch("log", "topics", "--create", "--log", url)
    ran = farmwatch("rate", "--json", "--log", url)
    assert (ran.lines[0]["warning"], ran.err) == ("", "")
    assert farmwatch("doctor", "audit", "--log", url).code == Exit.OK


def test_sites_has_the_versions_of_each_row(farmwatch: Runner, finished: str) -> None:
    """A site judged by another ruleset shows its name and digest; one of two kinds of pages is marked."""
    row = SiteState(id="c.example", site="c.example", detector=DETECTOR, ruleset="mine", digest="ef94c0de12345678")
    row = msgspec.structs.replace(row, verdict="llm", method="deciles", mixed=True, method_digest="0a1b2c3d")
    with closing(open_log(finished)) as log:
        log.append([Output(SITES, 0, b"c.example", encode(row))])
    found = {row["site"]: row for row in farmwatch("sites", "--json", "--log", finished).lines}
    assert {site: (line["ruleset"], line["digest"]) for site, line in found.items()} == {
        "c.example": ("mine", "ef94c0de12345678"),
        **dict.fromkeys(("b.example", "kept.example"), ("default", load_ruleset("default").digest)),
    }
    assert [found["c.example"][name] for name in ("mixed", "method", "method_digest")] == [True, "deciles", "0a1b2c3d"]
    assert (found["b.example"]["mixed"], found["b.example"]["days"]) == (False, [])


def test_a_list_and_its_file_have_the_same_columns_everywhere(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Sites are alike by `sites --json`, in a file of `sites`, by `export`, in a release and in the console."""
    listed = farmwatch("sites", "--json", "--log", finished).lines
    farmwatch("sites", "-o", "sites.jsonl", "--log", finished)
    farmwatch("log", "export", "exported.jsonl", "--what", "sites", "--log", finished)
    for name in ("sites.jsonl", "exported.jsonl"):
        assert [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] == listed

    async def visit(browser: Browser) -> Answer:
        return await browser.get("/sites.json")

    assert browse(finished, tmp_path, visit).json["sites"] == listed


def test_pages_lists_each_page_with_why_it_is_no_article(farmwatch: Runner, finished: str) -> None:
    """A row per page of the log, of one host on request: its result, the rule that dropped it, and its score."""
    pages = farmwatch("pages", "--json", "--log", finished).lines
    results = {page["url"]: (page["result"], page["why"], page["flag"], page["p_llm"]) for page in pages}
    assert results[URL] == ("article", "", True, 0.97)
    assert {page["site"] for page in farmwatch("pages", SITE, "--json", "--log", finished).lines} == {SITE}
    dropped = farmwatch("pages", "--where", "result=dropped", "--json", "--log", finished).lines
    assert [page for page in pages if page["result"] == "dropped"] == dropped
    assert all(page["why"] == page["failed"][0] for page in dropped)


@pytest.mark.parametrize("command", [["rate"], ["sites"], ["page", URL], ["log", "topics"]])
def test_a_log_without_topics_is_told_plainly(farmwatch: Runner, tmp_path: Path, command: list[str]) -> None:
    """A log without topics causes no traceback; a missing log is an error with its name."""
    open_log(f"sqlite:{tmp_path / 'bare'}").close()
    ran = farmwatch(*command, "--log", f"sqlite:{tmp_path / 'bare'}")
    assert "no share" in ran.out or "no topics yet" in ran.err or ran.err in ("0 sites\n", "0 topics\n")
    absent = farmwatch(*command, "--log", f"sqlite:{tmp_path / 'absent'}")
    assert (absent.code, "there is no log yet" in absent.err) == (Exit.UNAVAILABLE, True)


def test_topics_shows_records_and_lag(farmwatch: Runner, finished: str) -> None:
    """Each topic with its records, and how far each group is behind; the table says what else counts as a record."""
    topics = {row["topic"]: row for row in farmwatch("log", "topics", "--json", "--log", finished).lines}
    assert topics["features"]["records"] == 2
    assert topics["features"]["lag"] == {"judge": 2}
    assert topics["control"]["partitions"] == 1
    assert "records: with heartbeats" in farmwatch("log", "topics", "--log", finished).err


def test_topics_forecasts_the_disk(farmwatch: Runner, tmp_path: Path) -> None:
    """Sizes, growth and limits of the topics; below, the end of the growth."""
    url, day_ms = f"sqlite:{tmp_path / 'grown'}", 86_400_000
    now_ms = time.time_ns() // 1_000_000
    with closing(open_log(url)) as log:
        log.create([Topic(PAGES, 1, retention_ms=4 * day_ms)])
        log.append([Output(PAGES, 0, b"k", bytes(1 << 20), timestamp_ms=now_ms - day * day_ms) for day in (10, 9, 1)])
    ran = farmwatch("log", "topics", "--log", url)
    assert ran.out.splitlines()[1].split("\t") == [*("pages", "3", "3.0 MiB", "307.2 KiB", "4 days", "measure 3", "1")]
    assert "retention ends the growth before the disk is full" in ran.err


def test_audit_json_counts_the_reasons(farmwatch: Runner, tmp_path: Path) -> None:
    """Refused hits are shown with their reason and its count."""
    url = f"sqlite:{tmp_path / 'refused'}"
    address = "http://a.example/closed"
    hit = Hit(id="h", site="a.example", url=address)
    page = Page(id="r", site="a.example", page_id=page_id(address), url=address, outcome="refused", reason="robots")
    with closing(open_log(url)) as log:
        log.create(all_topics(1, "e"))
        log.append([Output(topic, 0, b"a.example", encode(what)) for topic, what in ((HITS, hit), (PAGES, page))])
    report = farmwatch("doctor", "audit", "--json", "--log", url).json
    assert [step["reasons"] for step in report["steps"].values() if step["reasons"]] == [{"robots": 1}]


LOOKING = [
    ("rate",),
    ("rate", "--history"),
    ("sites",),
    ("log", "topics"),
    ("doctor", "audit"),
    ("runs",),
    ("runs", "show", "live"),
    ("page", URL),
    ("compare", "live", "live"),
    ("crawl", "frontier"),
    ("crawl", "frontier", "--site", SITE),
    ("review", "canaries"),
    ("cutover",),
    ("crawl", "--dry-run"),
    ("doctor",),
    ("pages",),
    ("site", SITE),
    ("hits", "list"),
]


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_a_command_that_looks_changes_no_file_of_the_log(
    farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A read-only command changes no name, size or time of a file, whatever it finds."""
    monkeypatch.setenv("FARMWATCH_CRAWL_CONTACT", "https://operator.example/")
    folder = Path(finished.removeprefix("sqlite:"))

    def snapshot() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}

    before = snapshot()
    ran = farmwatch(*command, "--log", finished)
    assert ran.code in (Exit.OK, Exit.PROBLEM, Exit.UNAVAILABLE)
    assert "reading only" not in ran.out + ran.err
    assert snapshot() == before


@pytest.mark.parametrize("there", [False, True], ids=["no folder", "an empty folder"])
@pytest.mark.parametrize(
    "command", ["rate", "doctor audit", "sites", "runs", "crawl frontier", "log topics", "crawl --dry-run"]
)
def test_a_command_that_looks_makes_no_log(farmwatch: Runner, tmp_path: Path, command: str, there: bool) -> None:
    """Without a log, a read-only command exits with 3 and one line; no folder or file is created."""
    folder = tmp_path / "log"
    if there:
        folder.mkdir()
    ran = farmwatch(*command.split(), "--log", f"sqlite:{folder}")
    assert (ran.code, "there is no log" in ran.err, len(ran.err.splitlines())) == (Exit.UNAVAILABLE, True, 1)
    assert list(tmp_path.rglob("*")) == [folder] * there


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A log with the rows of `fill`."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        fill(log)
    return url


def test_the_groups_are_listed(farmwatch: Runner, url: str) -> None:
    """As a table, and as JSON with the names of the sites; verdicts are those of the live run."""
    shown = farmwatch("lab", "templates", "groups", "--log", url)
    assert shown.code == Exit.OK, shown.err
    assert shown.out.splitlines()[1].split("\t") == ["4", "3", "2", "1", "0", "0", "1", "https://a.example/1"]
    assert shown.err == "2 templates\namong 6 sites with a template\n"
    (line,) = farmwatch("lab", "templates", "groups", "--json", "--limit", "1", "--log", url).out.splitlines()
    assert json.loads(line)["names"] == ["a.example", "b.example", "x.c.example", "y.c.example"]


def test_the_console_shows_them(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """/networks.json is the list of the command; a site leads to those that share its template."""

    async def visit(browser: Browser) -> list[Answer]:
        asked = ("/networks.json", "/networks", "/site?site=z.example", "/site.json?site=a.example")
        return [await browser.get(path) for path in (*asked, "/networks?id=2", "/networks?id=3")]

    twin, page, site, twin_of_site, of_template, unknown = browse(url, tmp_path, visit)
    rows = farmwatch("lab", "templates", "groups", "--json", "--log", url).lines
    assert twin.json["groups"] == [{key: value for key, value in row.items() if key != "names"} for row in rows]
    assert "https://a.example/1" in page.text and '<a href="/networks?id=2">2</a>' in page.text
    assert '<a href="/networks?id=2">shared with 1 site</a>' in site.text
    assert twin_of_site.json["template"] == {"id": "1", "other_sites": 3}
    assert '<a href="/site?site=a.example">' in of_template.text and "b.example" not in of_template.text
    assert unknown.status == 404 and "no template that several sites share" in unknown.text
