"""The pipes `measure` and `judge`: lines in and out of the functions of the stages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path

import msgspec
import numpy as np
import zstandard

from crawler.errors import UnusableUrl
from crawler.web.urls import page_id, site_of
from farmwatch.terminal.jsonl import JsonLines, batches, write_line
from farmwatch.terminal.messages import message
from filters.duplicates.lines import marked_lines, pack_marks
from filters.extraction.blocks import Block, pack, unpack
from filters.extraction.interface import ExtractError
from filters.measure.epoch import feature_epoch
from filters.measure.page_measures import PageMeasures, RawPage, measure_raw
from filters.measure.workers import ExtractionPool
from filters.perplexity.names import DANGER
from filters.quality.names import MEASURES, TEXTS
from filters.rules.catalogue import RULES
from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import Ruleset, load_ruleset
from filters.segments.names import SegmentKind
from filters.settings import MeasureSettings
from filters.site_memory.measurer import own_segments_of, quality_of, site_dates_of
from filters.site_memory.memory import Likeness, SiteMemory
from filters.site_memory.rows import NoState
from filters.structure import names as structure_names
from stream.schema.dates import PageDates, Precision
from stream.schema.records import Features, Segments, Verdict
from stream.schema.vocabulary import KEPT
from stream.text.toml import as_toml
from stream.text.user_errors import Exit, FarmwatchError

_NUMBERS = frozenset(kind.of for kind in RULES.values() if kind.threshold is float)
_PAGES_PER_JOB = 8  # read ahead: enough for busy processes, little enough for memory


class PageLine(msgspec.Struct, kw_only=True):
    """Input of `measure`."""

    url: str
    html: str
    site: str = ""


class Extract(msgspec.Struct, kw_only=True):
    """How the main text was found."""

    path: str = ""
    error: str = ""


class SegmentsLine(msgspec.Struct, kw_only=True):
    """The segments of one kind, as in the features record; `without`: numbers of lines of the text."""

    kind: SegmentKind
    path: str = ""
    texts: list[str] = []
    without: list[int] = []
    words: int = 0
    language: str | None = None
    language_probability: float | None = None
    repetition: float | None = None


class DateLine(msgspec.Struct, kw_only=True):
    """A date that a page states; `day` is the first of a month or a year."""

    day: date
    precision: Precision = Precision.DAY
    source: str = ""


class DatesLine(msgspec.Struct, kw_only=True):
    """When a page was published and last changed, as in the features record."""

    published: DateLine | None = None
    modified: DateLine | None = None
    agreeing: int = 0
    flags: list[str] = []


class FeaturesLine(msgspec.Struct, kw_only=True):
    """Output of `measure`, input of `judge`. `quality`: text -> measure -> value, see `filters.quality.names`.

    `structure`: measure -> value, see `filters.structure.names`; empty for a page that was not parsed. Rows of
    `blocks`: kind, characters, link characters, code characters. `template_lines`: numbers of lines
    of the text, from 0.
    """

    url: str
    site: str
    page_id: str = ""
    text: str = ""
    extract: Extract = msgspec.field(default_factory=Extract)
    measures: dict[str, float | str | None] = {}
    quality: dict[str, dict[str, float | None]] = {}
    structure: dict[str, float | None] = {}
    blocks: list[Block] = []
    template_lines: list[int] = []
    segments: list[SegmentsLine] | None = None
    dates: DatesLine | None = None
    signals: list[str] | None = None
    feature_epoch: str = ""


class RuleLine(msgspec.Struct, kw_only=True):
    """A rule of a verdict. `outcome`: pass, fail or n/a."""

    name: str
    value: float | str | None
    op: str
    threshold: float | str | list[str] | None
    outcome: str


class ArticleLine(msgspec.Struct, kw_only=True):
    """Output of `judge --articles`, input of `score`: the text that the ruleset has scored."""

    id: str
    url: str
    site: str
    text: str


class VerdictLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Output of `judge`, which leaves the article out."""

    url: str
    site: str
    verdict: str
    first_failed: str
    failed: list[str]
    rules: list[RuleLine]
    ruleset: str
    digest: str
    article: ArticleLine | None = None  # of a page that the ruleset keeps


