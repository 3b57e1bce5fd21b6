"""Canary pages are sent exactly once per round and partition, despite crashes, rebalances and broken files."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from farmwatch.canaries.rounds import CanaryRounds, PagesOf
from scoring.rates.canary import CanaryName
from scoring.stages.score import score_key
from scoring.stages.tally import TallyStage
from stream.log.contract import Output, partition_of
from stream.log.errors import LogUnavailable
from stream.memory.log import MemoryLog
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Page, Score, Verdict, decode, encode
from stream.schema.topics import DECISIONS, PAGES, SCORES, SITES, VERDICTS, all_topics
from tests.support.fake_detector import FakeDetector

pytestmark = pytest.mark.slow

PARTITIONS = 3
EVERY_S = 1000
KEEP_MS = 5_000_000
NAMES = [CanaryName(f"site{n}", f"{n:016x}", 2, 0, "llm" if n % 2 else "human") for n in range(8)]


def pages_of(number: int, now_ms: int) -> Iterator[Page]:
    """Two pages of each of eight sites."""
    for name in NAMES:
        site = name._replace(round=number).site
        for place in (1, 2):
            yield Page(id=f"{site}/{place}", site=site, page_id=f"{site}/{place}", url="", fetched_at=now_ms)


class Farm:
    """TALLY processes on one log; the test sets the clock."""

    def __init__(self, pages: PagesOf | None = pages_of) -> None:
        self.now_ms = 10_000_000
        self.log = MemoryLog(clock=lambda: self.now_ms)
        self.log.create(all_topics(PARTITIONS, "e"))
        self.pages = pages
        self.every_s = EVERY_S
        self.metrics = Metrics()

    def tally(self, name: str = "one") -> StageLoop:
        """A process that has joined."""
        pages = None if self.pages is None else self._pages
        rounds = CanaryRounds(pages, self.every_s, KEEP_MS, PARTITIONS)
        stage = TallyStage(FakeDetector().identity, canaries=rounds.tick)
        stage.poll_s = 0.001
        member = self.log.join(stage.name, list(stage.inputs), member=name, store=stage.store)
        return StageLoop(stage, member, metrics=self.metrics, clock=lambda: self.now_ms)

    def _pages(self, number: int, now_ms: int) -> Iterable[Page]:
        assert self.pages is not None
        return self.pages(number, now_ms)

    def work(self, *loops: StageLoop, cycles: int = 3) -> None:
        """Run some cycles of each process in turn."""
        for _ in range(cycles):
            for loop in loops:
                loop.cycle(threading.Event())

    def sent(self) -> Counter[str]:
        """Page id -> number of its records."""
        found: Counter[str] = Counter()
        for partition in range(PARTITIONS):
            for message in self.log.read(PAGES, partition):
                if message.value:
                    page = decode(Page, message.value)
                    assert partition_of(page.site, PARTITIONS) == partition
                    found[page.id] += 1
        return found


def expected(*numbers: int) -> Counter[str]:
    """Every page of these rounds once."""
    return Counter(page.id for number in numbers for page in pages_of(number, 0))


def test_a_round_is_sent_once() -> None:
    """All pages, each in the partition of its site, when a round starts; a round in which nobody ran is left out."""
    farm = Farm()
    loop = farm.tally()
    farm.work(loop)
    assert farm.sent() == expected(10)
    farm.now_ms += 999_000
    farm.work(loop)
    assert farm.sent() == expected(10)
    farm.now_ms += 1_000
    farm.work(loop)
    assert farm.sent() == expected(10, 11)
    sent = farm.metrics.registry.get_sample_value("farmwatch_canary_pages_sent_total")
    assert sent == sum(expected(10, 11).values())
    farm.now_ms += 5 * EVERY_S * 1000
    farm.work(farm.tally())  # a second member of that name fences the first, as a restart does
    assert farm.sent() == expected(10, 11, 16)


@pytest.mark.parametrize(("every_s", "wait_s", "number"), [(100, 100, 101), (5000, 5000, 3)])
def test_another_interval_takes_over(every_s: int, wait_s: int, number: int) -> None:
    """After a change of the interval, the next round of the new interval is sent, even with a lower number."""
    farm = Farm()
    farm.work(farm.tally())
    farm.every_s = every_s
    loop = farm.tally()
    farm.work(loop)
    assert farm.sent() == expected(10)
    farm.now_ms += wait_s * 1000
    farm.work(loop)
    assert farm.sent() == expected(10, number)


def test_two_processes_send_each_page_once() -> None:
    """Each sends the pages of its partitions; after a takeover, no page is sent again."""
    farm = Farm()
    one, two = farm.tally("one"), farm.tally("two")
    farm.work(one, two, cycles=6)
    assert farm.sent() == expected(10)
    farm.now_ms += EVERY_S * 1000
    farm.work(one)
    one._member.close()
    farm.work(two, cycles=6)
    assert farm.sent() == expected(10, 11)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["work", "crash", "restart", "wait"]), max_size=12))
def test_no_page_is_ever_sent_twice(steps: list[str]) -> None:
    """After any sequence of crashes and restarts, each started round is complete, and no page occurs twice."""
    farm = Farm()
    loop = farm.tally()
    for step in steps:
        if step == "wait":
            farm.now_ms += EVERY_S * 1000
        elif step == "restart":
            loop = farm.tally()
        elif step == "crash":
            commit, loop._member.commit = loop._member.commit, _refuse  # type: ignore[method-assign]
            loop.cycle(_stopped())
            loop._member.commit = commit  # type: ignore[method-assign]
        else:
            farm.work(loop)
    farm.work(loop, cycles=8)
    sent = farm.sent()
    assert set(sent.values()) == {1}
    rounds = {int(ident.split(".")[3]) for ident in sent}
    assert sent == expected(*rounds)
    assert farm.now_ms // (EVERY_S * 1000) in rounds


def _refuse(commit: object) -> None:
    raise LogUnavailable("the log is away")


def _stopped() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_a_broken_file_stops_nothing() -> None:
    """The error is logged once in five minutes; with a corrected file, the same round is sent."""
    calls = []

    def broken(number: int, now_ms: int) -> Iterator[Page]:
        calls.append(now_ms)
        raise ValueError("line 3: no JSON")

    farm = Farm(broken)
    loop = farm.tally()
    with capture_logs() as events:
        farm.work(loop, cycles=5)
    assert [event["event"] for event in events if event["log_level"] == "error"] == ["canaries_not_sent"]
    assert len(calls) == 1
    farm.pages = pages_of
    farm.now_ms += 300_000
    farm.work(loop)
    assert farm.sent() == expected(10)


@pytest.mark.parametrize("is_sending", [True, False])
def test_old_canary_sites_are_removed(is_sending: bool) -> None:
    """Row and tally of an old canary site are removed, even without a configured file; other sites stay."""
    farm = Farm()
    farm.work(farm.tally())
    old = NAMES[0]._replace(round=10).site
    for site in (old, "real.example"):
        verdict = Verdict(id=site, site=site, page_id=site, url="", verdict="dropped", first_failed="words", digest="d")
        farm.log.append([Output(VERDICTS, partition_of(site, PARTITIONS), site.encode(), encode(verdict))])
    farm.pages = pages_of if is_sending else None
    loop = farm.tally()
    farm.work(loop)
    assert rows(farm) == {old, "real.example"}
    farm.now_ms += KEEP_MS - 1
    farm.work(loop)
    assert old in rows(farm)
    farm.now_ms += 1
    farm.work(loop)
    assert rows(farm) == {"real.example"}
    assert is_sending or farm.sent() == expected(10)
    keys = {key for partition in range(PARTITIONS) for key, _ in farm.log.scan_state("tally", partition)}
    assert old.encode() not in keys and b"real.example" in keys
    assert is_sending == any(b".canary." in key for key in keys)


def rows(farm: Farm) -> set[str]:
    """Sites whose newest record is not a tombstone."""
    newest: dict[str, bool] = {}
    for partition in range(PARTITIONS):
        for message in farm.log.read(SITES, partition):
            newest[message.key.decode()] = message.value is not None
    return {site for site, there in newest.items() if there}


@pytest.mark.parametrize(("site", "stops"), [("real.example", 1), (NAMES[1]._replace(round=10).site, 0)])
def test_canaries_cause_no_decision(site: str, stops: int) -> None:
    """A site with enough articles causes a stop decision for CRAWL; a canary site, which is not crawled, does not."""
    farm = Farm(lambda number, now_ms: [])
    detector = FakeDetector().identity
    for number in range(12):
        fields: dict[str, Any] = {"site": site, "page_id": str(number), "text_digest": f"t{number}", "fetched_at": 1}
        verdict = Verdict(id=str(number), url="", verdict="article", digest="d", ruleset="r", **fields)
        score = Score(
            id=f"t{number}:{detector}", fetch_id=str(number), detector=detector, p_llm=1.0, flag=True, **fields
        )
        partition = partition_of(site, PARTITIONS)
        farm.log.append(
            [
                Output(VERDICTS, partition, site.encode(), encode(verdict)),
                Output(SCORES, partition, score_key(score).encode(), encode(score)),
            ]
        )
    farm.work(farm.tally(), cycles=30)
    assert rows(farm) == {site}
    found = [message for partition in range(PARTITIONS) for message in farm.log.read(DECISIONS, partition)]
    assert len(found) == stops
