"""The status of a crawl: its figures, their line, and the thread that observes."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawler.frontier.rows import TOTALS_KEY, Totals, pack, site_key
from crawler.stages.crawl import CrawlStage
from farmwatch.config.config import Config
from farmwatch.config.opening import open_configured
from farmwatch.config.settings import LogSettings
from farmwatch.config.topic_limits import create_topics
from farmwatch.crawl.observer import CrawlObserver
from farmwatch.crawl.watch import CrawlFigures, CrawlWatch
from stream.log.contract import Commit, Log, Member, Output, StateChange, Topic
from stream.log.errors import Fenced, LogUnavailable, UnknownTopic
from stream.memory.log import MemoryLog
from stream.schema.records import Page, encode
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES
from stream.text.user_errors import Exit
from stream.text.wording import lasting, moment, queue_in_words, size, when
from tests.support.waiting import wait_until

FIGURES = CrawlFigures(
    waits_for="",
    active=230,
    parked=4,
    resting=120,
    stopped=31,
    queued=812,
    fetched_now=1234,
    recent_per_s=6.4,
    in_flight=12,
    received_bytes=47_500_000,
    next_due_ms=-2000,
    outcomes={"fetched": 380, "robots": 12, "http_404": 8},
)


class Clock:
    """Both clocks of the watch, set by the test."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def seconds(self) -> float:
        return self.now_s

    def ms(self) -> int:
        return int(self.now_s * 1000)


def page(number: int, outcome: str, reason: str = "") -> Output:
    """A page record as CRAWL appends it."""
    record = Page(id=f"i{number}", site="a.test", page_id="p", url="http://a.test/", outcome=outcome, reason=reason)
    return Output(PAGES, 0, b"a.test", encode(record))


class BusyStage(CrawlStage):
    """A stage with two requests in flight."""

    in_flight = 2

    def __init__(self) -> None:
        self.received_bytes = 520
        self.paused = {"operator": "by ann@desk: her reason", "disk": "1 B free"}


def observed(partitions: int) -> tuple[Clock, CrawlWatch, Member, MemoryLog]:
    """A watch over a member that has polled once."""
    log, clock = MemoryLog(), Clock()
    log.create([Topic(name, partitions) for name in (HITS, PAGES, "state.frontier")])
    watch = CrawlWatch(clock=clock.ms, monotonic=clock.seconds)
    member = watch.observe(BusyStage(), log.join("crawl", [HITS], member="m", store="frontier"))
    member.poll(0, 1, 1)
    return clock, watch, member, log


def test_the_line_has_every_figure() -> None:
    """Pages and their rate, bytes, requests in flight, sites by state, the next due site, queue, and outcomes."""
    assert FIGURES.text == (
        "1,234 pages fetched (6.4/s), 12 requests in flight, sites 226 active, 4 parked, 120 resting, 31 stopped;"
        " 812 URLs queued; due: the oldest for 2 s; 45.3 MiB received; last minute: fetched 380, robots 12, http_404 8"
    )
    assert "due: the next in 10 min;" in replace(FIGURES, next_due_ms=600_000).text
    assert "due: no site is queued;" in replace(FIGURES, next_due_ms=None).text


def test_a_pause_is_shown() -> None:
    """The line says why no request starts."""
    _, watch, _, log = observed(1)
    assert watch.figures().text.endswith("; paused: by ann@desk: her reason; 1 B free")
    log.close()


def test_a_crawl_without_partitions_says_what_it_waits_for() -> None:
    """Before the first assignment, the line names that state."""
    assert CrawlFigures().text.endswith("; waits for the log to give this process its partitions")


def test_no_page_can_control_the_terminal() -> None:
    """A reason with control characters, as in a broken record, is shown as plain text."""
    assert "\x1b" not in CrawlFigures(outcomes={"\x1b[2Jx": 1}).text


def test_only_committed_records_are_counted() -> None:
    """Records of a refused commit do not count; outcomes are dropped after a minute."""
    clock, watch, member, log = observed(1)
    totals = Totals(sites=9, active=4, parked=1, stopped=2, queued=7, fetched=3)
    member.commit(
        Commit(
            outputs=[page(1, "fetched"), page(2, "fetched"), page(3, "refused", "robots")],
            state={0: [StateChange(TOTALS_KEY, pack(totals)), StateChange(site_key("a.test"), b"x", due_at=97_000)]},
        )
    )
    log.join("crawl", [HITS], member="m", store="frontier").poll(0, 1, 1)  # another one takes the name
    with pytest.raises(Fenced):
        member.commit(Commit(outputs=[page(4, "fetched")], state={0: [StateChange(b"k", b"v")]}))
    clock.now_s += 4
    figures = watch.figures()
    assert (figures.fetched_now, figures.outcomes, figures.recent_per_s) == (2, {"fetched": 2, "robots": 1}, 0.5)
    assert (figures.in_flight, figures.received_bytes) == (2, 520)
    clock.now_s += 61
    assert (watch.figures().outcomes, watch.figures().fetched_now) == ({}, 2)


