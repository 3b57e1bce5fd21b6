"""How long the topics keep their records: the settings, and their defaults on each kind of log."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

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
