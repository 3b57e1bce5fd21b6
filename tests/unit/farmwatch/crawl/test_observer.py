"""The thread beside a crawl: it ends the crawl when all is done, and no failure of it goes unheard."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawler.frontier.rows import TOTALS_KEY, Totals, pack
from farmwatch.config.config import Config
from farmwatch.config.opening import create_topics, open_configured
from farmwatch.config.settings import LogSettings
from farmwatch.crawl import observer as observer
from farmwatch.crawl.observer import CrawlObserver
from farmwatch.crawl.watch import CrawlWatch
from stream.log.contract import Commit, StateChange
from stream.log.errors import LogUnavailable, UnknownTopic
from stream.schema.topics import FRONTIER_STORE, HITS
from stream.text.user_errors import Exit
from tests.support.farm import wait_for

SOON_S = 20.0


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """An empty log of two partitions, laid out."""
    found = msgspec.structs.replace(Config(), log=LogSettings(url=f"sqlite:{tmp_path / 'log'}", partitions=2))
    log = open_configured(found)
    create_topics(log, found)
    log.close()
    return found


def observer_of(config: Config, stop: threading.Event, **changes: Any) -> CrawlObserver:
    """One that looks all the time and waits for the end of all work."""
    parts = {"watch": CrawlWatch(), "hurry": threading.Event(), **changes}
    return CrawlObserver(config, view=None, stop=stop, until_done=True, every_s=0.01, **parts)


def test_a_crawl_with_nothing_to_do_is_ended(config: Config) -> None:
    """--until-done sets `stop` once no hit is unread and no site active."""
    stop = threading.Event()
    with observer_of(config, stop).observing():
        assert stop.wait(SOON_S)


def test_sites_of_another_process_are_named(config: Config) -> None:
    """Beside a running `up`, a crawl that is through waits for the sites that `up` crawls, and says so."""
    with closing(open_configured(config)) as log:
        other = log.join("crawl", [HITS], member="other", store=FRONTIER_STORE)
        other.poll(0, 1, 1)
        sums = pack(Totals(sites=2, active=2))
        other.commit(Commit(state={0: [StateChange(TOTALS_KEY, sums)]}))
        stop, watch = threading.Event(), CrawlWatch()
        with observer_of(config, stop, watch=watch).observing():
            wait_for(lambda: watch.figures().waits_for == "2 sites that another process crawls", SOON_S, "the words")
            assert not stop.is_set()
            other.commit(Commit(state={0: [StateChange(TOTALS_KEY, pack(Totals(sites=2)))]}))
            assert stop.wait(SOON_S)
        other.close()


def test_a_log_that_is_away_is_asked_again(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """An opening that fails for now does not end --until-done: the next one that works does."""
    failed: list[int] = []

    def away(asked: Config, *, read_only: bool) -> object:
        if len(failed) < 2:
            failed.append(1)
            raise LogUnavailable("away for a while")
        return open_configured(asked, read_only=read_only)

    monkeypatch.setattr(observer, "open_configured", away)
    monkeypatch.setattr(observer, "_ASK_S", {"sqlite": 0.0})
    stop = threading.Event()
    with observer_of(config, stop).observing():
        assert stop.wait(SOON_S)
    assert len(failed) == 2


def test_what_no_second_try_mends_ends_the_crawl_and_is_told(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl is stopped, drains, and the error is the command's; a second Ctrl-C meanwhile still ends it at once."""

    def broken(_: Config, *, read_only: bool) -> object:
        raise UnknownTopic("hits")

    monkeypatch.setattr(observer, "open_configured", broken)
    stop, hurry, codes = threading.Event(), threading.Event(), list[int]()
    with pytest.raises(UnknownTopic), observer_of(config, stop, hurry=hurry, end_process=codes.append).observing():
        assert stop.wait(SOON_S)
        hurry.set()
        wait_for(lambda: codes, SOON_S, "the end of the process")
    assert codes == [Exit.INTERRUPTED]
