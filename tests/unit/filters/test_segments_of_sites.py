"""Segments of the pages of a site: live, in a replay, and of a page that is fetched again."""

from __future__ import annotations

import pytest

from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from filters.stages.measure import MeasureStage
from stream.log.contract import Topic
from stream.memory.log import MemoryLog
from stream.schema.records import Features, Segments
from stream.schema.runs import features_of, memory_store, names_of
from stream.schema.topics import FEATURES, PAGES, all_topics
from tests.support.logs.stage_work import put, records, work
from tests.support.pages.page_records import fetched_page
from tests.support.pages.prose import PROSE

SITE = "a.example"
SETTINGS = MeasureSettings(workers=2)
RUN = "r1"


def listing(*stories: int) -> str:
    """A page with a teaser of each story."""
    cards = (
        f"<li class=card><h3><a href='/{n}'>Story {n}</a></h3><p>Story {n} tells what happened to {n} men.</p></li>"
        for n in stories
    )
    return f"<html><body><h1>News</h1><p>{PROSE}</p><ul>{''.join(cards)}</ul></body></html>"


def teasers(segments: list[Segments] | None) -> list[str]:
    """The stories of the teasers that count."""
    assert segments is not None
    texts = [text for of_kind in segments if of_kind.kind == "teaser" for text in of_kind.texts]
    return [text.split("\n")[0] for text in texts]


@pytest.fixture(scope="module")
def log(pool: ExtractionPool) -> MemoryLog:
    """Four visits of a site's pages, measured live and then by a replay."""
    log = MemoryLog(clock=lambda: 7)
    stages = [
        MeasureStage(SETTINGS, pool=pool),
        MeasureStage(SETTINGS, run=RUN, names=names_of(RUN, features_of(RUN)), replays=True, pool=pool),
    ]
    own = {features_of(RUN), f"templates.{RUN}", f"state.{memory_store(features_of(RUN), stages[1].epoch)}"}
    log.create([*all_topics(1, stages[0].epoch), *(Topic(name, 1) for name in own)])
    visits = [("/a", (1, 2, 3)), ("/b", (2, 3, 4, 5, 6)), ("/c", (4, 5, 6)), ("/a", (1, 2, 3)), ("/b", (3, 4, 7, 8))]
    for path, stories in visits:
        put(log, PAGES, fetched_page(f"https://{SITE}{path}", listing(*stories)))
    for stage in stages:
        work(log, stage, group=f"measure.{stage.run}")
    return log


def test_a_teaser_counts_once_a_site(log: MemoryLog) -> None:
    """What an earlier page has does not count again; a page fetched again is compared with those before it only."""
    live = [teasers(page.segments) for page in records(log, FEATURES, Features)]
    first, second = ["Story 1", "Story 2", "Story 3"], ["Story 4", "Story 5", "Story 6"]
    assert live == [first, second, [], first, ["Story 4", "Story 7", "Story 8"]]


def test_a_replay_of_pages_has_the_same_segments(log: MemoryLog) -> None:
    """A replay that measures the pages in the order of their fetches finds the segments of the live run."""
    live, replayed = (records(log, topic, Features) for topic in (FEATURES, features_of(RUN)))
    assert [page.segments for page in replayed] == [page.segments for page in live]
    assert len(replayed) == 5
