"""Explains a page of the log or an HTML file: features, every rule, repeats and score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from crawler.web.content_type import charset_of
from crawler.web.urls import site_of
from farmwatch.config.config import Config
from farmwatch.explain.page_records import PageRecords
from farmwatch.terminal.jsonl import binary_input
from farmwatch.terminal.remedies import in_full
from filters.duplicates.repeats import Repeats
from filters.measure.epoch import feature_epoch
from filters.measure.workers import ExtractionPool
from filters.quality.names import TextName
from filters.rules.judgement import judge, judge_and_text, scored_text
from filters.rules.kinds import Rule
from filters.rules.ruleset import Fluent, Ruleset
from filters.segments.names import OF_SITE
from filters.settings import SITE_CAPS, MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.stages.judge import request_of
from scoring.interface import Detector
from scoring.stages.score import score_of
from stream.schema.records import Features, Score, Verdict
from stream.schema.vocabulary import KEPT, PageClass
from stream.text.user_errors import FarmwatchError


class ShownSentence(NamedTuple):
    """A sentence with the white space after it; `is_unlikely`: it is not scored."""

    text: str
    perplexity: float | None  # None = no word
    is_unlikely: bool


@dataclass(frozen=True, slots=True)
class PageExplanation:
    """The features and the verdict of a page, with their evidence.

    `score` belongs to the text that the verdict scores; None if it has no score yet, or the page is dropped.
    `rules` (by the names of `named_outcomes`) and `reads` are empty if the verdict is by another ruleset than the given
    one. `repeats` is None for a page without a main text, and for a file.
    """

    features: Features
    verdict: Verdict
    score: Score | None
    source: str  # log | file
    judged: str  # live: verdict from the log; now: judged for this explanation
    settings: MeasureSettings  # the configured ones
    rules: Mapping[str, Rule]
    reads: str  # TextName whose quality measures are judged by rules without a text of their own
    scored: str  # TextName of the scored text; "" = unknown
    scored_text: str  # "" = unknown
    counted: Sequence[str]  # kinds of segments that the ruleset scores; empty = none, or unknown
    sentences: Sequence[ShownSentence]  # of a main text whose unlikely sentences are not scored
    repeats: Repeats | None = None
    differs: str = ""  # why the repeats differ from the recorded share; "" = they do not


def explain_page(
    records: PageRecords,
    ruleset: Ruleset,
    settings: MeasureSettings,
    *,
    live: bool,
    detector_identity: Callable[[], str],
) -> PageExplanation:
    """Explain a page of the log. `live` uses the verdict in the log, if there is one; otherwise it is judged now."""
    features = records.found.features
    verdicts = reversed(records.verdicts()) if live else iter(())
    recorded = next((verdict for verdict in verdicts if verdict.id == features.id), None)
    verdict = recorded or judge(features, ruleset)
    repeats = None
    if not features.extract_error:
        repeats = Repeats(features.text)
        for page in records.earlier():
            repeats.compare(page.url, page.text)
    return _explanation(
        features,
        verdict,
        ruleset,
        settings,
        score=_score(records, verdict, detector_identity),
        source="log",
        judged="now" if recorded is None else "live",
        repeats=repeats,
        differs="" if repeats is None else _share_difference(repeats, features, settings),
    )


def explain_file(file: Path, config: Config, ruleset: Ruleset, detector: Detector, url: str = "") -> PageExplanation:
    """Measure, judge and score an HTML file as if it were the page at `url`. Raises UnusableUrl, FarmwatchError."""
    site = site_of(url) if url else ""
    try:
        with binary_input(file) as stream:
            html = stream.read()
    except FarmwatchError as error:
        hint = f"for a page of the log, give the full URL, such as https://{file}"
        raise FarmwatchError(f"{in_full(error)}; {hint}") from error
    settings = msgspec.structs.replace(config.measure, workers=1)
    with closing(ExtractionPool(settings)) as pool:
        features = Measurer(settings, pool).measure(url, html, site, encoding=charset_of("", html), page_id=str(file))
    verdict, text = judge_and_text(features, ruleset)
    score = None
    if verdict.verdict in KEPT:
        text_scored = detector.score([text])[0]
        score = score_of(request_of(features, verdict, text, detector.identity), detector.identity, text_scored)
    return _explanation(features, verdict, ruleset, config.measure, score=score, source="file", judged="now")


def _explanation(
    features: Features, verdict: Verdict, ruleset: Ruleset, settings: MeasureSettings, **evidence: Any
) -> PageExplanation:
    is_given = verdict.digest == ruleset.digest
    is_article = is_given and verdict.verdict == PageClass.ARTICLE
    name, text = _text_of(features, verdict.text_digest)
    counted: Sequence[str] = OF_SITE if name == TextName.SEGMENTS else ()
    if is_given:
        counted = [kind for table in ruleset.tables.values() for kind in table.kinds]
        scores = TextName.SEGMENTS if verdict.verdict == PageClass.SEGMENTS else ruleset.scores
        name, text = scores, scored_text(features, scores, counted, ruleset.fluent)[0]
    return PageExplanation(
        features,
        verdict,
        settings=settings,
        rules={f"{of}{rule.name}": rule for of, table in ruleset.tables.items() for rule in table.rules}
        if is_given
        else {},
        reads=ruleset.reads if is_given else "",
        scored=name,
        scored_text=text,
        counted=counted,
        sentences=_sentences(features.text, ruleset.fluent) if is_article and ruleset.fluent else (),
        **evidence,
    )


def _score(records: PageRecords, verdict: Verdict, detector_identity: Callable[[], str]) -> Score | None:
    """The score of the text that the verdict scores: that of the configured detector, else the newest."""
    scores = records.scores({verdict.text_digest}).get(verdict.text_digest, [])
    if verdict.verdict not in KEPT or not scores:
        return None
    if len(scores) > 1:
        identity = detector_identity()
        scores = [score for score in scores if score.detector == identity] or scores
    return scores[-1]


def _text_of(features: Features, digest: str) -> tuple[str, str]:
    """Name and content of the text with this digest; "" if no text has it, as of a dropped page."""
    texts = ((name, *scored_text(features, name)) for name in TextName if name != TextName.FLUENT)
    return next(((name, text) for name, text, text_digest in texts if text_digest == digest), ("", ""))


def _sentences(text: str, fluent: Fluent) -> list[ShownSentence]:
    found = fluent.model.surprisals(text)
    bounds = pairwise(found.bounds.tolist())
    marks = zip(bounds, found.perplexities(), found.above(fluent.limit).tolist(), strict=True)
    return [ShownSentence(text[start:end], perplexity, is_unlikely) for (start, end), perplexity, is_unlikely in marks]


def _share_difference(repeats: Repeats, features: Features, settings: MeasureSettings) -> str:
    recorded = features.measures.get("duplicate_share")
    if not isinstance(recorded, float | int) or not repeats.size_bytes:
        return ""
    shown = repeats.repeated_bytes / repeats.size_bytes
    if abs(shown - recorded) < 1e-9:
        return ""
    text = f"recorded when measured: {recorded:.1%}, the log now shows {shown:.1%}: "
    if features.epoch != feature_epoch(settings):
        return f"{text}measured with other settings (epoch {features.epoch})"
    cap = f"MEASURE remembers the newest {SITE_CAPS.chunk_ids_per_site:,} chunks of a site"
    return f"{text}earlier pages have left the log, or {cap}"
