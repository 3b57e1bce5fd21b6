"""The topics of farmwatch and how long each is kept (docs/reference/topics.md shows this table)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec

from stream.log.contract import CleanupPolicy, Topic
from stream.text.times import DAY_MS

DEFAULT_PARTITIONS = 24  # chosen once, never changed

HITS, PAGES, FEATURES, VERDICTS = "hits", "pages", "features", "verdicts"
SCORE_REQUESTS, SCORES, SITES, DECISIONS = "score.requests", "scores", "sites", "decisions"
REPLAY_REQUESTS = "score.requests.replay"  # of replays: scored when no live request waits
SITE_TERMS = "sites.terms"
TEMPLATES = "templates"
RATES = "rates"
CONTROL, DEAD_LETTERS = "control", "dead-letters"
UNFINISHED = "unfinished-copy"  # exists while `farmwatch log copy` fills the log
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

Days = Annotated[float, msgspec.Meta(gt=0, le=3650)]
HitDays = Annotated[float, msgspec.Meta(gt=0, le=90)]  # TALLY remembers a counted hit for 100 days
TopicBytes = Annotated[int, msgspec.Meta(ge=0, le=10**14)]  # of all partitions; 0: no limit
_GIB = 1024**3


class Limits(NamedTuple):
    """A topic keeps a record for `days`, and at most `size_bytes` in all partitions (0: no limit)."""

    days: float
    size_bytes: int


ON_ONE_MACHINE = {
    "hits": Limits(90, _GIB // 2),
    "pages": Limits(30, 7 * _GIB),
    "features": Limits(180, 5 * _GIB),
    "verdicts": Limits(90, _GIB),
    "score_requests": Limits(30, 3 * _GIB // 2),
    "dead_letters": Limits(30, _GIB // 4),
}
"""17 GiB, with two topics of score requests; about 3 GiB of 20 are left to the compacted topics and the state."""
ON_KAFKA = {name: limits._replace(size_bytes=0) for name, limits in ON_ONE_MACHINE.items()} | {
    "pages": Limits(30, 960 * _GIB)
}


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of topics, in days and in bytes of all partitions (0: no limit); null: see docs/how-to/disk.md."""

    hits_days: HitDays | None = None
    """Days that a hit is kept."""
    hits_bytes: TopicBytes | None = None
    """Most bytes of hits."""
    pages_days: Days | None = None
    """Days that a page is kept: so far back can pages be measured again."""
    pages_bytes: TopicBytes | None = None
    """Most bytes of pages."""
    features_days: Days | None = None
    """Days that features are kept: so far back reaches a replay of a ruleset."""
    features_bytes: TopicBytes | None = None
    """Most bytes of features."""
    verdicts_days: Days | None = None
    """Days that the verdict of a page is kept."""
    verdicts_bytes: TopicBytes | None = None
    """Most bytes of verdicts."""
    score_requests_days: Days | None = None
    """Days that a score request is kept, of live runs and of replays."""
    score_requests_bytes: TopicBytes | None = None
    """Most bytes of score requests: of live runs, and again of replays."""
    dead_letters_days: Days | None = None
    """Days that a dead letter is kept."""
    dead_letters_bytes: TopicBytes | None = None
    """Most bytes of dead letters."""

    def limits(self, name: str, default: Limits) -> Limits:
        """The limits of a topic, by its name in the settings; `default` for those that are not set."""
        days, size_bytes = getattr(self, f"{name}_days"), getattr(self, f"{name}_bytes")
        return Limits(default.days if days is None else days, default.size_bytes if size_bytes is None else size_bytes)

    def is_set(self, name: str) -> bool:
        """Whether a limit of the topic is set."""
        return getattr(self, f"{name}_days") is not None or getattr(self, f"{name}_bytes") is not None


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