def measure_lines(files: Sequence[Path], jobs: int, settings: MeasureSettings) -> Exit:
    """Pages to features. Extraction runs ahead in processes, the comparison with the site's earlier pages in order."""
    lines = JsonLines(files, PageLine, "measure", bar=True)
    jobs = jobs or os.cpu_count() or 1
    epoch = feature_epoch(settings)
    seen = SiteMemory(cached_bytes=1 << 62)
    with closing(ExtractionPool(msgspec.structs.replace(settings, workers=jobs))) as pool:
        for batch in batches(lines, jobs * _PAGES_PER_JOB):
            named = []
            for place, page in batch:
                try:
                    named.append((page, page.site or site_of(page.url), page_id(page.url)))
                except UnusableUrl as error:
                    lines.bad(place, error, "url")
            alone = pool.map([_raw(page) for page, _, _ in named])
            for (page, site, ident), measured in zip(named, alone, strict=True):
                likeness = seen.of(NoState(), 0, site, ident, measured)
                write_line(_features_line(page.url, site, ident, measured, likeness, settings.tokenizer, epoch))
    return lines.end()


def measure_page(page: PageLine, settings: MeasureSettings) -> FeaturesLine:
    """Features of a page alone, measured in this process: nothing bounds its time. Raises UnusableUrl, MissingExtra."""
    site, ident = page.site or site_of(page.url), page_id(page.url)
    measured = measure_raw(_raw(page), settings)
    likeness = SiteMemory().of(NoState(), 0, site, ident, measured)
    return _features_line(page.url, site, ident, measured, likeness, settings.tokenizer, feature_epoch(settings))


def _raw(page: PageLine) -> RawPage:
    body = zstandard.ZstdCompressor(level=1).compress(page.html.encode("utf-8", "replace"))
    return RawPage(page.url, "utf-8", body)


def _features_line(
    url: str, site: str, ident: str, measured: PageMeasures, likeness: Likeness, tokenizer: str, epoch: str
) -> FeaturesLine:
    quality = quality_of(measured, likeness.template_lines, tokenizer)
    return FeaturesLine(
        url=url,
        site=site,
        page_id=ident,
        text=measured.text,
        extract=Extract(path=measured.path, error=measured.error),
        measures={**measured.measures, **likeness.measures()},
        quality={text: dict(zip(MEASURES, row, strict=True)) for text, row in quality.items()},
        structure=structure_by_name(measured.structure),
        blocks=unpack(measured.blocks),
        template_lines=marked_lines(likeness.template_lines),
        segments=[
            SegmentsLine(**{**msgspec.structs.asdict(of_kind), "without": marked_lines(of_kind.without)})
            for of_kind in own_segments_of(measured, likeness, tokenizer)
        ],
        dates=dates_line(site_dates_of(measured, likeness)),
        signals=measured.signals,
        feature_epoch=epoch,
    )


def judge_lines(files: Sequence[Path], ruleset_name: str, articles: bool) -> Exit:
    """Features to verdicts. Raises BadRuleset before the first line is read."""
    ruleset = load_ruleset(ruleset_name)
    if ruleset.fluent:
        message(DANGER)
    lines = JsonLines(files, FeaturesLine, "judge")
    for place, line in lines:
        try:
            judged = judge_features(line, ruleset)
        except BadFeatures as error:
            lines.bad(place, error, "features")
            continue
        if not articles:
            write_line(msgspec.structs.replace(judged, article=None))
        elif judged.article is not None:
            write_line(judged.article)
    return lines.end()


class BadFeatures(FarmwatchError):
    """Features that no run of `measure` gives. The operator measures the page again."""

    exit = Exit.USAGE


