"""For tests of commands: commands in this process, an article page, the log of a finished run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crawler.web.urls import page_id
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from scoring.interface import TextScore
from scoring.stages.score import score_key
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.records import Features, Page, Record, SiteState, encode
from stream.schema.topics import FEATURES, PAGES, SCORES, SITES, VERDICTS, all_topics
from tests.support.pages.page_records import text_score
from tests.support.web.article_head import ARTICLE_HEAD

PARTITIONS = 2
SITE = "kept.example"
URL = f"https://{SITE}/garden"
SHORT_URL = f"https://{SITE}/short"
REFUSED_URL = f"https://{SITE}/closed"
DETECTOR = "some-detector/1"
_SENTENCE = "The garden was quiet that morning and the two of them walked slowly along the wall. "


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str
    line: str = field(default="", compare=False)  # of the command

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The objects of JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Runner = Callable[..., Ran]


def article_html(words: int = 400) -> str:
    """The HTML of a page that passes every rule."""
    text = " ".join((_SENTENCE * (words // 16 + 1)).split()[:words])
    return f"<html>{ARTICLE_HEAD}<body><article><h1>A garden</h1><p>{text}</p></article></body></html>"


def finished_log(folder: Path) -> str:
    """URL of an embedded log with two measured pages, one a scored article, one refused page, and two rows."""
    shutil.copytree(_finished().name, folder, dirs_exist_ok=True)
    return f"sqlite:{folder}"


@cache
def _finished() -> TemporaryDirectory[str]:
    made = TemporaryDirectory()
    new_finished_log(Path(made.name))
    return made


def new_finished_log(folder: Path) -> str:
    """The same, with records of this second."""
    url = f"sqlite:{folder}"
    log = open_log(url)
    measurer = Measurer(MeasureSettings())
    log.create(all_topics(PARTITIONS, measurer.epoch))
    ruleset = load_ruleset("default")
    outputs: list[Output] = []

    def put(topic: str, record: Record, key: str = "") -> None:
        partition = partition_of(record.site, PARTITIONS)
        outputs.append(Output(topic, partition, (key or record.site).encode(), encode(record)))

    for address, html in ((URL, article_html()), (SHORT_URL, "<html><body><p>Too short.</p></body></html>")):
        features: Features = measurer.measure(address, html, SITE, page_id=page_id(address), fetched_at=1)
        verdict = judge(features, ruleset)
        put(FEATURES, features)
        put(VERDICTS, verdict)
        if verdict.verdict == "article":
            ids = features.page_id, features.id
            score = text_score(SITE, features.text_digest, DETECTOR, True, *ids, score=1.5, p_llm=0.97, tokens=400)
            put(SCORES, score, score_key(score))
    put(
        PAGES,
        Page(id="r", site=SITE, page_id=page_id(REFUSED_URL), url=REFUSED_URL, outcome="refused", reason="robots"),
    )
    for site, verdict_, pages in ((SITE, "undecided", 1), (SITE, "llm", 2), ("b.example", "unclassifiable", 0)):
        by: dict[str, Any] = {"detector": DETECTOR, "ruleset": ruleset.name, "digest": ruleset.digest}
        put(SITES, SiteState(id=site, site=site, verdict=verdict_, pages=pages, sources=["file"], **by))
    log.append(outputs)
    log.close()
    return url


class StandInDetector:
    """A detector without weights, which abstains on every text."""

    identity = DETECTOR
    warning = "indicative only"

    def score(self, texts: list[str]) -> list[TextScore]:
        return [TextScore(abstain="too_short") for _ in texts]
