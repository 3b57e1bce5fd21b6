"""frontier and crawl --dry-run on logs before the first crawl, and their refusals."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from crawler.frontier.rows import SiteRow
from crawler.web.hits_file import make_hit
from filters.measure.epoch import feature_epoch
from filters.settings import MeasureSettings
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.processing.heartbeat import beat
from stream.schema.records import Decision, Hit, Record, encode
from stream.schema.topics import DECISIONS, HITS, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.web.frontier_log import frontier_log


def output(topic: str, record: Record) -> Output:
    """A record in its site's partition."""
    return Output(topic, partition_of(record.site, PARTITIONS), record.site.encode(), encode(record))


def hit(url: str, **fields: object) -> Hit:
    """A hit; `fields` replace some of it."""
    return msgspec.structs.replace(make_hit({"url": url}), **fields)


@pytest.fixture
def unread(tmp_path: Path) -> str:
    """URL of a log with hits and a decision that CRAWL has not read, a heartbeat and a broken record."""
    url = f"sqlite:{tmp_path / 'unread'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, feature_epoch(MeasureSettings())))
        beat(log, PARTITIONS, 1)
        log.append(
            [
                output(HITS, hit("http://new.example/1")),
                output(HITS, hit("http://new.example/2")),
                output(HITS, hit("http://done.example/1")),
                output(HITS, hit("http://archived.example/1", imported=True, source="warc")),
                Output(HITS, 0, b"x", b"no record"),
                output(DECISIONS, Decision(id="done.example", site="done.example", stop=True, reason="x")),
            ]
        )
    return url


def test_what_nobody_has_read_is_planned(farmwatch: Runner, unread: str) -> None:
    """Hits and decisions on the topics count as read; records that CRAWL would skip or dead-letter are reported."""
    ran = farmwatch("crawl", "--dry-run", "--json", "--log", unread)
    plans = {plan["site"]: plan for plan in ran.lines}
    assert set(plans) == {"new.example", "done.example", "archived.example"}
    assert plans["new.example"]["request"] == "robots" and plans["new.example"]["queued_in"]["hits"] == 2
    assert (plans["done.example"]["stopped_why"], plans["done.example"]["request"]) == ("site_decided", "")
    assert (plans["archived.example"]["imported"], plans["archived.example"]["request"]) == (1, "")
    assert "no name is looked up" in ran.err and ran.code == Exit.OK
    words = farmwatch("crawl", "--dry-run", "--log", unread).out
    assert "stopped: site_decided: TALLY has read enough" in words
    assert "1 hit came with a page from an archive, so not crawled" in words


def test_a_dry_run_writes_nothing(farmwatch: Runner, unread: str, tmp_path: Path) -> None:
    """Records, offsets and state do not change, so a later crawl is not affected."""

    def seen() -> object:
        with closing(open_log(unread)) as log:
            return (
                [log.end(topic) for topic in sorted(log.topics())],
                log.committed("crawl", HITS),
                [list(log.scan_state("frontier", partition)) for partition in range(PARTITIONS)],
            )

    before = seen()
    (tmp_path / "hits.txt").write_text("http://file.example/\n", encoding="utf-8")
    assert farmwatch("crawl", "--dry-run", "--hits", "hits.txt", "--log", unread).code == Exit.OK
    assert seen() == before


@pytest.mark.parametrize("named", ["New.Example", "https://new.example/2?x", "new.example."])
def test_a_host_may_be_named_in_any_way(farmwatch: Runner, unread: str, named: str) -> None:
    """Capitals, a URL and the root dot all name the host; one with control characters is refused."""
    assert "--site 'new.example': no such host" in farmwatch("crawl", "frontier", "--site", named, "--log", unread).err
    ran = farmwatch("crawl", "frontier", "--site", "a\x1b[2J", "--log", unread)
    assert ran.code == Exit.USAGE and "\x1b" not in ran.err


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_the_limit_says_that_there_is_more(farmwatch: Runner, unread: str, json: tuple[str, ...]) -> None:
    """A cut list is announced on stderr, also with JSON; a list that ends at the limit is not."""
    run = ("crawl", "--dry-run", "--log", unread, *json)
    ran = farmwatch(*run, "--limit", "2")
    assert len(ran.out.splitlines()) == (2 if json else 3)
    assert "the first 2 sites; --limit shows more" in ran.err
    assert "shows more" not in farmwatch(*run, "--limit", "3").err


