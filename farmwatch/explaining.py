"""Why a page was kept or dropped: its features, each rule, its score; from the log, or from a file of HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from w3lib.encoding import html_body_declared_encoding, read_bom

from crawler.urls import normalise, page_id, site_of
from farmwatch.config import Config
from farmwatch.errors import FarmwatchError, NotFound
from farmwatch.pipes import verdict_line
from filters.judging import ARTICLE, judge
from filters.measurer import Measurer
from filters.ruleset import Ruleset
from filters.workers import ExtractionPool
from scoring.detector import Detector
from stream.log import Log, partition_of
from stream.records import Features, Page, R, Score, Verdict, decode
from stream.topics import FEATURES, PAGES, SCORES, VERDICTS


@dataclass(frozen=True, slots=True)
class Explanation:
    """A page's features and verdict; `score` is None where no detector has read it yet, or it is no article."""

    features: Features
    verdict: Verdict
    score: Score | None
    source: str  # log | file
    judged: str  # live: the verdict stands in the log; now: it was made for this explanation


def explain_url(log: Log, url: str, ruleset: Ruleset, *, live: bool) -> Explanation:
    """Look a page up. `live` shows the verdict in the log where there is one; else the features are judged now.

    Raises UnusableUrl, NotFound; the latter says what is known of the page.
    """
    site = site_of(url)
    topics = log.topics()
    if FEATURES not in topics:
        raise NotFound("the log has no topics yet: run `farmwatch up`")
    partition = partition_of(site, topics[FEATURES])
    spellings = _spellings(url)
    found: dict[str, Features] = {}
    others: set[str] = set()  # URLs only: the texts of a large site need not be in memory
    for record in _records(log, FEATURES, partition, Features):
        if record.page_id in spellings:
            found[record.page_id] = record
        elif record.site == site:
            others.add(record.url)
    features = next((found[wanted] for wanted in spellings if wanted in found), None)
    if features is None:
        near = get_close_matches(normalise(url), sorted(others), 3)
        raise NotFound(_why_not(log, partition, spellings, normalise(url)) + _near(near))
    verdict = None
    if live:
        verdict = _newest(record for record in _records(log, VERDICTS, partition, Verdict) if record.id == features.id)
    score = None
    if features.text_digest:
        digest = features.text_digest
        score = _newest(record for record in _records(log, SCORES, partition, Score) if record.text_digest == digest)
    judged = "now" if verdict is None else "live"
    return Explanation(features, verdict or judge(features, ruleset), score, "log", judged)


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
    verdict = judge(features, ruleset)
    score = None
    if verdict.verdict == ARTICLE:
        found = detector.score([features.text])[0]
        score = Score(
            id=f"{features.text_digest}:{detector.identity}",
            site="",
            page_id=features.page_id,
            fetch_id="",
            text_digest=features.text_digest,
            detector=detector.identity,
            score=found.score,
            p_llm=found.p_llm,
            flag=found.flag,
            abstain=found.abstain,
            tokens=found.tokens,
        )
    return Explanation(features, verdict, score, "file", "now")


def as_json(found: Explanation) -> dict[str, Any]:
    """An explanation with the names of the pipes."""
    features, score = found.features, found.score
    return {
        **verdict_line(found.verdict),
        "source": found.source,
        "judged": found.judged,
        "extract": {"path": features.extract_path, "error": features.extract_error},
        "measures": features.measures,
        "feature_epoch": features.epoch,
        "fetched_at": features.fetched_at,
        "found_by": features.found_by,
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


def _records(log: Log, topic: str, partition: int, kind: type[R]) -> Iterator[R]:
    for message in log.read(topic, partition):
        if message.value:  # neither a tombstone nor a heartbeat
            yield decode(kind, message.value)


def _newest(records: Iterator[R]) -> R | None:
    last = None
    for last in records:  # noqa: B007 - the last one is what is wanted
        pass
    return last


def _spellings(url: str) -> dict[str, str]:
    """Page id -> URL of what may be meant: as given, then with or without the slash at the end of its path."""
    address, mark, query = normalise(url).partition("?")
    other = address.removesuffix("/") if address.endswith("/") else f"{address}/"
    return {page_id(spelling): spelling for spelling in (url, f"{other}{mark}{query}")}


def _near(urls: Sequence[str]) -> str:
    return f"; near it are: {', '.join(urls)}" if urls else ""


def _why_not(log: Log, partition: int, wanted: Mapping[str, str], url: str) -> str:
    page = _newest(record for record in _records(log, PAGES, partition, Page) if record.page_id in wanted)
    if page is None:
        return f"{url}: not in the log: no hit asked for it, or it was not fetched yet, or retention took it"
    if page.outcome == "fetched":
        return f"{url}: fetched, and not measured yet"
    if page.outcome == "failed":
        return f"{url}: could not be fetched: {page.reason.replace('_', ' ')}"
    return f"{url}: {page.outcome}: {page.reason}"


def _charset(html: bytes) -> str:
    return read_bom(html)[0] or html_body_declared_encoding(html) or ""
