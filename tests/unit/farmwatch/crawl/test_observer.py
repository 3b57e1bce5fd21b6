"""The observer's thread stops the crawl when all work is done, and reports its own errors."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawler.frontier.rows import TOTALS_KEY, Totals, pack
from farmwatch.config.config import Config
from farmwatch.config.opening import open_configured
from farmwatch.config.settings import LogSettings
from farmwatch.config.topic_limits import create_topics
from farmwatch.crawl.observer import CrawlObserver
from farmwatch.crawl.watch import CrawlWatch
from stream.log.contract import Commit, Log, StateChange
from stream.log.errors import LogUnavailable, UnknownTopic
from stream.schema.topics import FRONTIER_STORE, HITS
from stream.text.user_errors import Exit
from tests.support.waiting import wait_until

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
    return CrawlObserver(config, view=None, stop=stop, until_done=True, every_s=0.01, **parts)


def test_a_crawl_with_nothing_to_do_is_ended(config: Config) -> None:
    """--until-done sets `stop` once no hit is unread and no site active."""
    stop = threading.Event()
    with observer_of(config, stop).observing():
        assert stop.wait(SOON_S)


def test_sites_of_another_process_are_named(config: Config) -> None:
    """A crawl without open work waits for the sites of a running `up`, and the view shows it."""
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
