"""What a tool's text means for the number: pages that each shipped ruleset keeps, and articles that the detector flags.

Pages are measured as MEASURE does, with the tool's text in place of an extractor's; each is alone on its site.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

import msgspec
import numpy as np

from filters.measure.page_measures import PageMeasures
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


class _Verdict(NamedTuple):
    """Of a page with a text."""

    kept: dict[str, bool]  # by ruleset
    flag: bool | None  # None = no article, or not scored


class Judge:
    """Judges and scores pages with the texts of one tool after another, in the same processes."""

    def __init__(self, pages: Sequence[BenchPage], settings: MeasureSettings) -> None:
        """Load the shipped rulesets and the built-in detector."""
        self._pages = pages
        self._settings = settings
        self._rulesets = {name: load_ruleset(name) for name in shipped_rulesets()}
        self._detector = LiteNgram.load()
        self._known: dict[tuple[int, str], _Verdict] = {}  # page and text: of several tools, often one
        self._pool = ExtractionPool(settings_of("", settings), command=command(GIVEN))

    def close(self) -> None:
        self._pool.close()

    def judged(self, name: str, texts: Sequence[str], advance: Advance) -> Consequences:
        """What the texts mean; the pages of `measure-…` are extracted again, with their links and lists."""
        if name.startswith(MEASURED):
            with closing(ExtractionPool(settings_of(name, self._settings))) as pool:
                answers = mapped(pool, [page.raw for page in self._pages], advance)
            found = self._verdicts(self._pages, answers)
        else:
            keys = list(enumerate(texts))
            new = [key for key in keys if key not in self._known]
            pages = [self._pages[place] for place, _ in new]
            given = [
                GivenPage(page.raw.url, page.raw.encoding, page.raw.body, text=text)
                for page, (_, text) in zip(pages, new, strict=True)
            ]
            answers = mapped(self._pool, given, advance)
            advance(len(keys) - len(new))
            self._known.update(zip(new, self._verdicts(pages, answers), strict=True))
            found = [self._known[key] for key in keys]
        sites = [page.label.site for page in self._pages]
        flagged = [(site, of.flag) for site, of in zip(sites, found, strict=True) if of.flag is not None]
        return Consequences(
            {ruleset: _share(sites, [of.kept[ruleset] for of in found]) for ruleset in self._rulesets},
            _share([site for site, _ in flagged], [flag for _, flag in flagged]),
        )

    def _verdicts(self, pages: Sequence[BenchPage], answers: Sequence[PageMeasures]) -> list[_Verdict]:
        found = []
        for page, answer in zip(pages, answers, strict=True):
            features = features_of(_record(page), answer, Likeness(), "", self._settings.tokenizer, 0)
            judged = {name: judge_and_text(features, ruleset) for name, ruleset in self._rulesets.items()}
            kept = {name: verdict.verdict in KEPT for name, (verdict, _) in judged.items()}
            article = judged[DEFAULT][1] if kept[DEFAULT] else ""
            found.append(_Verdict(kept, self._detector.score([article])[0].flag if kept[DEFAULT] else None))
        return found


def _share(sites: Sequence[str], hits: Sequence[bool]) -> Share:
    return share(np.array(hits, bool), np.unique(list(sites), return_inverse=True)[1])


def _record(page: BenchPage) -> Page:
    return Page(id=page.label.id, site=page.label.site, page_id=page.label.id, url=page.label.url, encoding="utf-8")
