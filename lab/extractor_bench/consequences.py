"""What a tool's text means for the number: pages that each shipped ruleset keeps, and articles that the detector flags.

Pages are measured as MEASURE does, with the tool's text in place of an extractor's; each is alone on its site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from filters.measure.workers import COMMAND
from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import Ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import features_of
from filters.site_memory.memory import Likeness
from lab.extractor_bench.pages import BenchPage
from lab.extractor_bench.runs import Advance, measured, settings_of
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


def consequences(
    name: str,
    pages: Sequence[BenchPage],
    texts: Sequence[str],
    rulesets: Mapping[str, Ruleset],
    detector: LiteNgram,
    settings: MeasureSettings,
    advance: Advance,
) -> Consequences:
    """Judge and score pages with these texts; those of `measure-…` are extracted again, with their links and lists."""
    settings = settings_of(name, settings)
    if name.startswith(MEASURED):
        answers = measured([page.raw for page in pages], settings, COMMAND, advance)
    else:
        given = [
            GivenPage(page.raw.url, page.raw.encoding, page.raw.body, text=text)
            for page, text in zip(pages, texts, strict=True)
        ]
        answers = measured(given, settings, command(GIVEN), advance)
    kept, scored = dict.fromkeys(rulesets, 0), list[str]()
    for page, answer in zip(pages, answers, strict=True):
        features = features_of(_record(page), answer, Likeness(), "", settings.tokenizer, 0)
        for ruleset_name, ruleset in rulesets.items():
            verdict, text = judge_and_text(features, ruleset)
            if verdict.verdict in KEPT:
                kept[ruleset_name] += 1
                if ruleset_name == DEFAULT:
                    scored.append(text)
    flags = [score.flag for score in detector.score(scored) if score.flag is not None]
    return Consequences(len(pages), kept, len(flags), sum(flags))


def _record(page: BenchPage) -> Page:
    return Page(id=page.label.id, site=page.label.site, page_id=page.label.id, url=page.label.url, encoding="utf-8")
