"""What a tool's text means for the number: pages that each shipped ruleset keeps, and articles that the detector flags.

Pages are measured as MEASURE does, with the tool's text in place of an extractor's; each is alone on its site.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec

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
from stream.schema.records import Page
from stream.schema.vocabulary import KEPT

DEFAULT = "default"


class Consequences(msgspec.Struct, frozen=True):
    """Of the judged pages: those that each ruleset keeps, and those of `default` that are scored and flagged."""

    judged: int
    kept: dict[str, int]
    scored: int
    flagged: int


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
        kept, scored = dict.fromkeys(self._rulesets, 0), list[str]()
        for page, answer in zip(self._pages, answers, strict=True):
            features = features_of(_record(page), answer, Likeness(), "", self._settings.tokenizer, 0)
            for ruleset_name, ruleset in self._rulesets.items():
                verdict, text = judge_and_text(features, ruleset)
                if verdict.verdict in KEPT:
                    kept[ruleset_name] += 1
                    if ruleset_name == DEFAULT:
                        scored.append(text)
        flags = [score.flag for score in self._detector.score(scored) if score.flag is not None]
        return Consequences(len(self._pages), kept, len(flags), sum(flags))


def _record(page: BenchPage) -> Page:
    return Page(id=page.label.id, site=page.label.site, page_id=page.label.id, url=page.label.url, encoding="utf-8")
