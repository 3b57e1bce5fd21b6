"""A log of archives alone, without a CRAWL process, and the crawl as `status` shows it, on every log."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.frontier.report import frontier_left, frontier_now
from crawler.frontier.rows import TOTALS_KEY, Totals, pack
from farmwatch.config.config import load
from farmwatch.daemon.maintenance import pass_for_crawl
from farmwatch.doctor.status import StatusReader
from replay.runs.lookup import names_of_live
from replay.runs.topology import inputs_of_live
from stream.log.contract import Commit, Log, Output, StateChange, wall_ms
from stream.processing import heartbeat
from stream.schema.control import Control
from stream.schema.records import Decision, Hit, Page, Record, encode
from stream.schema.topics import DECISIONS, HITS, PAGES, all_topics
from tests.support.worlds import World

SITE = "archived.example"


def put(log: Log, topic: str, record: Record) -> None:
    log.append([Output(topic, 1, record.site.encode(), encode(record))])


@pytest.fixture
def log(world: World) -> Log:
    """Two imported pages with their hits, a heartbeat, a decision, and a process of each stage but CRAWL."""
    made: Log = world.again()
    made.create(all_topics(2, "e"))
    for name in "ab":
        url = f"https://{SITE}/{name}"
        put(made, HITS, Hit(id=name, site=SITE, url=url, source="warc", imported=True))
        put(made, PAGES, Page(id=name, site=SITE, page_id=name, url=url, found_by="import", hits=[name]))
    put(made, DECISIONS, Decision(id=SITE, site=SITE, stop=True, reason="llm"))
    heartbeat.beat(made, 2, wall_ms())
    _, *others = inputs_of_live(names_of_live(Control(made))).items()
    for group, topics in others:
        for topic in topics:
            made.reset(group, topic, made.end(topic))
        world.owner(2, *topics, group=group, log=made)
    return made


def test_archives_alone_need_no_crawler(log: Log, world: World, tmp_path: Path) -> None:
    """Hits of imported pages wait for nobody: nothing is wrong until a hit is to be crawled; that one stays unread."""
    url = f"sqlite:{tmp_path}" if world.embedded else "kafka:of-the-world:9092"
    config = load(None, [f"log.state_folder={tmp_path}", f"log.url={url}"], {}).config
    pass_for_crawl(log)
    found = StatusReader(log, config).read()
    assert (found.wrong, [role.lag for role in found.roles]) == ([], [0] * 5)
    put(log, HITS, Hit(id="c", site=SITE, url=f"https://{SITE}/c"))
    put(log, HITS, Hit(id="d", site=SITE, url=f"https://{SITE}/d", imported=True))
    before = log.committed("crawl", HITS)
    pass_for_crawl(log)
    assert log.committed("crawl", HITS) == before
    (wrong,) = StatusReader(log, config).read().wrong
    assert "not running: crawl (" in wrong.found


def test_a_crawler_passes_its_hits_itself(log: Log, world: World) -> None:
    """While CRAWL has a process, nobody else moves its offsets."""
    member = world.owner(2, HITS, DECISIONS, group="crawl", log=log)
    pass_for_crawl(log)
    assert log.committed("crawl", HITS) == [None, None]
    member.close()


@pytest.mark.parametrize("rows", [3, 5000])
def test_the_sums_of_the_frontier_are_those_of_the_newest_commit(world: World, rows: int) -> None:
    """However many rows were written since, and without a row where a partition has no site."""
    world.topics("in", store="frontier")
    assert frontier_now(world.log, 2) == Totals()
    member = world.owner(2, "in", store="frontier")
    for sites in (1, 2):
        sums = StateChange(TOTALS_KEY, pack(Totals(sites=sites, active=1, queued=sites, fetched=7)))
        member.commit(Commit(state={1: [sums, *(StateChange(b"s\0u%d" % n, b"row") for n in range(rows))]}))
    assert frontier_now(world.log, 2) == frontier_left(world.log, 2) == Totals(sites=2, active=1, queued=2, fetched=7)
