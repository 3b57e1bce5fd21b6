"""Why a page was kept or dropped: features, every rule, what repeats, the score; from the log, or a file of HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from w3lib.encoding import html_body_declared_encoding, read_bom

from farmwatch.config import Config
from farmwatch.errors import FarmwatchError
from farmwatch.page_records import Found, earlier_pages, find_page, live_verdict, scores_of
from farmwatch.pipes import verdict_line
from filters.epoch import feature_epoch
from filters.judging import ARTICLE, judge, judge_and_text, scored_text
from filters.measurer import Measurer
from filters.quality import MEASURES
from filters.repeats import Repeats
from filters.ruleset import Ruleset
from filters.settings import MeasureSettings
from filters.workers import ExtractionPool
from scoring.detector import Detector
from stream.log import Log
from stream.records import Features, Score, Verdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """A page's features and verdict, and what they rest on.

    `score` is None where no detector has read the text yet, or the page is no article; `repeats` is None for a page
    without a main text, and for a file.
    """

    features: Features
    verdict: Verdict
    score: Score | None
    source: str  # log | file
    judged: str  # live: the verdict stands in the log; now: it was made for this explanation
    reads: str  # text whose quality measures are judged: main | c4; "" = unknown, the ruleset is not at hand
    scored: str  # text that is scored: main | c4
    scored_text: str
    repeats: Repeats | None = None
    differs: str = ""  # why the passages do not add up to the recorded share; "" where they do


def explain_url(
    log: Log, url: str, ruleset: Ruleset, settings: MeasureSettings, *, live: bool, configured: Callable[[], str]
) -> Explanation:
    """Look a page up. `live` shows the verdict in the log where there is one; else the features are judged now.

    `configured` names the configured detector: its score is chosen where there are several. Raises UnusableUrl,
    NotFound; the latter says what is known of the page.
    """
    found = find_page(log, url)
    features = found.features
    recorded = live_verdict(log, found) if live else None
    verdict = recorded or judge(features, ruleset)
    name, text = _text_scored(features, verdict, ruleset)
    repeats = None if features.extract_error else _repeats(log, found, settings)
    return Explanation(
        features,
        verdict,
        _chosen(scores_of(log, found, verdict.text_digest), configured),
        "log",
        "now" if recorded is None else "live",
        ruleset.reads if verdict.digest == ruleset.digest else "",
        name,
        text,
        repeats,
        "" if repeats is None else _differs(repeats, features, settings),
    )


def explain_file(file: Path, config: Config, ruleset: Ruleset, detector: Detector) -> Explanation:
    """Measure, judge and score a file of HTML alone: nothing is there to repeat. Raises FarmwatchError."""
    try:
        html = file.read_bytes()
    except OSError as error:
        raise FarmwatchError(f"{file}: cannot be read: {error.strerror}") from error
    settings = msgspec.structs.replace(config.measure, workers=1)
    pool = ExtractionPool(settings)
    try:
        features = Measurer(settings, pool).measure("", html, "", encoding=_charset(html), page_id=str(file))
    finally:
        pool.close()
    features = msgspec.structs.replace(features, measures={**features.measures, "url_path": None})  # a file has no URL
    verdict, text = judge_and_text(features, ruleset)
    score = None
    if verdict.verdict == ARTICLE:
        found = detector.score([text])[0]
        score = Score(
            id=f"{verdict.text_digest}:{detector.identity}",
            site="",
            page_id=features.page_id,
            fetch_id="",
            text_digest=verdict.text_digest,
            detector=detector.identity,
            score=found.score,
            p_llm=found.p_llm,
            flag=found.flag,
            abstain=found.abstain,
            tokens=found.tokens,
        )
    name, text = _text_scored(features, verdict, ruleset)
    return Explanation(features, verdict, score, "file", "now", ruleset.reads, name, text)


def quality_by_name(features: Features) -> dict[str, dict[str, float | None]]:
    """Text -> measure -> value; measures that are newer than the record are unknown, and all are of a record older."""
    return {
        text: dict(zip(MEASURES, (*values, *[None] * (len(MEASURES) - len(values))), strict=False))
        for text, values in features.quality.items()
    }


def as_json(found: Explanation) -> dict[str, Any]:
    """An explanation with the names of the pipes."""
    features, score, repeats = found.features, found.score, found.repeats
    return {
        **verdict_line(found.verdict),
        "source": found.source,
        "judged": found.judged,
        "extract": {"path": features.extract_path, "error": features.extract_error},
        "measures": features.measures,
        "quality": quality_by_name(features),
        "feature_epoch": features.epoch,
        "fetched_at": features.fetched_at,
        "found_by": features.found_by,
        "reads": found.reads,
        "scored_text": {
            "name": found.scored,
            "chars": len(found.scored_text),
            "bytes": len(found.scored_text.encode("utf-8", "replace")),
            "digest": found.verdict.text_digest,
        },
        "repeats": []
        if repeats is None
        else [
            {"text": part.text, "bytes": part.size_bytes, "seen_on": list(part.seen_on), "pages": part.pages}
            for part in repeats.passages()
        ],
        "repeats_differ": found.differs,
        "earlier_pages": None if repeats is None else repeats.compared,
        "score": None
        if score is None
        else {
            "detector": score.detector,
            "score": score.score,
            "p_llm": score.p_llm,
            "flag": score.flag,
            "abstain": score.abstain,
            "tokens": score.tokens,
        },
    }


def _text_scored(features: Features, verdict: Verdict, ruleset: Ruleset) -> tuple[str, str]:
    """Name of the text that is scored, and the text; of a verdict by another ruleset its digest says which it was."""
    if verdict.digest == ruleset.digest:
        return ruleset.scores, scored_text(features, ruleset)[0]
    if verdict.text_digest in ("", features.text_digest):
        return "main", features.text
    from filters.c4 import clean  # few verdicts need it

    return "c4", clean(features.text).text


def _chosen(scores: Sequence[Score], configured: Callable[[], str]) -> Score | None:
    """The configured detector's score, else the newest."""
    if len(scores) > 1:
        identity = configured()
        scores = [score for score in scores if score.detector == identity] or scores
    return scores[-1] if scores else None


def _repeats(log: Log, found: Found, settings: MeasureSettings) -> Repeats:
    repeats = Repeats(found.features.text, settings.chunk_mode)
    for page in earlier_pages(log, found):
        repeats.compare(page.url, page.text)
    return repeats


def _differs(repeats: Repeats, features: Features, settings: MeasureSettings) -> str:
    recorded = features.measures.get("duplicate_share")
    if not isinstance(recorded, float | int) or not repeats.size_bytes:
        return ""
    shown = repeats.repeated_bytes / repeats.size_bytes
    if abs(shown - recorded) < 1e-9:
        return ""
    said = f"recorded when measured: {recorded:.1%}, the log now shows {shown:.1%}: "
    if features.epoch != feature_epoch(settings):
        return f"{said}measured with other settings than those configured here (epoch {features.epoch})"
    if shown > recorded:
        return f"{said}{settings.chunk_ids_per_site} chunks of a site are remembered, the oldest pages lose theirs"
    return f"{said}an earlier page, or an earlier visit to one, has left the log"


def _charset(html: bytes) -> str:
    return read_bom(html)[0] or html_body_declared_encoding(html) or ""
