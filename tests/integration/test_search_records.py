"""Quota and progress of a source's round survive a restart."""

from __future__ import annotations

from crawler.sources.brave import Brave
from crawler.sources.ledger import Ledger
from crawler.sources.settings import BraveSettings
from crawler.sources.source import Query
from stream.log.contract import CleanupPolicy, Topic
from stream.schema.topics import CONTROL, HITS
from tests.support.web.search_desk import PARTITIONS, Desk, answer
from tests.support.worlds import World, on_embedded

QUERIES = [Query(f"q{n}", f"garden {n}") for n in range(4)]
SAID = {"web": {"results": [{"url": "https://a.example/"}, {"url": "https://b.example/"}]}}


@on_embedded
def test_a_round_and_its_quota_survive_the_process(world: World) -> None:
    """After two of four queries, the next process counts on and asks the other two; each hit exists once."""
    world.log.create([Topic(HITS, PARTITIONS), Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    settings = BraveSettings(rate=100.0, quota_month=10)
    desk = Desk(world.log, Brave(settings, "key"), settings, lambda _: answer(SAID))
    desk.stop_after = 2
    assert desk.run(QUERIES).ended == "stopped"
    desk.log, desk.stop_after = world.again(), None
    ledger = Ledger(desk.log, "brave")
    assert ledger.round is not None
    assert (ledger.round.done, ledger.usage.month_used) == (2, 2)
    summary = desk.run(QUERIES)
    assert (summary.queries, summary.left, len(desk.asked)) == (2, 6, 4)
    round_ = Ledger(world.again(), "brave").round
    assert round_ is not None and round_.finished
    ids = [hit.id for hit in desk.hits()]
    assert len(ids) == len(set(ids)) == 8


@on_embedded
def test_two_processes_see_each_others_requests(world: World) -> None:
    """Each process reads the other's counts before a request."""
    world.log.create([Topic(HITS, PARTITIONS), Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    settings = BraveSettings(rate=100.0, quota_day=3)
    one = Desk(world.log, Brave(settings, "key"), settings, lambda _: answer(SAID))
    other = Desk(world.again(), Brave(settings, "key"), settings, lambda _: answer(SAID))
    ledger = Ledger(one.log, "brave")
    other.run(QUERIES[:2], patience_s=1.0, kept=False)
    ledger.refresh()
    assert ledger.usage.day_used == 2
    assert one.run(QUERIES, patience_s=1.0, kept=False).queries == 1