def judge_features(line: FeaturesLine, ruleset: Ruleset) -> VerdictLine:
    """The verdict of a ruleset, with the article of a page that it keeps. Raises BadFeatures."""
    try:
        features = features_of(line)
        if not (line.measures or line.extract.error):
            raise ValueError("no measures and no extract.error, which `farmwatch lab measure` makes of a page")
        verdict, text = judge_and_text(features, ruleset)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadFeatures(f"features that cannot be judged: {error}") from error
    judged = verdict_line(verdict)
    if verdict.verdict in KEPT:
        judged.article = ArticleLine(id=line.page_id or line.url, url=line.url, site=line.site, text=text)
    return judged


def features_of(line: FeaturesLine) -> Features:
    """The features record of a line; missing measures are unknown. Raises ValueError for an invalid line."""
    known = frozenset(MEASURES)
    for text, measures in line.quality.items():
        if text not in TEXTS or not known.issuperset(measures):
            unknown = text if text not in TEXTS else min(measures.keys() - known)
            raise ValueError(f"quality: {unknown!r} does not exist")
    if unknown_names := line.structure.keys() - set(structure_names.MEASURES):
        raise ValueError(f"structure: {min(unknown_names)!r} does not exist")
    for name, value in line.measures.items():
        if name in _NUMBERS and isinstance(value, str):
            raise ValueError(f"measures: {name} is {as_toml(value)}, not a number")
    if any(not 0 <= number < 2**32 for row in line.blocks for number in row):
        raise ValueError("blocks are rows of four numbers from 0")
    segments = None
    if line.segments is not None:
        segments = [
            Segments(**{**msgspec.structs.asdict(of_kind), "without": _marks("without", of_kind.without, line.text)})
            for of_kind in line.segments
        ]
    return Features(
        id=line.page_id,
        site=line.site,
        page_id=line.page_id,
        url=line.url,
        epoch=line.feature_epoch,
        extract_path=line.extract.path,
        extract_error=line.extract.error or ("" if line.text.strip() else ExtractError.NO_TEXT.value),
        text=line.text,
        measures=line.measures,
        blocks=pack(line.blocks),
        quality={text: [measures.get(name) for name in MEASURES] for text, measures in line.quality.items()},
        structure=[line.structure.get(name) for name in structure_names.MEASURES] if line.structure else [],
        template_lines=_marks("template_lines", line.template_lines, line.text),
        segments=segments,
        dates=msgspec.convert(line.dates, PageDates, from_attributes=True) if line.dates else None,
        signals=line.signals,
    )


def _marks(name: str, numbers: Sequence[int], text: str) -> bytes:
    lines = text.count("\n") + 1
    if any(not 0 <= number < lines for number in numbers):
        raise ValueError(f"{name} are numbers from 0 to {lines - 1}, the last line of the text")
    marks = np.zeros(lines, np.bool_)
    marks[list(numbers)] = True
    return pack_marks(marks)


def dates_line(dates: PageDates | None) -> DatesLine | None:
    """The dates of a features record as objects."""
    return msgspec.convert(dates, DatesLine, from_attributes=True) if dates else None


def structure_by_name(values: Sequence[float | None]) -> dict[str, float | None]:
    """Structure measure -> value. Measures newer than the values are None; {} for a page that was not parsed."""
    names = structure_names.MEASURES
    return dict(zip(names, (*values, *[None] * (len(names) - len(values))), strict=False)) if values else {}


def verdict_line(verdict: Verdict) -> VerdictLine:
    """A verdict with the stable names of the pipe."""
    names = ("url", "site", "verdict", "first_failed", "failed", "ruleset", "digest")
    rules = [RuleLine(**msgspec.structs.asdict(rule)) for rule in verdict.rules]
    return VerdictLine(rules=rules, **{name: getattr(verdict, name) for name in names})
