"""Pages under a ruleset that scores the cleaned text: the detector reads it, and the log agrees."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import xxhash

from farmwatch.audit.audit import audit
from filters.measure.epoch import feature_epoch
from filters.quality.c4 import clean
from filters.settings import MeasureSettings
from scoring.interface import TextScore
from scoring.lite_ngram.detector import LiteNgram
from stream.memory.log import MemoryLog
from stream.schema.records import Features, Hit, Page, Score, ScoreRequest, SiteState, Verdict
from stream.schema.topics import FEATURES, HITS, PAGES, SCORE_REQUESTS, SCORES, SITES, VERDICTS, all_topics
from tests.support.logs.stage_work import put, records, work_all
from tests.support.pages.page_records import fetched_page
from tests.support.web.article_head import ARTICLE_HEAD

SITE = "river.example"
SETTINGS = MeasureSettings(workers=1)
MENU = ("Home and garden", "More about the village and its river", "Please accept the use of cookies on this page.")
SUBJECTS = ("boats", "cattle", "children")


class Reader:
    """The shipped detector, which also records the texts it reads."""

    def __init__(self) -> None:
        self._detector = LiteNgram.load()
        self.identity, self.warning = self._detector.identity, self._detector.warning
        self.read: list[str] = []

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        self.read.extend(texts)
        return self._detector.score(texts)


def sentences(subject: str) -> str:
    return " ".join(
        f"On day {day} the river rose, and people of the village moved their {subject} to higher ground {day} times."
        for day in range(1, 13)
    )


def page(subject: str) -> Page:
    """A fetched page with an article among lines of menus."""
    article = f"<h1>The {subject} of the river</h1>" + f"<p>{sentences(subject)}</p>"
    menu = "".join(f"<p>{line}</p>" for line in MENU)
    text = f"{article}{menu}<p>{sentences(subject + ' again')}</p>"
    html = f"<html>{ARTICLE_HEAD}<body><article>{text}</article></body></html>"
    return fetched_page(f"http://{SITE}/{subject}", html, fetched_at=5)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="module")
def log(reader: Reader) -> MemoryLog:
    """A log with three pages processed by MEASURE, JUDGE, SCORE and TALLY under the ruleset `c4`."""
    log = MemoryLog()
    log.create(all_topics(1, feature_epoch(SETTINGS)))
    pages = [page(subject) for subject in SUBJECTS]
    put(log, HITS, *(Hit(id=f"hit-{page.id}", site=SITE, url=page.url) for page in pages))
    put(log, PAGES, *pages)
    work_all(log, SETTINGS, "c4", reader)
    return log


def test_the_scored_text_is_the_cleaned_one(log: MemoryLog, reader: Reader) -> None:
    """Features keep the menus; requests, and so the detector, have the article only."""
    features = records(log, FEATURES, Features)
    requests = records(log, SCORE_REQUESTS, ScoreRequest)
    assert len(features) == len(requests) == len(SUBJECTS)
    for found, request, subject in zip(features, requests, SUBJECTS, strict=True):
        assert all(line in found.text for line in MENU)
        assert request.text == f"{sentences(subject)}\n{sentences(subject + ' again')}"
        assert request.text == clean(found.text).text != found.text
    read = reader.read[1:]  # the first one was the warm-up
    assert sorted(read) == sorted(request.text for request in requests)


def test_digests_name_the_cleaned_text_all_the_way(log: MemoryLog, reader: Reader) -> None:
    """Verdict, request and score of a page have the digest of the scored text, not of the main text."""
    features = records(log, FEATURES, Features)
    verdicts = records(log, VERDICTS, Verdict)
    requests = {request.page_id: request for request in records(log, SCORE_REQUESTS, ScoreRequest)}
    scores = {score.text_digest: score for score in records(log, SCORES, Score)}
    for found, verdict in zip(features, verdicts, strict=True):
        assert (verdict.verdict, verdict.ruleset) == ("article", "c4")
        text = requests[verdict.page_id].text
        assert verdict.text_digest == requests[verdict.page_id].text_digest == xxhash.xxh3_128_hexdigest(text.encode())
        assert verdict.text_digest != found.text_digest
        (expected,) = LiteNgram.load().score([text])
        assert (scores[verdict.text_digest].p_llm, scores[verdict.text_digest].detector) == (
            expected.p_llm,
            reader.identity,
        )
    assert len(scores) == len(SUBJECTS)


def test_the_log_adds_up(log: MemoryLog) -> None:
    """Nothing is broken; only CRAWL, which is not run, waits; the row counts every page as a scored article."""
    report = audit(log)
    assert report.ok and set(+report.waiting) == {"crawl"}, report
    row = records(log, SITES, SiteState)[-1]
    assert (row.pages, row.articles, row.scored + row.abstained) == (3, 3, 3)
