"""The topics of farmwatch and how long each is kept (docs/reference/topics.md shows this table)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, cast

import msgspec

from stream.log.contract import CleanupPolicy, Topic
from stream.text.times import DAY_MS

DEFAULT_PARTITIONS = 24  # chosen once, never changed

HITS, PAGES, FEATURES, VERDICTS = "hits", "pages", "features", "verdicts"
SCORE_REQUESTS, SCORES, SITES, DECISIONS = "score.requests", "scores", "sites", "decisions"
REPLAY_REQUESTS = "score.requests.replay"  # of replays: scored when no live request waits
SITE_TERMS = "sites.terms"
TEMPLATES = "templates"
SITEMAPS = "sitemaps"
ADS_TXT = "ads_txt"
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
TopicName = Literal["hits", "pages", "features", "verdicts", "score_requests", "dead_letters"]
_HIT_DAYS = 90  # TALLY remembers a counted hit for 100
TopicBytes = Annotated[int, msgspec.Meta(ge=0, le=10**14)]  # of all partitions; 0: no limit
_GIB = 1024**3


class Limits(NamedTuple):
    """A topic keeps a record for `days`, and at most `size_bytes` in all partitions (0: no limit)."""

    days: float
    size_bytes: int


ON_ONE_MACHINE = {
    "hits": Limits(_HIT_DAYS, _GIB // 2),
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
    """Limits of topics, as tables of the names hits, pages, features, verdicts, score_requests and dead_letters.

    A topic without an entry: see docs/how-to/disk.md.
    """

    days: dict[TopicName, Days] = {}
    """Topic -> days that a record is kept, such as {pages = 90}. Of hits at most 90."""
    bytes: dict[TopicName, TopicBytes] = {}
    """Topic -> most bytes of all partitions together, such as {pages = 50_000_000_000}; 0: no limit."""

    def __post_init__(self) -> None:
        if self.days.get("hits", 0) > _HIT_DAYS:
            raise ValueError(f"days: hits are kept {_HIT_DAYS} days at most")

    def limits(self, name: str, default: Limits) -> Limits:
        """The limits of a topic, by its name in the settings; `default` for those that are not set."""
        topic = cast("TopicName", name)
        return Limits(self.days.get(topic, default.days), self.bytes.get(topic, default.size_bytes))


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
        compacted(SITEMAPS),
        compacted(ADS_TXT),
        Topic(RATES, 1, CleanupPolicy.COMPACT),
        *(compacted(f"state.{store}") for store in stores),
        Topic(CONTROL, 1, CleanupPolicy.COMPACT),
    ]
