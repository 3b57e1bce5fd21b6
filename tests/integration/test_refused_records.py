"""Records that the log does not take for their size: one dead letter each, and the stage goes on."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest

from crawler.stages.crawl import CrawlStage
from stream.kafka.log import KafkaLog
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.log.errors import LogUnavailable, RecordTooLarge
from stream.memory.log import MemoryLog
from stream.processing.loop import LoopSettings
from stream.processing.stage import Context
from stream.schema.records import Decision, Hit, Page, decode, encode
from stream.schema.topics import DEAD_LETTERS, HITS, PAGES, all_topics
from tests.support.limits import with_limits
from tests.support.logs.loops import Around, Copying, cycle, decisions, letters, loop_on, put_hits, refusing
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import hits_of, settings_for
from tests.support.web.loopback import Web, page

LIMIT, LARGE = 20_000, 60_000


class Growing(Copying):
    """Writes as many bytes as a hit's URL says, on the topic or in the state that its title names."""

    name = "growing"
    store = "sizes"

    def process(self, record: Hit, prepared: Any, ctx: Context) -> None:
        noise = os.urandom(int(record.url))
        ctx.state.put(record.id.encode(), noise if record.title == "state" else b"")
        reason = noise.hex() if record.title == "out" else ""
        ctx.emit("out", Decision(id=record.id, site=record.site, stop=False, reason=reason))


def put(log: KafkaLog, sizes: Mapping[str, int], place: str) -> None:
    hits = [Hit(id=id, site="a.example", url=str(size), title=place) for id, size in sizes.items()]
    log.append([Output("in", 0, b"a.example", encode(hit)) for hit in hits])


@pytest.mark.kafka
@pytest.mark.parametrize(("place", "refusing_topic"), [("out", "out"), ("state", "state.sizes")])
def test_a_record_that_the_broker_refuses_is_one_dead_letter(
    kafka_log: KafkaLog, place: str, refusing_topic: str
) -> None:
    """Above max.message.bytes, an output or row dead-letters its input, naming the setting; others come once each."""
    kafka_log.create([*(Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)), _changelog()])
    _limit(kafka_log, refusing_topic)
    before, after = ({f"{when} {n}": LIMIT // 4 for n in range(4)} for when in ("before", "after"))
    put(kafka_log, {**before, "large": LARGE, "larger": 2 * LARGE, **after}, place)
    loop, stop = loop_on(kafka_log, Growing()), threading.Event()
    wait_until(lambda: loop.cycle(stop) and not any(loop._member.lag().values()), "all records to be read")
    found = letters(kafka_log, [0])
    assert [(letter.stage, letter.offset) for letter in found] == [("growing", 4), ("growing", 5)]
    assert all("max.message.bytes" in letter.error and refusing_topic in letter.error for letter in found)
    assert [decision.id for decision in decisions(kafka_log, [0])] == [*before, *after]


@pytest.mark.kafka
def test_the_crawl_goes_on_without_a_page_that_the_broker_refuses(kafka_log: KafkaLog) -> None:
    """Its URL ends as failed after one more request, and the other pages of its batch and later ones are there."""
    kafka_log.create(all_topics(1, "e1"))
    _limit(kafka_log, PAGES)
    small, large = [f"/hit/{n}" for n in range(6)], "/hit/large"
    with Web() as web:
        web.routes |= {f"site.test{path}": page("hit") for path in small}
        web.routes[f"site.test{large}"] = page(os.urandom(LARGE).hex())
        hits = hits_of(*(f"http://site.test{path}" for path in (*small[:3], large, *small[3:])))
        kafka_log.append([Output(HITS, 0, b"site.test", encode(hit)) for hit in hits])
        with closing(CrawlStage(settings_for(web.target, use_sitemaps=False))) as stage:
            loop, stop = loop_on(kafka_log, stage), threading.Event()
            wait_until(lambda: [loop.cycle(stop)] and len(_pages(kafka_log)) == 7, "all pages to end")
        asked = web.paths("site.test")
    ended = {page.url.removeprefix("http://site.test"): page for page in _pages(kafka_log)}
    assert (ended[large].outcome, ended[large].reason) == ("failed", "record_too_large")
    assert all(ended[path].outcome == "fetched" for path in small)
    assert asked.count(large) == 2


@pytest.mark.kafka
def test_a_dead_letter_that_the_broker_refuses_has_no_record(kafka_log: KafkaLog) -> None:
    """If the letter with its record is too large, it is written without: origin and error remain."""
    kafka_log.create([*(Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)), _changelog()])
    _limit(kafka_log, DEAD_LETTERS)
    bad = os.urandom(LARGE)
    kafka_log.append([Output("in", 0, b"a.example", bad)])
    put_hits(kafka_log, "after")
    loop, stop = loop_on(kafka_log, Copying()), threading.Event()
    wait_until(lambda: loop.cycle(stop) and not any(loop._member.lag().values()), "all records to be read")
    (letter,) = letters(kafka_log, [0])
    assert (letter.topic, letter.offset, letter.value) == ("in", 0, None)
    assert [decision.id for decision in decisions(kafka_log, [0])] == ["after"]


def test_a_record_refused_for_its_size_is_not_tried_again() -> None:
    """The first refused record rolls the batch back once. The batch is then committed without records of that size."""
    log = MemoryLog()
    log.create([Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)])
    put_hits(log, "one")
    refused = [RecordTooLarge("the limit", "out", 1), RecordTooLarge("the limit again", "out", 1)]
    loop = loop_on(log, Copying(), member=refusing(log.join("group", ["in"], member="one"), refused[0]))
    cycle(loop)
    assert [letter.error for letter in letters(log, [0])] == ["RecordTooLarge: the limit"]
    loop = loop_on(log, Copying(), member=refusing(log.join("other", ["in"], member="one"), *refused))
    with pytest.raises(RecordTooLarge, match="again"):  # a log that refuses what is not larger is broken
        cycle(loop)