def test_the_sums_of_the_frontier_are_shown() -> None:
    """The figures have the sums of the owned partitions, and the longest wait of a due site."""
    clock, watch, member, _ = observed(2)
    totals = Totals(sites=9, active=4, parked=1, stopped=2, queued=7, fetched=3)
    changes = [StateChange(TOTALS_KEY, pack(totals)), StateChange(site_key("a.test"), b"x", due_at=97_000)]
    member.commit(Commit(state={0: changes, 1: [StateChange(TOTALS_KEY, pack(totals))]}))
    clock.now_s += 1
    member.poll(0, 1, 1)
    figures = watch.figures()
    assert (figures.active, figures.parked, figures.resting) == (8, 2, 6)
    assert (figures.stopped, figures.queued, figures.next_due_ms) == (4, 14, -4000)


def test_spans_are_readable() -> None:
    """At most two units, tenths of seconds below ten; moments relative to now; sizes and queues with units."""
    assert [lasting(span) for span in (0, 0.44, 9.96, 35, 59.7, 60, 200, 7500, 350_000)] == [
        *("0 s", "0.4 s", "10 s", "35 s", "1 min", "1 min", "3 min 20 s", "2 h 5 min", "4 d 1 h")
    ]
    assert (when(1000, 1010), when(61_000, 1000), when(0, 3_600_000)) == ("now", "in 1 min", "1 h ago")
    assert moment(1_777_636_805_000) == "2026-05-01 12:00:05Z"
    assert [size(n) for n in (0, 512, 46_387, 1_258_291, 5e9)] == ["0 B", "512 B", "45.3 KiB", "1.2 MiB", "4.7 GiB"]
    assert queue_in_words({"hits": 1, "links": 0, "again": 2000}) == "1 of hits, 2000 again"


SOON_S = 20.0


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A new log of two partitions, with its topics."""
    found = msgspec.structs.replace(Config(), log=LogSettings(url=f"sqlite:{tmp_path / 'log'}", partitions=2))
    log = open_configured(found)
    create_topics(log, found)
    log.close()
    return found


def observer_of(config: Config, stop: threading.Event, **changes: Any) -> CrawlObserver:
    """An observer that checks every 10 ms, and waits for the end of all work."""
    parts = {"watch": CrawlWatch(), "hurry": threading.Event(), **changes}
    return CrawlObserver(config, stop=stop, until_done=True, every_s=0.01, **parts)


def test_a_crawl_with_nothing_to_do_is_ended(config: Config) -> None:
    """--until-done sets `stop` once no hit is unread and no site active."""
    stop = threading.Event()
    with observer_of(config, stop).observing():
        assert stop.wait(SOON_S)


def test_sites_of_another_process_are_named(config: Config) -> None:
    """A crawl without open work waits for the sites of a running `up`, and the line names it."""
    with closing(open_configured(config)) as log:
        other = log.join("crawl", [HITS], member="other", store=FRONTIER_STORE)
        other.poll(0, 1, 1)
        sums = pack(Totals(sites=2, active=2))
        other.commit(Commit(state={0: [StateChange(TOTALS_KEY, sums)]}))
        stop, watch = threading.Event(), CrawlWatch()
        with observer_of(config, stop, watch=watch).observing():
            wait_until(lambda: watch.figures().waits_for == "2 sites that another process crawls", "the words", SOON_S)
            assert not stop.is_set()
            other.commit(Commit(state={0: [StateChange(TOTALS_KEY, pack(Totals(sites=2)))]}))
            assert stop.wait(SOON_S)
        other.close()


def test_an_unavailable_log_is_tried_again(config: Config) -> None:
    """--until-done waits for a log that opens."""
    failed: list[int] = []

    def open_log(config: Config) -> Log:
        if len(failed) < 2:
            failed.append(1)
            raise LogUnavailable("away for a while")
        return open_configured(config, read_only=True)

    stop = threading.Event()
    with observer_of(config, stop, open_log=open_log).observing():
        assert stop.wait(SOON_S)
    assert len(failed) == 2


def test_a_permanent_error_of_the_log_stops_the_crawl_and_is_raised(config: Config) -> None:
    """The crawl drains, and the command raises the error; a second Ctrl-C still ends the process at once."""

    def open_log(_: Config) -> Log:
        raise UnknownTopic("hits")

    stop, hurry, codes = threading.Event(), threading.Event(), list[int]()
    more: dict[str, Any] = {"hurry": hurry, "end_process": codes.append, "open_log": open_log}
    with pytest.raises(UnknownTopic), observer_of(config, stop, **more).observing():
        assert stop.wait(SOON_S)
        hurry.set()
        wait_until(lambda: codes, "the end of the process", SOON_S)
    assert codes == [Exit.INTERRUPTED]