def test_a_site_without_a_row_is_not_judged(farmwatch: Runner, tmp_path: Path) -> None:
    """`site` calls a site that the crawl knows and TALLY has not seen as lists call one without a scored article."""
    url = frontier_log(tmp_path, SiteRow("a.example", "http://x", queued=1, wanted=1))
    assert farmwatch("site", "a.example", "--log", url).out.startswith("a.example: not judged\n")


def test_a_host_parked_over_robots_txt_says_so(farmwatch: Runner, tmp_path: Path) -> None:
    """A host parked because robots.txt is unavailable has the reason, in the list and alone."""
    later = int(time.time() * 1000) + 3_600_000
    row = SiteRow("a.example", "http://x", parked_until=later, parked_why="robots.txt:http_503", queued=1, wanted=1)
    url = frontier_log(tmp_path, row, SiteRow("b.example", stopped_at=5, stopped="excluded"))
    said = "robots.txt was not available: the server failed"
    listed = farmwatch("crawl", "frontier", "--where", "state=parked", "--log", url)
    assert f"\trobots.txt:http_503\t{said}\t\n" in listed.out and "1 site; state 1 parked; 1 queued" in listed.err
    alone = farmwatch("crawl", "frontier", "--site", "a.example", "--log", url)
    assert f"): robots.txt:http_503: {said}\n" in alone.out
    (stopped,) = farmwatch("crawl", "frontier", "--where", "state=stopped", "--json", "--log", url).lines
    assert (stopped["site"], stopped["why"], stopped["stopped_at"]) == ("b.example", "excluded", 5)
    assert stopped["ends"] == "a new hit, after the exclusion has ended"


@pytest.mark.parametrize(
    "setting", ["proxy=proxy.example:3128", "signature.key=none.pem", 'nameservers=["no address"]', "name=a b"]
)
def test_a_dry_run_refuses_what_a_crawl_refuses(farmwatch: Runner, unread: str, tmp_path: Path, setting: str) -> None:
    """A setting, or a file that it names, with which no crawl starts: the same words and exit code, and no plan."""
    flags = ("--set", f"crawl.{setting}", "--set", "crawl.contact=https://crawler.example/", "--log", unread)
    dry, crawl = farmwatch("crawl", "--dry-run", *flags), farmwatch("crawl", "--until-done", *flags)
    assert (dry.code, dry.out) == (crawl.code, "") and dry.code != Exit.OK
    assert dry.err.removeprefix("farmwatch: ").strip() in crawl.err
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and "unread" not in file.parts]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("crawl", "--json"), "go with --dry-run"),
        (("crawl", "--limit", "7"), "go with --dry-run"),
        (("crawl", "--dry-run", "--member", "a"), "--member"),
        (("crawl", "--dry-run", "--allow-private"), "--allow-private"),
        (("crawl", "--dry-run", "--until-done"), "--until-done"),
        (("crawl", "--dry-run", "--limit", "-1"), "--limit. Must be >= 0"),
        (("crawl", "frontier", "--where", "state=waiting"), "state takes active, parked, resting, stopped"),
        (("crawl",), "contact"),
    ],
)
def test_what_does_not_fit_together_is_refused(farmwatch: Runner, arguments: tuple[str, ...], said: str) -> None:
    """Contradictory options, or a crawl without a contact, end with exit code 2 at once."""
    ran = farmwatch(*arguments)
    assert ran.code == Exit.USAGE and said in ran.err
