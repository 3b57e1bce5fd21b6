"""What a tool's text means for the number: pages that each shipped ruleset keeps, and articles that the detector flags.

Pages are measured as MEASURE does, with the tool's text in place of an extractor's; each is alone on its site.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec
import numpy as np

from filters.measure.workers import ExtractionPool
from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from filters.settings import MeasureSettings
from filters.site_memory.measurer import features_of
from filters.site_memory.memory import Likeness
from lab.extractor_bench.pages import BenchPage
from lab.extractor_bench.runs import Advance, mapped, settings_of
from lab.extractor_bench.tool_process import GIVEN, GivenPage, command
from lab.extractor_bench.tools import MEASURED
from scoring.lite_ngram.detector import LiteNgram
from scoring.statistics.shares import Share, share
from stream.schema.records import Page
from stream.schema.vocabulary import KEPT

DEFAULT = "default"


class Consequences(msgspec.Struct, frozen=True):
    """Shares with intervals over sites: of the pages that each ruleset keeps, and of scored articles of `default`."""

    kept: dict[str, Share]
    flagged: Share


class Judge:
    """Judges and scores pages with the texts of one tool after another, in the same processes."""

    def __init__(self, pages: Sequence[BenchPage], settings: MeasureSettings) -> None:
        """Load the shipped rulesets and the built-in detector."""
        self._pages = pages
        self._settings = settings
        self._rulesets = {name: load_ruleset(name) for name in shipped_rulesets()}
        self._detector = LiteNgram.load()
        self._pool = ExtractionPool(settings_of("", settings), command=command(GIVEN))

    def close(self) -> None:
        self._pool.close()

    def judged(self, name: str, texts: Sequence[str], advance: Advance) -> Consequences:
        """What the texts mean; the pages of `measure-…` are extracted again, with their links and lists."""
        if name.startswith(MEASURED):
            pool = ExtractionPool(settings_of(name, self._settings))
            with closing(pool):
                answers = mapped(pool, [page.raw for page in self._pages], advance)
        else:
            given = [
                GivenPage(page.raw.url, page.raw.encoding, page.raw.body, text=text)
                for page, text in zip(self._pages, texts, strict=True)
            ]
            answers = mapped(self._pool, given, advance)
        kept, articles = {name: list[bool]() for name in self._rulesets}, list[tuple[str, str]]()
        for page, answer in zip(self._pages, answers, strict=True):
            features = features_of(_record(page), answer, Likeness(), "", self._settings.tokenizer, 0)
            for ruleset_name, ruleset in self._rulesets.items():
                verdict, text = judge_and_text(features, ruleset)
                kept[ruleset_name].append(verdict.verdict in KEPT)
                if ruleset_name == DEFAULT and verdict.verdict in KEPT:
                    articles.append((page.label.site, text))
        scores = self._detector.score([text for _, text in articles])
        flags = [
            (site, score.flag) for (site, _), score in zip(articles, scores, strict=True) if score.flag is not None
        ]
        sites = [page.label.site for page in self._pages]
        return Consequences(
            {ruleset: _share(sites, of) for ruleset, of in kept.items()},
            _share([site for site, _ in flags], [flag for _, flag in flags]),
        )


def _share(sites: Sequence[str], hits: Sequence[bool]) -> Share:
    return share(np.array(hits, bool), np.unique(list(sites), return_inverse=True)[1])


def _record(page: BenchPage) -> Page:
    return Page(id=page.label.id, site=page.label.site, page_id=page.label.id, url=page.label.url, encoding="utf-8")
