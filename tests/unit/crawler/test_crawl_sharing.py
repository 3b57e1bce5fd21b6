"""CRAWL with other processes, imports, and frontiers of other versions."""

from __future__ import annotations

import time

import msgspec
import pytest

from crawler.errors import OldFrontier
from crawler.fetch.jobs import FetchResult, Job
from crawler.fetch.thread import ClaimResult
from crawler.frontier.rows import TOTALS_KEY
from crawler.stages.crawl import CrawlStage
from stream.log.contract import partition_of
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.control_sites import control_site, control_url
from stream.schema.records import Decision, Hit
from stream.schema.vocabulary import FetchOutcome
from tests.support.web.crawl_driver import Committed, Store, driving, hits_of, settings_for

NOWHERE = settings_for("127.0.0.1:1")


def test_the_pace_is_shared_by_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetch thread gets this process's share of the partitions when it changes, and only then."""
    told: list[float] = []
    monkeypatch.setattr("crawler.fetch.thread.FetchThread.share", lambda _, share: told.append(share))
    stage = CrawlStage(NOWHERE, partitions=4)
    try:
        for owned in (4, 2, 2, 0, 1, 4):
            states = {p: KeyedState(Committed()) for p in range(owned)}
            stage.tick({p: Context(p, state, Meter(), 1000) for p, state in states.items()})
    finally:
        stage.close()
    assert told == [0.5, 0.25, 1.0]


def test_partitions_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A free slot goes to the site with the longest wait, in any partition."""
    asked: list[Job] = []
    answers: list[ClaimResult] = []
    monkeypatch.setattr("crawler.fetch.thread.FetchThread.submit", lambda _, jobs: asked.extend(jobs.values()))
    monkeypatch.setattr("crawler.fetch.thread.FetchThread.collect", lambda _: [answers.pop()] if answers else [])
    in_partition = {p: [f"s{n}.test" for n in range(99) if partition_of(f"s{n}.test", 4) == p] for p in (0, 3)}
    with driving(settings_for("127.0.0.1:1", max_in_flight=1)) as driver:
        for number, urls in enumerate((in_partition[0][:1], in_partition[3][:1], in_partition[0][1:5])):
            driver.round(hits_of(*(f"http://{site}/" for site in urls)), later_ms=5 * number)
        far_ms = time.time_ns() // 1_000_000 + 60_000
        answers.append(
            ClaimResult(1, FetchResult(job=asked[0], outcome=FetchOutcome.DEFERRED, started_ms=0, not_before_ms=far_ms))
        )
        driver.round(later_ms=20)
    assert [job.site for job in asked] == [in_partition[0][0], in_partition[3][0]]


def test_a_free_place_is_not_kept_by_sites_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Due sites without a request do not hold a free slot: the next site with a request gets it in the same round."""
    asked: list[Job] = []
    monkeypatch.setattr("crawler.fetch.thread.FetchThread.submit", lambda _, jobs: asked.extend(jobs.values()))
    sites = [site for n in range(400) if partition_of(site := f"s{n:03}.test", 4) == 0][:60]
    with driving(settings_for("127.0.0.1:1", max_in_flight=1)) as driver:
        stops = [Decision(id=site, site=site, stop=True, reason="llm") for site in sites[:-1]]
        driver.round([*hits_of(*(f"http://{site}/a" for site in sites)), *stops])
    assert [job.site for job in asked] == sites[-1:]
    assert {page.site for page in driver.store.pages} == set(sites[:-1])


def test_a_start_takes_on_a_long_frontier_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a start, before any delay is over, one batch reschedules at most a thousand due sites.

    The next batches reschedule the others.
    """
    monkeypatch.setattr("crawler.fetch.thread.FetchThread.submit", lambda *_: None)
    sites = [f"s{n}.test" for n in range(2500)]
    store = Store()
    settings = settings_for("127.0.0.1:1", delay_s=3600.0)
    with driving(settings, store) as first:
        first.round(hits_of(*(f"http://{site}/" for site in sites)))
    started_ms = time.time_ns() // 1_000_000 + 5

    def put_off() -> int:
        return sum((due_at or 0) > started_ms for state in store.states for _, due_at in state.rows.values())

    steps = [0]
    with driving(settings, store) as again:
        while steps[-1] < len(sites):
            again.round(later_ms=10)
            steps.append(put_off())
            assert 0 < steps[-1] - steps[-2] <= 1000


def test_a_pause_between_two_ticks_is_no_step_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two minutes in which a batch was tried again, a site that is due is asked at once, not a delay later."""
    asked: list[Job] = []
    monkeypatch.setattr("crawler.fetch.thread.FetchThread.submit", lambda _, jobs: asked.extend(jobs.values()))
    with driving(settings_for("127.0.0.1:1", delay_s=3600.0, max_in_flight=1)) as driver:
        driver.round(hits_of("http://a.test/", "http://b.test/"))
        assert len(asked) == 1
        driver.stage.lost(range(4))
        driver.round()  # both wait one delay from now on
        driver.round(later_ms=3_600_000 - 120_000)
        driver.round(later_ms=121_000)
    assert len(asked) == 2


@pytest.mark.parametrize("first", ["hit", "tick"])
def test_a_frontier_of_another_version_ends_the_process(first: str) -> None:
    """Rows of another format are not changed: the error is fatal and names the remedy."""
    committed = Committed()
    committed.rows[TOTALS_KEY] = (b"\x95\x01\x01\x00\x01\x00", None)  # format 1 had five fields
    context = Context(0, KeyedState(committed), Meter(), 1000)
    stage = CrawlStage(NOWHERE)
    try:
        with pytest.raises(OldFrontier, match="new log") as caught:
            if first == "hit":
                stage.process(hits_of("http://a.test/1")[0], None, context)
            else:
                stage.tick({0: context})
    finally:
        stage.close()
    assert caught.value.fatal and not caught.value.retriable and not context.state.changes()


def test_imported_hits_are_counted_and_passed_over() -> None:
    """A hit with an imported page leaves no row, nor does one of a control site; a real hit for the URL is crawled."""
    hit = hits_of("http://a.test/1")[0]
    taken = Hit(id="i", site=hit.site, url=hit.url, source="warc", imported=True)
    control = msgspec.structs.replace(taken, id="c", site=control_site(hit.site), url=control_url(hit.url))
    with driving(NOWHERE) as driver:
        driver.round([taken, control])
        assert not any(state.rows for state in driver.store.states)
        driver.round([hit])
    sample = driver.metrics.registry.get_sample_value
    assert sample("farmwatch_search_results_total", {"source": "warc", "outcome": "imported"}) == 2
    assert sample("farmwatch_search_results_total", {"source": "file", "outcome": "queued"}) == 1
