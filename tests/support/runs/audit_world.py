"""A log of one partition, for audits of lost, doubled and contradictory records."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from crawler.web.urls import fetch_id, page_id
from farmwatch.audit.audit import audit
from farmwatch.audit.report import AuditReport
from scoring.stages.site_pages import JudgedPage
from stream.log.contract import Message, Output
from stream.memory.log import MemoryLog
from stream.processing.dead_letters import dead_letter
from stream.processing.heartbeat import is_heartbeat
from stream.schema.records import Features, Hit, Page, Record, Score, ScoreRequest, SiteState, Verdict, decode, encode
from stream.schema.topics import all_topics
from tests.support.logs.tally_desk import Desk
from tests.support.pages.page_records import text_score

SITE = "a.example"
OTHER = "b.example"
READ = {
    "crawl": ("hits", "decisions"),
    "measure": ("pages",),
    "judge": ("features",),
    "score": ("score.requests",),
    "tally": ("hits", "verdicts", "scores"),
}


@dataclass
class World:
    """A log of one partition, and the offsets of its groups."""

    log: MemoryLog = field(default_factory=MemoryLog)

    def __post_init__(self) -> None:
        self.log.create(all_topics(1, "e"))

    def put(self, topic: str, record: Record, key: str = "") -> World:
        self.log.append([Output(topic, 0, (key or record.site).encode(), encode(record))])
        return self

    def hit(self, name: str, *, site: str = SITE) -> World:
        return self.put("hits", Hit(id=f"hit-{name}", site=site, url=f"http://{site}/{name}"))

    def features(self, name: str, *, site: str = SITE, visit: int = 1) -> World:
        url = f"http://{site}/{name}"
        return self.put(
            "features", Features(id=fetch_id(url, visit), site=site, page_id=page_id(url), url=url, epoch="e")
        )

    def page(self, name: str, *, outcome: str = "fetched", reason: str = "", site: str = SITE, visit: int = 1) -> str:
        url = f"http://{site}/{name}"
        fid = fetch_id(url, visit)
        self.hit(name, site=site)
        self.put("pages", Page(id=fid, site=site, page_id=page_id(url), url=url, outcome=outcome, reason=reason))
        return fid

    def judged(
        self,
        name: str,
        *,
        article: bool = True,
        segments: bool = False,
        scored: bool = True,
        site: str = SITE,
        visit: int = 1,
        text: str = "",
        rules: str = "",
        again: bool = False,
    ) -> str:
        """Append a page with all its records. `again`: only judge and score an existing page once more."""
        url = f"http://{site}/{name}"
        fid = fetch_id(url, visit) if again else self.page(name, site=site, visit=visit)
        pid, digest = page_id(url), text or f"digest-{name}"
        if not again:
            self.features(name, site=site, visit=visit)
        verdict = Verdict(
            id=fid,
            site=site,
            page_id=pid,
            url=url,
            verdict="segments" if segments else "article" if article else "dropped",
            text_digest=digest,
            digest=rules,
            fetched_at=visit,
        )
        self.put("verdicts", verdict)
        if article:
            request = ScoreRequest(id=fid, site=site, page_id=pid, url=url, text_digest=digest, text="t")
            self.put("score.requests", request)
        if article and scored:
            self.score(fid, pid, digest, site=site)
        return fid

    def score(
        self, fid: str, pid: str, digest: str, abstain: str = "", *, site: str = SITE, detector: str = "d/1"
    ) -> World:
        score = text_score(site, digest, detector, None if abstain else True, pid, fid, abstain=abstain)
        return self.put("scores", score, key=f"{site} {score.id}")

    def row(
        self,
        pages: int,
        articles: int,
        scored: int | None = None,
        *,
        abstained: int = 0,
        flagged: int | None = None,
        site: str = SITE,
        rules: str = "",
        detector: str = "d/1",
    ) -> World:
        """A site's row as TALLY would make it, with these counts.

        By default every article without an abstention is scored and flagged.
        """
        scored = articles - abstained if scored is None else scored
        flagged = scored if flagged is None else flagged
        counts = {"pages": pages, "articles": articles, "scored": scored, "abstained": abstained, "flagged": flagged}
        return self.put("sites", replace(self.tallied(site, detector), **counts, digest=rules))

    def tallied(self, site: str, detector: str = "d/1") -> SiteState:
        """The row that TALLY would make from a site's records."""
        desk, blank = Desk(detector), SiteState(id=site, site=site, detector=detector)
        for topic, kind in (("hits", Hit), ("verdicts", JudgedPage), ("scores", Score)):
            for message in list(self.log.read(topic, 0)):
                if message.value and not is_heartbeat(message):
                    record = decode(kind, message.value)
                    if record.site == site:
                        desk.feed(record)
        return desk.row if desk.rows else blank

    def bury(self, stage: str, topic: str, offset: int, key: str = "z.example", run: str = "") -> World:
        message = Message(topic, 0, offset, key.encode(), b"x", {}, 0)
        self.log.append([dead_letter(message, stage, ValueError("no"), 1, run)])
        return self

    def read_all(self) -> None:
        """Let every group commit the end of its inputs."""
        for group, topics in READ.items():
            for topic in topics:
                self.log.reset(group, topic, self.log.end(topic))

    def report(self) -> AuditReport:
        self.read_all()
        return audit(self.log)
