"""The audit on constructed logs: a complete run is clean; lost, duplicated and contradictory records are named."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from crawler.frontier.rows import Priority
from crawler.frontier.site_store import queue_key
from crawler.web.urls import fetch_id, page_bytes, page_id
from farmwatch.audit.audit import audit
from farmwatch.audit.report import AuditReport
from farmwatch.audit.scope import CRAWLED, JUDGED, MEASURED, SCORED, TALLIED
from stream.log.contract import At, Commit, Message, StateChange
from stream.memory.log import MemoryLog
from stream.processing import heartbeat
from stream.processing.retries import drop_of, retry_of
from stream.schema.records import Decision, Features, Hit, Page, RuleOutcome, Verdict
from stream.schema.topics import DEAD_LETTERS, DECISIONS, FEATURES, HITS, PAGES, RETRIES, SCORES, VERDICTS
from tests.support.runs.audit_world import OTHER, SITE, World


@pytest.fixture
def world() -> World:
    return World()


def queue(world: World, priority: Priority, done: bytes | None) -> None:
    """CRAWL reads the first hit and queues its page, or removes it from the queue (None)."""
    with closing(world.log.join("crawl", [HITS, "decisions"], member="one", store="frontier")) as member:
        for _ in range(5):
            member.poll(0.01, 10, 10**6)
        change = StateChange(queue_key(SITE, priority, 0), done)
        member.commit(Commit(offsets={At(HITS, 0): 1}, state={0: [change]}))


def broken(report: AuditReport) -> list[tuple[str, str]]:
    return [(b.step, b.id) for b in report.broken]


def test_a_complete_run_is_clean(world: World) -> None:
    """Fetched, refused, dropped, scored and abstained records are all accounted for, with counted reasons."""
    world.judged("1")
    world.judged("2", article=False)
    world.page("3", outcome="refused", reason="robots")
    fid = world.judged("4", scored=False)
    world.score(fid, page_id(f"http://{SITE}/4"), "digest-4", abstain="too_short")
    world.row(pages=3, articles=2, abstained=1)
    world.log.append([heartbeat.travelling(HITS, 0, {heartbeat.HEADER: "1"})])
    report = world.report()
    assert report.ok
    assert report.settled
    assert [(s.records, s.done) for s in report.steps.values()] == [(4, 4), (3, 3), (3, 3), (2, 2), (1, 1)]
    assert report.steps[CRAWLED].reasons == {"robots": 1}
    assert report.steps[SCORED].reasons == {"too_short": 1}


FETCH = fetch_id(f"http://{SITE}/1", 1)
STRAY: dict[str, Any] = {"id": "stray", "site": SITE, "page_id": "p", "url": "u"}
FAULTS: dict[str, tuple[str, str, Callable[[World], object]]] = {  # the named step and id, and its cause
    "lost page": (CRAWLED, "hit-1", lambda w: w.hit("1").row(0, 0)),
    "lost features": (MEASURED, FETCH, lambda w: (w.page("1"), w.row(0, 0))),
    "lost verdict": (JUDGED, FETCH, lambda w: (w.page("1"), w.features("1").row(0, 0))),
    "lost score": (SCORED, FETCH, lambda w: (w.judged("1", scored=False), w.row(1, 1, 0))),
    "lost score of segments": (SCORED, FETCH, lambda w: (w.judged("1", segments=True, scored=False), w.row(1, 1, 0))),
    "lost request for segments": (
        SCORED,
        FETCH,
        lambda w: (w.judged("1", article=False, segments=True), w.row(1, 1, 0)),
    ),
    "score of another site only": (
        SCORED,
        FETCH,
        lambda w: (
            w.judged("1", scored=False, text="same"),
            w.judged("1", site=OTHER, text="same"),
            w.row(1, 1, 0),
            w.row(1, 1, site=OTHER),
        ),
    ),
    "lost row": (TALLIED, SITE, lambda w: w.judged("1")),
    "row of two rulesets": (
        TALLIED,
        SITE,
        lambda w: (w.judged("1", rules="r1"), w.judged("2", rules="r2"), w.row(2, 2, rules="r2")),
    ),
    "doubled page": (CRAWLED, FETCH, lambda w: (w.judged("1"), w.page("1"), w.row(1, 1))),
    "doubled features": (MEASURED, FETCH, lambda w: (w.judged("1"), w.features("1").row(1, 1))),
    "doubled verdict": (
        JUDGED,
        FETCH,
        lambda w: (w.judged("1", article=False), w.judged("1", article=False, again=True), w.row(1, 0)),
    ),
    "doubled score": (
        SCORED,
        "digest-1:d/1",
        lambda w: w.score(w.judged("1"), page_id(f"http://{SITE}/1"), "digest-1").row(1, 1),
    ),
    "page lost where another stage gave up": (
        CRAWLED,
        "hit-1",
        lambda w: w.hit("1").bury("tally", HITS, 0, OTHER).row(0, 0),
    ),
    "score lost where TALLY gave up the verdict": (
        SCORED,
        FETCH,
        lambda w: (
            w.judged("1", scored=False),
            w.bury("tally", "score.requests", 0, OTHER),
            w.bury("tally", VERDICTS, 0, OTHER),
            w.row(1, 1, 0),
        ),
    ),
    "row lost where TALLY gave up another site": (
        TALLIED,
        SITE,
        lambda w: (
            w.judged("1"),
            w.bury("tally", VERDICTS, 9, OTHER),
            w.bury("tally", SCORES, 9, f"{OTHER} digest-1:d/1"),
        ),
    ),
    "features of nothing": (
        MEASURED,
        "stray",
        lambda w: (
            w.put(FEATURES, Features(**STRAY, epoch="e")).put(VERDICTS, Verdict(**STRAY, verdict="dropped")).row(1, 0)
        ),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(world: World, fault: str) -> None:
    """A missing, duplicated or contradictory record is broken, with its step and its id; no other record is."""
    step, name, come_about = FAULTS[fault]
    come_about(world)
    report = world.report()
    assert broken(report) == [(step, name)]
    assert not report.ok
    assert report.steps[step].broken == 1


def test_unread_records_wait(world: World) -> None:
    """A record beyond the committed offset of its reader is waiting, not broken."""
    world.page("1")
    world.log.reset("crawl", HITS, world.log.end(HITS))
    report = audit(world.log)
    assert report.ok
    assert not report.settled
    assert report.steps[MEASURED].waiting == 1
    assert report.steps[TALLIED].waiting == 1


def test_a_hit_in_the_frontier_waits(world: World) -> None:
    """A hit that CRAWL has read and queued is waiting, not lost."""
    world.hit("1")
    world.row(pages=0, articles=0)
    queue(world, Priority.HIT, page_bytes(f"http://{SITE}/1"))
    report = world.report()
    assert report.ok
    assert report.steps[CRAWLED].waiting == 1


@pytest.mark.parametrize(("run", "dead"), [("", 1), ("live", 1), ("other", 0)])
def test_a_dead_letter_is_a_reason(world: World, run: str, dead: int) -> None:
    """A page dead-lettered by MEASURE is dead, not broken; a letter for other features does not count."""
    world.page("1")
    world.bury("measure", PAGES, 0, SITE, run)
    world.row(pages=0, articles=0)
    report = world.report()
    assert report.ok is bool(dead)
    assert report.steps[MEASURED].dead == dead


@pytest.mark.parametrize(
    ("topic", "key"),
    [(HITS, SITE), (VERDICTS, SITE), (SCORES, f"{SITE} digest-1:d/1")],
    ids=["hit", "verdict", "score"],
)
def test_a_row_is_excused_by_a_letter_of_its_site(world: World, topic: str, key: str) -> None:
    """A dead letter of TALLY for a hit, verdict or score of a site excuses the row of the site."""
    world.judged("1")
    world.bury("tally", topic, 0, key)
    report = world.report()
    assert report.ok
    assert report.steps[TALLIED].dead == 1


def test_rules_and_measures_are_not_held_in_memory() -> None:
    """Memory grows only with the compared fields of verdicts and features."""

    def peak(width: int) -> int:
        world = World()
        rules = [RuleOutcome(f"rule-{i}", i / 7, "<=", 1.5, "pass") for i in range(width)]
        measures: dict[str, Any] = {f"measure-{i}": i / 7 for i in range(width)}
        for number in range(200):
            name, page = f"f{number}", f"p{number}"
            quality = {"main": [*measures.values()]}
            features = Features(
                id=name, site=SITE, page_id=page, url="u", epoch="e", measures=measures, quality=quality
            )
            world.put(FEATURES, features)
            world.put(VERDICTS, Verdict(id=name, site=SITE, page_id=page, url="u", verdict="dropped", rules=rules))
        tracemalloc.start()
        try:
            audit(world.log)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(100) < 3 * peak(1)  # the log reads 200 records at a time


def test_results_of_expired_records_are_expired() -> None:
    """Features with an expired verdict are expired, not broken; newer ones need theirs."""
    now = [1_000_000]
    world = World(MemoryLog(clock=lambda: now[0]))
    world.judged("1", article=False)
    now[0] += 100 * 86_400_000  # beyond what hits, pages and verdicts are kept, within what features are
    world.judged("2", article=False)
    lost = world.page("3")
    world.features("3")
    world.row(pages=2, articles=0)
    world.log.expire(now[0])
    report = world.report()
    assert broken(report) == [(JUDGED, lost)]
    step = report.steps[JUDGED]
    assert (step.records, step.expired, step.done) == (3, 1, 1)


def test_a_page_that_was_refused_and_fetched_on_a_later_visit_is_done_once() -> None:
    """A hit whose page failed and is fetched by a later visit is done, without a reason."""
    world = World()
    world.page("1", outcome="refused", reason="unreachable")
    assert audit(world.log).steps[CRAWLED].reasons == {"unreachable": 1}
    queue(world, Priority.HIT, page_bytes(f"http://{SITE}/1"))
    queued = audit(world.log).steps[CRAWLED]
    assert (queued.waiting, queued.done, queued.reasons) == (1, 0, {})
    queue(world, Priority.HIT, None)
    world.page("1", visit=2)
    report = audit(world.log)
    step = report.steps[CRAWLED]
    assert (step.records, step.done, step.broken, step.reasons) == (1, 1, 0, {})
    world.page("1", visit=2)
    assert [broken.how for broken in audit(world.log).broken if broken.step == step.name] == ["written twice"]


@pytest.mark.parametrize(("outcome", "reason"), [("unchanged", ""), ("failed", "http_500")])
def test_a_visit_without_a_new_page_changes_no_account(outcome: str, reason: str) -> None:
    """A later visit that finds the page unchanged, or fails, has no features; its hit is done once."""
    world = World()
    world.judged("1")
    world.page("1", visit=2, outcome=outcome, reason=reason)
    world.row(pages=1, articles=1)
    report = world.report()
    assert report.ok and report.settled
    first, features = report.steps[CRAWLED], report.steps[MEASURED]
    assert (first.records, first.done, first.reasons, features.records) == (1, 1, {}, 1)


def test_a_page_that_is_visited_again_waits_for_nothing() -> None:
    """While a fetched page waits for another visit, its hit is done."""
    world = World()
    world.judged("1")
    queue(world, Priority.AGAIN, page_bytes(f"http://{SITE}/1"))
    step = audit(world.log).steps[CRAWLED]
    assert (step.done, step.waiting, step.broken) == (1, 0, 0)


def test_an_imported_hit_is_accounted_for_by_its_own_page(world: World) -> None:
    """An imported page accounts only for its own hit; a search hit for the same URL has its own page."""
    url = f"http://{SITE}/1"
    taken = Page(
        id="taken", site=SITE, page_id=page_id(url), url=url, visit=0, found_by="import", hits=["taken-hit", "other"]
    )
    world.put("hits", Hit(id="taken-hit", site=SITE, url=url, source="warc", imported=True))
    world.put("pages", taken)
    world.put("hits", Hit(id="lost", site=SITE, url=f"http://{SITE}/2", source="warc", imported=True))
    world.put("hits", Hit(id="asked", site=SITE, url=url))
    step = world.report().steps[CRAWLED]
    assert (step.records, step.done, step.broken) == (3, 1, 2)
    assert [broken.id for broken in world.report().broken if broken.step == step.name] == ["lost", "asked"]


@pytest.mark.parametrize("at", range(1, 9))
def test_a_page_processed_during_the_audit_is_clean(world: World, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """A page that passes all stages during the audit breaks nothing."""
    world.judged("before")
    world.row(pages=1, articles=1)
    world.read_all()
    reads, plain = 0, world.log.read

    def reading(topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        nonlocal reads
        reads += 1
        if reads == at:
            world.judged("meanwhile")
            world.row(pages=2, articles=2)
            world.read_all()
        return plain(topic, partition, start, stop)

    monkeypatch.setattr(world.log, "read", reading)
    assert audit(world.log).broken == []
    assert reads >= at


@pytest.fixture
def dead(world: World) -> World:
    """A page that MEASURE dead-lettered."""
    world.page("1")
    world.bury("measure", PAGES, 0, SITE)
    world.row(pages=0, articles=0)
    return world


def retry(world: World, *, read: bool) -> None:
    (letter,) = world.log.read(DEAD_LETTERS, 0)
    world.log.append([retry_of(letter, letter)])
    if read:
        world.log.reset("measure", RETRIES, world.log.end(RETRIES))


@pytest.mark.parametrize(("read", "counts"), [(False, (1, 0, 1)), (True, (0, 1, 0))])
def test_a_retry_waits_until_its_stage_reads_it(dead: World, read: bool, counts: tuple[int, int, int]) -> None:
    """Until then the letter accounts for the record; then it excuses nothing, and without a result it is broken."""
    retry(dead, read=read)
    report = dead.report()
    step = report.steps[MEASURED]
    assert (step.dead, step.broken, report.waiting["measure"]) == counts
    assert report.ok is not read


def test_a_retried_page_counts_once(dead: World) -> None:
    """Its result makes it done; a second result is reported as written twice."""
    retry(dead, read=True)
    dead.features("1")
    dead.bury("judge", "features", 0, SITE)
    report = dead.report()
    assert report.ok
    assert (report.steps[MEASURED].done, report.steps[JUDGED].dead) == (1, 1)
    dead.features("1")
    assert "written twice" in [found.how for found in dead.report().broken]


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_dropped_letter_and_a_new_one_are_the_reason(dead: World, is_dropped: bool) -> None:
    """Dropping does not hide that the page has no result; after a retry that failed again its new letter says why."""
    if is_dropped:
        (letter,) = dead.log.read(DEAD_LETTERS, 0)
        dead.log.append([drop_of(letter)])
    else:
        retry(dead, read=True)
        dead.bury("measure", PAGES, 0, SITE)
    report = dead.report()
    assert report.ok
    assert report.steps[MEASURED].dead == 1


def test_hits_of_imported_pages_do_not_wait_for_the_crawler(world: World) -> None:
    """Nor do decisions on their sites: CRAWL skips the one, and has nothing to stop for the other."""
    url = f"http://{SITE}/1"
    world.put(HITS, Hit(id="taken", site=SITE, url=url, source="warc", imported=True))
    world.put(PAGES, Page(id="p", site=SITE, page_id=page_id(url), url=url, found_by="import", hits=["taken"]))
    world.put(DECISIONS, Decision(id=SITE, site=SITE, stop=True, reason="llm"))
    assert audit(world.log).waiting["crawl"] == 0
    world.put(HITS, Hit(id="asked", site=SITE, url=f"http://{SITE}/2"))
    assert audit(world.log).waiting["crawl"] == 2
