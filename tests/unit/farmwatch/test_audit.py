"""The audit on constructed logs: a complete run is clean; every way to lose, double or contradict a record is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from crawler.rows import Priority, queue_key
from crawler.urls import fetch_id, page_id
from farmwatch.audit import AuditReport, audit
from stream import heartbeat
from stream.dead_letters import dead_letter
from stream.log import At, Change, Commit, Message, Output
from stream.memory_log import MemoryLog
from stream.records import (
    Features,
    Hit,
    Page,
    Record,
    Score,
    ScoreRequest,
    SiteState,
    Verdict,
    encode,
)
from stream.topics import HITS, PAGES, all_topics

SITE = "a.example"
READ = {
    "crawl": ("hits", "decisions"),
    "measure": ("pages",),
    "judge": ("features",),
    "score": ("score.requests",),
    "tally": ("hits", "verdicts", "scores"),
}


@dataclass
class World:
    """A log of one partition, and who has read how far."""

    log: MemoryLog = field(default_factory=MemoryLog)

    def __post_init__(self) -> None:
        self.log.create(all_topics(1, "e"))

    def put(self, topic: str, record: Record, key: str = "") -> None:
        self.log.append([Output(topic, 0, (key or record.site).encode(), encode(record))])

    def page(self, name: str, *, outcome: str = "fetched", reason: str = "") -> str:
        url = f"http://{SITE}/{name}"
        fid = fetch_id(url, 1)
        self.put("hits", Hit(id=f"hit-{name}", site=SITE, url=url))
        self.put("pages", Page(id=fid, site=SITE, page_id=page_id(url), url=url, outcome=outcome, reason=reason))
        return fid

    def judged(self, name: str, *, article: bool = True, scored: bool = True) -> str:
        """A page that went all the way."""
        fid = self.page(name)
        url = f"http://{SITE}/{name}"
        pid, digest = page_id(url), f"digest-{name}"
        self.put("features", Features(id=fid, site=SITE, page_id=pid, url=url, epoch="e"))
        kind = "article" if article else "dropped"
        self.put("verdicts", Verdict(id=fid, site=SITE, page_id=pid, url=url, verdict=kind, text_digest=digest))
        if article:
            request = ScoreRequest(id=fid, site=SITE, page_id=pid, url=url, text_digest=digest, text="t")
            self.put("score.requests", request)
        if article and scored:
            self.score(fid, pid, digest)
        return fid

    def score(self, fid: str, pid: str, digest: str, abstain: str = "") -> None:
        score = Score(
            id=f"{digest}:d", site=SITE, page_id=pid, fetch_id=fid, text_digest=digest, detector="d", abstain=abstain
        )
        self.put("scores", score, key=score.id)

    def row(self, pages: int, articles: int) -> None:
        self.put("sites", SiteState(id=SITE, site=SITE, pages=pages, articles=articles))

    def read_all(self) -> None:
        """Every group has committed the end of its inputs."""
        for group, topics in READ.items():
            for topic in topics:
                self.log.reset(group, topic, self.log.end(topic))

    def report(self) -> AuditReport:
        self.read_all()
        return audit(self.log)


@pytest.fixture
def world() -> World:
    return World()


def broken(report: AuditReport) -> list[tuple[str, str]]:
    return [(b.step, b.id) for b in report.broken]


def test_a_complete_run_is_clean(world: World) -> None:
    """Fetched, refused, dropped, scored and abstained: all is accounted for, with the reasons counted."""
    world.judged("1")
    world.judged("2", article=False)
    world.page("3", outcome="refused", reason="robots")
    fid = world.judged("4", scored=False)
    world.score(fid, page_id(f"http://{SITE}/4"), "digest-4", abstain="too_short")
    world.row(pages=3, articles=2)
    world.log.append([heartbeat.travelling(HITS, 0, {heartbeat.HEADER: "1"})])
    report = world.report()
    assert report.ok
    assert report.settled
    assert [(s.records, s.done) for s in report.steps.values()] == [(4, 4), (3, 3), (3, 3), (2, 2), (1, 1)]
    assert report.steps["hits -> pages"].reasons == {"robots": 1}
    assert report.steps["articles -> scores"].reasons == {"too_short": 1}


def lost_page(world: World) -> tuple[str, str]:
    world.put("hits", Hit(id="hit-1", site=SITE, url=f"http://{SITE}/1"))
    world.row(pages=0, articles=0)
    return "hits -> pages", "hit-1"


def lost_features(world: World) -> tuple[str, str]:
    fid = world.page("1")
    world.row(pages=0, articles=0)
    return "pages -> features", fid


def lost_verdict(world: World) -> tuple[str, str]:
    fid = world.page("1")
    pid = page_id(f"http://{SITE}/1")
    world.put("features", Features(id=fid, site=SITE, page_id=pid, url="u", epoch="e"))
    world.row(pages=0, articles=0)
    return "features -> verdicts", fid


def lost_score(world: World) -> tuple[str, str]:
    fid = world.judged("1", scored=False)
    world.row(pages=1, articles=1)
    return "articles -> scores", fid


def lost_row(world: World) -> tuple[str, str]:
    world.judged("1")
    return "sites -> rows", SITE


def contradicting_row(world: World) -> tuple[str, str]:
    world.judged("1")
    world.row(pages=1, articles=0)
    return "sites -> rows", SITE


def doubled_page(world: World) -> tuple[str, str]:
    fid = world.judged("1")
    url = f"http://{SITE}/1"
    world.put("pages", Page(id=fid, site=SITE, page_id=page_id(url), url=url))
    world.row(pages=1, articles=1)
    return "hits -> pages", fid


def doubled_features(world: World) -> tuple[str, str]:
    fid = world.judged("1")
    world.put("features", Features(id=fid, site=SITE, page_id="p", url="u", epoch="e"))
    world.row(pages=1, articles=1)
    return "pages -> features", fid


def doubled_verdict(world: World) -> tuple[str, str]:
    fid = world.judged("1", article=False)
    pid = page_id(f"http://{SITE}/1")
    world.put("verdicts", Verdict(id=fid, site=SITE, page_id=pid, url="u", verdict="dropped"))
    world.row(pages=1, articles=0)
    return "features -> verdicts", fid


def doubled_score(world: World) -> tuple[str, str]:
    fid = world.judged("1")
    world.score(fid, page_id(f"http://{SITE}/1"), "digest-1")
    world.row(pages=1, articles=1)
    return "articles -> scores", "digest-1:d"


def features_of_nothing(world: World) -> tuple[str, str]:
    world.put("features", Features(id="stray", site=SITE, page_id="p", url="u", epoch="e"))
    world.put("verdicts", Verdict(id="stray", site=SITE, page_id="p", url="u", verdict="dropped"))
    return "pages -> features", "stray"


@pytest.mark.parametrize(
    "fault",
    [
        lost_page,
        lost_features,
        lost_verdict,
        lost_score,
        lost_row,
        contradicting_row,
        doubled_page,
        doubled_features,
        doubled_verdict,
        doubled_score,
        features_of_nothing,
    ],
)
def test_each_fault_is_named(world: World, fault: Callable[[World], tuple[str, str]]) -> None:
    """What is missing, doubled or contradicts is broken, with its step and its id, and nothing else is."""
    expected = fault(world)
    report = world.report()
    assert broken(report) == [expected]
    assert not report.ok
    assert report.steps[expected[0]].broken == 1


def test_what_is_not_read_yet_waits(world: World) -> None:
    """A record beyond the committed offset of its reader is waiting, not broken."""
    world.page("1")
    world.log.reset("crawl", HITS, world.log.end(HITS))
    report = audit(world.log)
    assert report.ok
    assert not report.settled
    assert report.steps["pages -> features"].waiting == 1
    assert report.steps["sites -> rows"].waiting == 1


def test_a_hit_in_the_frontier_waits(world: World) -> None:
    """A hit that CRAWL has read and queued is waiting, not lost."""
    url = f"http://{SITE}/1"
    world.put("hits", Hit(id="hit-1", site=SITE, url=url))
    world.row(pages=0, articles=0)
    member = world.log.join("crawl", [HITS, "decisions"], member="one", store="frontier")
    for _ in range(5):
        member.poll(0.01, 10, 10**6)
    change = Change(queue_key(SITE, Priority.HIT, 0), url.encode())
    member.commit(Commit(offsets={At(HITS, 0): 1}, state={0: [change]}))
    member.close()
    report = world.report()
    assert report.ok
    assert report.steps["hits -> pages"].waiting == 1


def test_a_dead_letter_is_a_reason(world: World) -> None:
    """A page that MEASURE gave up is dead, not broken."""
    world.page("1")
    (message,) = list(world.log.read(PAGES, 0))
    assert isinstance(message, Message)
    world.log.append([dead_letter(message, "measure", ValueError("no"), 1)])
    world.row(pages=0, articles=0)
    report = world.report()
    assert report.ok
    assert report.steps["pages -> features"].dead == 1


def test_what_retention_took_is_expired() -> None:
    """Features whose verdict has left by retention are expired, not broken; newer ones still have to have theirs."""
    now = [1_000_000]
    world = World(MemoryLog(clock=lambda: now[0]))
    world.judged("1", article=False)
    now[0] += 100 * 86_400_000  # beyond what hits, pages and verdicts are kept, within what features are
    world.judged("2", article=False)
    lost = world.page("3")
    pid = page_id(f"http://{SITE}/3")
    world.put("features", Features(id=lost, site=SITE, page_id=pid, url="u", epoch="e"))
    world.row(pages=2, articles=0)
    world.log.expire(now[0])
    report = world.report()
    assert broken(report) == [("features -> verdicts", lost)]
    step = report.steps["features -> verdicts"]
    assert (step.records, step.expired, step.done) == (3, 1, 1)