def test_a_refused_size_is_tried_again_after_an_hour() -> None:
    """Until then records of that size are dead letters unsent; a limit that was raised meanwhile needs no restart."""
    log, now_s = MemoryLog(), [0.0]
    log.create([Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)])
    member = refusing(log.join("group", ["in"], member="one"), RecordTooLarge("the limit", "out", 1))

    def monotonic() -> float:
        now_s[0] += 0.01  # a back-off ends
        return now_s[0]

    loop = loop_on(log, Copying(), member=member, monotonic=monotonic)
    for at_s, id in ((0.0, "first"), (3000.0, "within"), (7000.0, "after")):
        now_s[0] = at_s
        put_hits(log, id)
        cycle(loop)
    assert [letter.offset for letter in letters(log, [0])] == [0, 1]
    assert [decision.id for decision in decisions(log, [0])] == ["after"]


def test_commits_between_failures_do_not_end_the_back_off() -> None:
    """Failures that follow each other soon wait longer and longer, also if other commits succeed in between."""
    log, now_s, settings = (
        MemoryLog(),
        [0.0],
        with_limits(LoopSettings(), linger_s=0.0, backoff_s=0.1, backoff_cap_s=60.0),
    )
    log.create([Topic(name, 1) for name in ("in", "out", DEAD_LETTERS)])
    joined, faults = log.join("group", ["in"], member="one"), list[Exception]()

    def commit(work: Any) -> None:
        if faults:
            raise faults.pop()
        joined.commit(work)

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            now_s[0] += timeout or 0.0
            return False

    loop = loop_on(log, Copying(), None, settings, Around(joined, commit=commit), monotonic=lambda: now_s[0])

    def fail() -> float:
        """Fail once, then commit; returns the wait in between."""
        faults.append(LogUnavailable("now and then"))
        put_hits(log, "one")
        before_s = now_s[0]
        while not loop.cycle(Stop()):
            pass
        return now_s[0] - before_s

    waits_s = [fail() for _ in range(5)]
    assert all(longer > 1.4 * shorter for shorter, longer in pairwise(waits_s))
    now_s[0] += 2 * settings.backoff_cap_s
    assert fail() <= settings.backoff_s


def _pages(log: KafkaLog) -> list[Page]:
    return [decode(Page, message.value) for message in log.read(PAGES, 0) if message.value]


def _changelog() -> Topic:
    return Topic("state.sizes", 1, CleanupPolicy.COMPACT)


def _limit(log: KafkaLog, topic: str) -> None:
    log._site.admin.set_topic_settings({log._site.full(topic): {"max.message.bytes": str(LIMIT)}})
