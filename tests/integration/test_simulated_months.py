"""Six months of terms with all roles, time compressed: what each role keeps does not grow."""

from __future__ import annotations

import gc
import random
import threading
import tracemalloc
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from aiohttp import web

from crawler.frontier.report import frontier_left
from crawler.stages.crawl import CrawlStage
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings, SiteCaps
from filters.stages.judge import JudgeStage
from filters.stages.measure import MeasureStage
from replay.rows.site_table import read_rows
from replay.runs.topology import READS, lag_of
from scoring.sites.settings import TallySettings
from scoring.stages.score import ScoreStage
from scoring.stages.tally import TallyStage
from stream.log.contract import Clock, Log, Output, wall_ms
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import encode
from stream.schema.runs import memory_store, names_of
from stream.schema.topics import HITS, SITE_TERMS, SITES, all_topics
from tests.support.fake_detector import FakeDetector
from tests.support.limits import with_limits
from tests.support.logs.tally_desk import SPRT
from tests.support.waiting import wait_until
from tests.support.web.crawl_driver import hits_of, settings_for
from tests.support.web.loopback import Web
from tests.support.worlds import EmbeddedWorld

QUICK = with_limits(LoopSettings(), linger_s=0.0)
RULES = "c4"  # which keeps each article
_WORDS = (
    "river", "village", "boats", "market", "morning", "harvest", "people", "teacher", "garden", "window", "letter",
    "winter", "summer",
)  # fmt: skip


def article(path: str, author: str) -> str:
    """A text that the ruleset keeps, like no other."""
    chance = random.Random(f"{path} {author}")
    text = " ".join(
        "When the {} was near the {}, they would walk to the {} and talk of it.".format(*chance.sample(_WORDS, 3))
        for _ in range(30)
    )
    return f"<html><body><article><h1>By {author}</h1><p>{text} So {author} wrote it.</p></article></body></html>"


class Stages:
    """All stages in this thread, in the order of the data."""

    def __init__(self, log: Log, stages: list[Stage], stack: ExitStack, clock: Clock = wall_ms) -> None:
        self.loops = []
        for stage in stages:
            stage.poll_s = 0.001
            stack.callback(stage.close)
            group = names_of(getattr(stage, "run", "") or "live").tally_group if stage.name == "tally" else stage.name
            member = log.join(group, list(stage.inputs), member="one", store=stage.store, background=stage.background)
            stack.callback(member.close)
            self.loops.append(StageLoop(stage, member, metrics=Metrics(), settings=QUICK, clock=clock))

    def cycle(self) -> None:
        for loop in self.loops:
            loop.cycle(threading.Event())


pytestmark = pytest.mark.slow

TERM_MS = 30 * 86_400_000
TERMS, SETTLED = 6, 4  # sites repeat with every second term
BEATS_MS = 400  # by which the clock moves between two looks at the stages
PAGES = 5
CAP = 3 * PAGES  # of the pages that a role keeps of a site; a site with new pages reaches it in the third term
TURNS, GOES, GROWS = "turns.test", "goes.test", "grows.test"
TALLY = TallySettings(sprt=SPRT, term_days=TERM_MS / 86_400_000)
MEASURE = MeasureSettings(workers=1)


class _Months:
    """CRAWL over HTTP on loopback, MEASURE, JUDGE, SCORE and TALLY, with the clock of the log."""

    def __init__(self, world: EmbeddedWorld, served: Web, stack: ExitStack) -> None:
        self.world, self.log, self.term = world, world.log, 0
        self._served = served
        self._detector = FakeDetector()
        settings = settings_for(
            served.target, use_sitemaps=False, page_budget=PAGES, url_cap=CAP, delay_per_second=0.0, retry_s=1.0
        )
        self._crawl = CrawlStage(settings, clock=lambda: world.clock() / 1000)
        self._measure = MeasureStage(MEASURE, caps=SiteCaps(pages_per_site=CAP))
        score = ScoreStage(lambda: [self._detector], remembered_texts=CAP)
        self.log.create(all_topics(1, self._measure.epoch))
        judge, tally = JudgeStage(load_ruleset(RULES)), TallyStage(self._detector.identity, TALLY)
        self._stages = Stages(self.log, [self._crawl, self._measure, judge, score, tally], stack, world.clock)
        for host in (TURNS, GOES, GROWS):
            served.routes[f"{host}/"] = self._answer
            served.routes |= {f"{host}/{term}/{n}": self._answer for term in range(TERMS) for n in range(PAGES)}

    async def _answer(self, request: web.Request) -> web.Response:
        """The site that goes is there in every second term; the one that grows links to new pages in each."""
        host, is_odd = request.host.partition(":")[0], self.term % 2
        if host == GOES and is_odd:
            return web.Response(status=404)
        text = article(f"{host} {request.path} {self.term}", "LLM" if host == TURNS and is_odd else "nobody")
        newest = self.term if host == GROWS else 0
        links = "".join(f'<a href="/{newest}/{n}">{n}</a>' for n in range(PAGES))
        return web.Response(text=text.replace("</article>", f"</article>{links}"), content_type="text/html")

    def live(self) -> dict[str, int]:
        """A term: the same hits come again, the sites are measured, old records expire. Returns `_sizes`."""
        hits = hits_of(*(f"http://{host}/" for host in (TURNS, GOES, GROWS)))
        self.log.append([Output(HITS, 0, hit.site.encode(), encode(hit)) for hit in hits])
        wait_until(self._is_settled, lambda: f"term {self.term}", every_s=0.005)
        self.log.expire(self.world.clock())
        self.world.clock.turn(TERM_MS)
        self.term += 1
        self._detector.given.clear()
        self._served.seen.clear()
        return self._sizes()

    def _is_settled(self) -> bool:
        self.world.clock.turn(BEATS_MS)
        self._stages.cycle()
        waiting = sum(lag_of(self.log, group) for group in READS)
        return not waiting and not self._crawl.in_flight and frontier_left(self.log, 1).active == 0

    def _sizes(self) -> dict[str, int]:
        """Keys and bytes of each state, and the memory that Python has allocated."""
        sizes: dict[str, int] = {}
        for store in ("frontier", memory_store("features", self._measure.epoch), "tally"):
            rows = list(self.log.scan_state(store, 0))
            sizes |= {f"{store}, keys": len(rows), f"{store}, bytes": sum(len(k) + len(v) for k, v in rows)}
        del rows
        gc.collect()
        return sizes | {"memory": tracemalloc.get_traced_memory()[0]}


def test_no_role_keeps_more_after_more_terms(tmp_path: Path) -> None:
    """A site turns, one goes and comes back, one has new pages in each term: state and memory are flat."""
    with closing(EmbeddedWorld(tmp_path)) as world, Web() as served, ExitStack() as stack:
        months = _Months(world, served, stack)
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        sizes = [months.live() for _ in range(TERMS)]
        rows = [row for topic in (SITES, SITE_TERMS) for row in read_rows(world.log, topic)]
    for name in sizes[0]:
        found = [size[name] for size in sizes]
        room = 1.25 if name == "memory" else 1.1  # threads and connections come and go
        assert max(found[SETTLED:]) <= room * max(found[:SETTLED]), (name, found)
    verdicts = {(row.site, row.term): row.verdict for row in rows}
    assert [verdicts[TURNS, term] for term in range(TERMS)] == ["human", "llm"] * 3
    assert [verdicts[GROWS, term] for term in range(TERMS)] == ["human"] * TERMS
