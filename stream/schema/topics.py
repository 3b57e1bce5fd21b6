"""The topics of farmwatch and how long each is kept (docs/reference/topics.md shows this table)."""

from __future__ import annotations

from collections.abc import Mapping

from stream.log.contract import CleanupPolicy, Topic
from stream.schema.retention import ON_KAFKA, Limits, RetentionSettings
from stream.text.times import DAY_MS

DEFAULT_PARTITIONS = 24  # chosen once, never changed

HITS, PAGES, FEATURES, VERDICTS = "hits", "pages", "features", "verdicts"
SCORE_REQUESTS, SCORES, SITES, DECISIONS = "score.requests", "scores", "sites", "decisions"
REPLAY_REQUESTS = "score.requests.replay"  # of replays: scored when no live request waits
SITE_TERMS = "sites.terms"
TEMPLATES = "templates"
RATES = "rates"
CONTROL, DEAD_LETTERS = "control", "dead-letters"
UNFINISHED = "unfinished-copy"  # exists while `farmwatch copy` fills the log
RETRIES = "retries"  # dead letters that an operator retried or dropped; the live stages read it besides their inputs
FRONTIER_STORE, TALLY_STORE = "frontier", "tally"
SETTING_OF = {  # topics that lose records by time and size -> their name in [retention]
    HITS: "hits",
    PAGES: "pages",
    FEATURES: "features",
    VERDICTS: "verdicts",
    SCORE_REQUESTS: "score_requests",
    REPLAY_REQUESTS: "score_requests",
    DEAD_LETTERS: "dead_letters",
    RETRIES: "dead_letters",
}


def site_memory(feature_epoch: str) -> str:
    """Name of MEASURE's store, its memory of sites in one feature epoch."""
    return f"site-memory.{feature_epoch}"


def all_topics(
    partitions: int,
    feature_epoch: str,
    retention: RetentionSettings = RetentionSettings(),  # noqa: B008  # frozen
    defaults: Mapping[str, Limits] = ON_KAFKA,
) -> list[Topic]:
    """Every topic of a live farmwatch, changelogs of the stores included."""

    def kept(name: str, setting: str) -> Topic:
        days, size_bytes = retention.limits(setting, defaults[setting])
        cap = -(-size_bytes // partitions) if size_bytes else None
        return Topic(name, partitions, CleanupPolicy.DELETE, round(days * DAY_MS), cap)

    def compacted(name: str) -> Topic:
        return Topic(name, partitions, CleanupPolicy.COMPACT)

    stores = (site_memory(feature_epoch), FRONTIER_STORE, TALLY_STORE)
    return [
        *(kept(name, setting) for name, setting in SETTING_OF.items()),
        compacted(SCORES),
        compacted(SITES),
        compacted(SITE_TERMS),
        compacted(DECISIONS),
        compacted(TEMPLATES),
        Topic(RATES, 1, CleanupPolicy.COMPACT),
        *(compacted(f"state.{store}") for store in stores),
        Topic(CONTROL, 1, CleanupPolicy.COMPACT),
    ]
