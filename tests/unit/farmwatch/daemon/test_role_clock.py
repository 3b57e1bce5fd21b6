"""The clock of a role while the machine's clock is set: here, for the whole process of the test."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.config.config import load
from farmwatch.config.opening import open_configured
from stream.log.contract import Output, partition_of
from stream.processing.metrics import Metrics
from stream.schema.records import Page, decode, encode
from stream.schema.roles import Role
from stream.schema.topics import HITS, PAGES
from tests.support.logs.loops import count
from tests.support.processes.farm import PARTITIONS, REPRODUCIBLE
from tests.support.processes.roles_here import roles_at_work
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import hits_of
from tests.support.web.loopback import Web, page

SITE, PAGES_AFTER = "a.test", 5
YEAR_S = 365 * 86_400


def test_pages_are_dated_right_while_the_clock_is_a_year_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CRAWL counts the step, goes on, and dates the pages that it fetches meanwhile by its own time."""
    began_ms = time.time_ns() // 1_000_000
    wall_ns, wall_s, metrics = time.time_ns, time.time, Metrics()
    hits = hits_of(*(f"http://{SITE}/{number}" for number in range(2 * PAGES_AFTER)))
    with Web() as web:
        web.routes |= {f"{SITE}/{number}": page("page") for number in range(2 * PAGES_AFTER)}
        own = {"log.url": f"sqlite:{tmp_path / 'log'}", "crawl.resolve_to": f'{{"*" = "{web.target}"}}'}
        config = load(None, [f"{path}={value}" for path, value in (REPRODUCIBLE | own).items()], {}).config
        with roles_at_work(config, {Role.CRAWL: metrics}), closing(open_configured(config)) as log:

            def pages() -> list[Page]:
                found = [message for p in range(PARTITIONS) for message in log.read(PAGES, p)]
                return [decode(Page, message.value or b"") for message in found]

            def put(first: int) -> None:
                new = hits[first : first + PAGES_AFTER]
                log.append([Output(HITS, partition_of(SITE, PARTITIONS), SITE.encode(), encode(hit)) for hit in new])

            wait_until(lambda: HITS in log.topics(), "the topics")
            put(0)
            wait_until(lambda: len(pages()) == PAGES_AFTER, "the first pages")
            with monkeypatch.context() as patch:
                patch.setattr(time, "time_ns", lambda: wall_ns() + YEAR_S * 1_000_000_000)
                patch.setattr(time, "time", lambda: wall_s() + YEAR_S)
                wait_until(lambda: count(metrics, "clock_steps_total", direction="forward") == 1, "the step")
                put(PAGES_AFTER)
                wait_until(lambda: len(pages()) == 2 * PAGES_AFTER, "the other pages")
            ended_ms = time.time_ns() // 1_000_000
            assert all(began_ms <= page.fetched_at <= ended_ms for page in pages())
