"""A site that turns from human to LLM texts, over HTTP on loopback with short terms: in one process, and as roles."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from crawler.crawl_stage import CrawlStage
from farmwatch.audit.audit import audit
from farmwatch.config.config import Config
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from filters.judge_stage import JudgeStage
from filters.measure.epoch import feature_epoch
from filters.measure_stage import MeasureStage
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from replay.runs.site_table import read_rows
from scoring.detectors.testing import FakeDetector
from scoring.score_stage import ScoreStage
from scoring.settings import TallySettings
from scoring.tally_stage import TallyStage
from stream.log.contract import Log, Output, Topic
from stream.schema.records import SiteState, encode
from stream.schema.runs import names_of
from stream.schema.topics import HITS, SITE_TERMS, SITES, all_topics
from tests.support.farm import Farm
from tests.support.stages_here import RULES, Stages, article
from tests.support.tally_desk import SPRT
from tests.support.waiting import wait_until
from tests.support.web.article_head import ARTICLE_HEAD
from tests.support.web.crawl_driver import hits_of, settings_for
from tests.support.web.loopback import Web
from tests.support.worlds import World, on_embedded

pytestmark = pytest.mark.slow

SITE = "turns.test"
PAGES = 8
SERVED = 15  # to the roles
TERM_S = 10.0
PATIENCE_S = 180.0
TALLY = TallySettings(sprt=SPRT, term_days=TERM_S / 86_400)
MEASURE = MeasureSettings(workers=1)


def rows_of(log: Log, run: str = "live") -> dict[int, SiteState]:
    """Term -> the site's row, without its time and run."""
    names = names_of(run)
    rows = [*read_rows(log, names.terms), *read_rows(log, names.sites)]
    return {row.term: plain(row) for row in rows}


def plain(row: SiteState) -> SiteState:
    """A row, and that of the verdict which counts meanwhile, without what tells runs apart."""
    former = None if row.former is None else plain(row.former)
    return msgspec.structs.replace(row, updated_at=0, run="", former=former)


def replayed(log: Log, live: Stages) -> dict[int, SiteState]:
    """The rows that a replay makes of the verdicts of the live run and the scores, once both have read all, or late."""
    names = names_of("again")._replace(verdicts=names_of("live").verdicts)
    log.create([Topic(names.sites, 1), Topic(names.terms, 1), Topic(f"state.{names.tally_store}", 1)])
    stage = TallyStage(FakeDetector().identity, TALLY, "again", names=names, decides=False)
    with ExitStack() as stack:
        stages, until = Stages(log, [stage], stack), time.monotonic() + 60
        while rows_of(log, "again") != rows_of(log) and time.monotonic() < until:
            live.cycle()
            stages.cycle()
    return rows_of(log, "again")


@on_embedded
def test_a_site_that_turns_is_llm_within_a_term(world: World) -> None:
    """The next term is llm, the one before stays human; a replay has the same terms, and the audit is clean.

    A machine that is too slow for a verdict within a term gets it in a later one.
    """
    log, detector, author = world.log, FakeDetector(), "nobody"
    log.create(all_topics(1, feature_epoch(MEASURE)))
    with Web() as served, ExitStack() as stack:

        async def answer(request: web.Request) -> web.Response:
            if request.headers.get("If-None-Match"):
                return web.Response(status=304)
            return web.Response(text=article(request.path, author), content_type="text/html", headers={"ETag": '"v"'})

        served.routes |= {f"{SITE}/{number}": answer for number in range(PAGES)}
        stages = Stages(
            log,
            [
                CrawlStage(settings_for(served.target, use_sitemaps=False, page_budget=PAGES)),
                MeasureStage(MEASURE),
                JudgeStage(load_ruleset(RULES)),
                ScoreStage(lambda: [detector]),
                TallyStage(detector.identity, TALLY),
            ],
            stack,
        )
        hits = hits_of(*(f"http://{SITE}/{number}" for number in range(PAGES)))
        log.append([Output(HITS, 0, hit.site.encode(), encode(hit)) for hit in hits])
        until = time.monotonic() + PATIENCE_S
        verdicts: dict[int, str] = {}
        while "llm" not in verdicts.values():
            assert time.monotonic() < until, verdicts
            stages.cycle()
            verdicts = {row.term: row.verdict for topic in (SITE_TERMS, SITES) for row in read_rows(log, topic)}
            if "human" in verdicts.values():
                author = "LLM"
        del stages.loops[0]  # no page comes in any more, so the rows come to rest
        assert replayed(log, stages) == rows_of(log)
    human, llm = (min(term for term in verdicts if verdicts[term] == kind) for kind in ("human", "llm"))
    assert human < llm == max(verdicts)
    report = audit(log, config=Config(tally=TALLY))
    assert (report.ok, report.broken) == (True, [])


class TurningSite(Mapping[str, Response]):
    """Pages with texts by people, and from `turn` on by a language model."""

    def __init__(self) -> None:
        human = [[page.title, *page.paragraphs] for page in human_pages()]
        llm = [article.text.split("\n\n") for article in llm_articles()["tidynest.example"]]
        self._texts, self._turned = human[:SERVED], llm[:SERVED]

    def turn(self) -> None:
        self._texts = self._turned

    def __getitem__(self, path: str) -> Response:
        texts = {f"/{number}": text for number, text in enumerate(self._texts)}
        body = "".join(f"<p>{paragraph}</p>" for paragraph in texts[path])
        return Response(body=f"<html>{ARTICLE_HEAD}<body><article>{body}</article></body></html>".encode())

    def __iter__(self) -> Iterator[str]:
        return iter(f"/{number}" for number in range(SERVED))

    def __len__(self) -> int:
        return SERVED


def test_the_roles_measure_a_site_that_turns_again(tmp_path: Path) -> None:
    """`farmwatch up` with its roles as processes, TALLY killed as the site turns: human, and llm in a later term.

    A replay has the same rows of these terms, and the audit is clean.
    """
    site = TurningSite()
    hits = tmp_path / "hits.jsonl"
    hits.write_text("".join(json.dumps({"url": f"http://{SITE}{path}", "query_id": "q"}) + "\n" for path in site))
    settings = {
        "crawl.stop_when_decided": "true",
        "crawl.page_budget": str(SERVED),
        "crawl.use_sitemaps": "false",
        "tally.term_days": str(TERM_S / 86_400),
    }
    with LoopbackWeb({SITE: site}) as web, Farm(tmp_path, f"sqlite:{tmp_path / 'log'}", web, settings) as farm:
        farm.start(hits)

        def term_of(verdict: str) -> int | None:
            """The first term with this verdict."""
            with farm.log() as log:
                return min((term for term, row in rows_of(log).items() if row.verdict == verdict), default=None)

        for verdict in ("human", "llm"):
            wait_until(lambda v=verdict: term_of(v) is not None, farm.tail, PATIENCE_S, every_s=0.5)
            if verdict == "human":
                site.turn()
                os.kill(farm.roles()["tally"], signal.SIGKILL)
        farm.settle(PATIENCE_S)
        assert farm.stop() == 0
        human, llm = term_of("human"), term_of("llm")
        assert human is not None and llm is not None and human < llm
        flags = [flag for setting in farm.flags for flag in ("--set", setting)]
        command = [sys.executable, "-m", "farmwatch", "replay", "--ruleset", "default", "--name", "again", *flags]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        with farm.log() as log:
            live, again = ({t: row for t, row in rows_of(log, run).items() if t <= llm} for run in ("live", "again"))
        assert again == live
        report = farm.audit()
        assert (report.ok, report.broken) == (True, [])
