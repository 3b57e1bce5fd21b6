"""Re-visited pages through every stage: each page counts once, by its newest text, and the log agrees."""

from __future__ import annotations

import threading
import time

import pytest
import xxhash
from aiohttp import web

from crawler.settings import CrawlSettings
from crawler.stages.crawl import CrawlStage
from farmwatch.audit.audit import audit
from filters.measure.epoch import feature_epoch
from filters.quality.c4 import clean
from filters.settings import MeasureSettings
from scoring.lite_ngram.detector import LiteNgram
from stream.memory.log import MemoryLog
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Features, Page, Score, ScoreRequest, SiteState, Verdict
from stream.schema.topics import FEATURES, HITS, PAGES, SCORE_REQUESTS, SCORES, SITES, VERDICTS, all_topics
from tests.support.logs.stage_work import put, records, work_all
from tests.support.web.article_head import ARTICLE_HEAD
from tests.support.web.crawl_driver import hits_of, settings_for
from tests.support.web.loopback import Web

SITE = "river.test"
SETTINGS = MeasureSettings(workers=1)
MENU = "More about the village and its river"


def article(subject: str) -> str:
    text = " ".join(
        f"On day {day} the river rose, and people of the village moved their {subject} to higher ground {day} times."
        for day in range(1, 20)
    )
    body = f"<h1>The {subject} of the river</h1><p>{MENU}</p><p>{text}</p>"
    return f"<html>{ARTICLE_HEAD}<body><article>{body}</article></body></html>"


def visit_twice(log: MemoryLog, settings: CrawlSettings) -> None:
    """Crawl until each of the three pages has two visits."""
    stage = CrawlStage(settings)
    member = log.join(stage.name, list(stage.inputs), member="one", store=stage.store)
    loop = StageLoop(stage, member, metrics=Metrics())
    until = time.monotonic() + 30
    try:
        counts: dict[str, int] = {}
        while min(counts.values(), default=0) < 2 or len(counts) < 3:
            assert time.monotonic() < until, counts
            loop.cycle(threading.Event())
            counts = {page.url: page.visit for page in records(log, PAGES, Page)}
    finally:
        stage.close()
        member.close()


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    """A log with two or more visits of three pages: one is unchanged, one changes, one disappears."""
    log = MemoryLog()
    log.create(all_topics(1, feature_epoch(SETTINGS)))
    hits = hits_of(*(f"http://{SITE}/{name}" for name in ("same", "other", "gone")))
    put(log, HITS, *hits)
    with Web() as served:

        async def same(request: web.Request) -> web.Response:
            if request.headers.get("If-None-Match") == '"v1"':
                return web.Response(status=304, headers={"ETag": '"v1"'})
            return web.Response(text=article("boats"), content_type="text/html", headers={"ETag": '"v1"'})

        async def other(request: web.Request) -> web.Response:
            again = served.paths(SITE).count("/other") > 1
            return web.Response(text=article("cattle" if again else "sheep"), content_type="text/html")

        async def gone(request: web.Request) -> web.Response:
            if served.paths(SITE).count("/gone") > 1:
                return web.Response(status=410)
            return web.Response(text=article("children"), content_type="text/html")

        served.routes |= {f"{SITE}/same": same, f"{SITE}/other": other, f"{SITE}/gone": gone}
        settings = settings_for(served.target, use_sitemaps=False, refetch_fetched_s=0.4)
        visit_twice(log, settings)
    work_all(log, SETTINGS, "c4", LiteNgram.load())
    return log


def test_visits_have_records_of_their_own(log: MemoryLog) -> None:
    """Each visit is one record with its own id; an unchanged page has no body, and a missing one failed."""
    pages = records(log, PAGES, Page)
    assert len({page.id for page in pages}) == len(pages) and len({page.page_id for page in pages}) == 3
    ends = {(page.url.rsplit("/", 1)[1], page.visit): (page.outcome, page.status, bool(page.body)) for page in pages}
    assert ends["same", 1] == ("fetched", 200, True) and ends["same", 2] == ("unchanged", 304, False)
    assert ends["other", 1] == ends["other", 2] == ("fetched", 200, True)
    assert ends["gone", 1] == ("fetched", 200, True) and ends["gone", 2] == ("failed", 410, False)


def test_only_what_was_fetched_is_measured(log: MemoryLog) -> None:
    """Each fetched visit has features and a verdict; a changed page is not a copy of itself."""
    fetched = [page.id for page in records(log, PAGES, Page) if page.outcome == "fetched"]
    features = records(log, FEATURES, Features)
    assert [found.id for found in features] == fetched
    changed = [found for found in features if found.url.endswith("/other")]
    assert len({found.text_digest for found in changed[:2]}) == 2
    assert len(records(log, VERDICTS, Verdict)) == len(fetched)


def test_the_cleaned_text_is_scored_under_its_own_digest(log: MemoryLog) -> None:
    """Under a ruleset that scores the cleaned text: features keep the menu; request, verdict and score are without."""
    requests = {request.id: request for request in records(log, SCORE_REQUESTS, ScoreRequest)}
    verdicts = {verdict.id: verdict for verdict in records(log, VERDICTS, Verdict)}
    scored = {score.text_digest for score in records(log, SCORES, Score)}
    assert requests
    for page in records(log, FEATURES, Features):
        assert MENU in page.text
        if request := requests.get(page.id):
            assert MENU not in request.text and request.text == clean(page.text).text
            digests = {verdicts[page.id].text_digest, xxhash.xxh3_128_hexdigest(request.text.encode())}
            assert digests == {request.text_digest} != {page.text_digest}
            assert request.text_digest in scored


def test_the_site_counts_each_page_once(log: MemoryLog) -> None:
    """The site's row has three pages, for any number of visits."""
    row = records(log, SITES, SiteState)[-1]
    assert (row.pages, row.articles, row.scored + row.abstained, row.hits) == (3, 3, 3, 3)


def test_the_audit_is_clean(log: MemoryLog) -> None:
    """Nothing is lost, doubled or contradictory, and no hit has an open reason."""
    report = audit(log)
    assert report.broken == []
    first = report.steps["hits -> pages"]
    assert (first.records, first.done, first.reasons) == (3, 3, {})
