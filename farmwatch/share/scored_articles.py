"""The scored articles of a run, each with its age and its register: kind of page, length, language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from farmwatch.share.topic_records import newest_fetches, topic_records
from filters.quality.names import MEASURES, TextName
from replay.runs.lookup import names_to_read
from scoring.calibration.threshold import length_name
from stream.log.contract import Log
from stream.schema.projection import projection_of
from stream.schema.records import Features, Record, Score, Segments, Verdict
from stream.schema.topics import SCORES
from stream.schema.vocabulary import KEPT

_WORDS = MEASURES.index("words")


@projection_of(Verdict)
class _Judged(Record, frozen=True, kw_only=True):
    """The fields of a verdict that say which text is scored, and how old the page is."""

    page_id: str
    verdict: str
    text_digest: str
    fetched_at: int
    age: str


@projection_of(Features)
class _Measured(Record, frozen=True, kw_only=True):
    """The fields of a features record that say of which register a page is."""

    measures: dict[str, float | str | None]
    quality: dict[str, list[float | None]]
    segments: list[Segments] | None


class ScoredArticle(NamedTuple):
    """The newest fetch of a page that is an article with a flag or a score. Unknown parts of the register are ""."""

    site: str
    age: str  # PageAge
    score: Score
    kind: str = ""  # of the segments with most of its words
    length: str = ""  # band of words
    language: str = ""
    words: int = 0


def scored_articles(log: Log, detector: str = "", run: str = "") -> Iterator[ScoredArticle]:
    """The articles of a run (default: the live one) with a score of `detector`, those of canaries too.

    `detector` is an identity, or its base, which has all threshold sets; "" = any.

    A partition is held at a time. Raises NotFound for an unknown run.
    """
    names = names_to_read(log, run)
    for partition in range(log.topics().get(names.verdicts, 0)):
        newest = newest_fetches(topic_records(log, _Judged, names.verdicts, [partition]))
        articles = {judged.id: judged for judged in newest if judged.verdict in KEPT}
        registers = {
            features.id: _register(features)
            for features in topic_records(log, _Measured, names.features, [partition])
            if features.id in articles
        }
        scores = {
            (score.site, score.text_digest): score
            for score in topic_records(log, Score, SCORES, [partition])
            if detector in ("", score.detector, score.detector.rpartition("/")[0]) and not score.abstain
        }
        for judged in articles.values():
            if (score := scores.get((judged.site, judged.text_digest))) is not None:
                yield ScoredArticle(judged.site, judged.age, score, *registers.get(judged.id, ()))


def _register(features: _Measured) -> tuple[str, str, str, int]:
    main = features.quality.get(TextName.MAIN)
    words = int(main[_WORDS] or 0) if main else 0
    segments = max(features.segments or (), key=lambda of: of.words, default=None)
    kind = segments.kind if segments else ""
    return kind, length_name(words), str(features.measures.get("language") or ""), words
