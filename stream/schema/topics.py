"""The topics of farmwatch and how long each is kept (docs/reference/topics.md shows this table)."""

from __future__ import annotations

from stream.log.contract import CleanupPolicy, Topic

DEFAULT_PARTITIONS = 24  # chosen once, never changed
_DAY_MS = 86_400_000
PAGES_CAP_BYTES = 40 * 1024**3  # per partition

HITS, PAGES, FEATURES, VERDICTS = "hits", "pages", "features", "verdicts"
SCORE_REQUESTS, SCORES, SITES, DECISIONS = "score.requests", "scores", "sites", "decisions"
REPLAY_REQUESTS = "score.requests.replay"  # of replays: scored when no live request waits
SITE_TERMS = "sites.terms"
RATES = "rates"
CONTROL, DEAD_LETTERS = "control", "dead-letters"
UNFINISHED = "unfinished-copy"  # there while `farmwatch copy` fills the log
RETRIES = "retries"  # dead letters that an operator retried or dropped; the live stages read it beside their inputs
FRONTIER_STORE, TALLY_STORE = "frontier", "tally"


def site_memory(feature_epoch: str) -> str:
    """Name of MEASURE's store, its memory of sites in one feature epoch."""
    return f"site-memory.{feature_epoch}"


def all_topics(partitions: int, feature_epoch: str) -> list[Topic]:
    """Every topic of a live farmwatch, changelogs of the stores included."""

    def kept_for(name: str, days: int, cap: int | None = None) -> Topic:
        return Topic(name, partitions, CleanupPolicy.DELETE, days * _DAY_MS, cap)

    def compacted(name: str) -> Topic:
        return Topic(name, partitions, CleanupPolicy.COMPACT)

    stores = (site_memory(feature_epoch), FRONTIER_STORE, TALLY_STORE)
    return [
        kept_for(HITS, 90),
        kept_for(PAGES, 30, PAGES_CAP_BYTES),
        kept_for(FEATURES, 180),
        kept_for(VERDICTS, 90),
        kept_for(SCORE_REQUESTS, 30),
        kept_for(REPLAY_REQUESTS, 30),
        compacted(SCORES),
        compacted(SITES),
        compacted(SITE_TERMS),
        compacted(DECISIONS),
        Topic(RATES, 1, CleanupPolicy.COMPACT),
        *(compacted(f"state.{store}") for store in stores),
        Topic(CONTROL, 1, CleanupPolicy.COMPACT),
        kept_for(DEAD_LETTERS, 30),
        kept_for(RETRIES, 30),
    ]
