"""The topics of a configuration, and the retention limits of a log's existing topics."""

from __future__ import annotations

from dataclasses import replace

from farmwatch.config.config import Config
from farmwatch.config.opening import refuse_unfinished
from farmwatch.terminal.messages import message
from filters.measure.epoch import feature_epoch
from stream.log.contract import CleanupPolicy, Log, Topic
from stream.schema.topics import (
    FEATURES,
    ON_KAFKA,
    ON_ONE_MACHINE,
    SETTING_OF,
    VERDICTS,
    Limits,
    RetentionSettings,
    all_topics,
)
from stream.text.times import DAY_MS
from stream.text.wording import size

_OF_RUNS = (f"{VERDICTS}.", f"{FEATURES}.")  # topics of replays, kept like those of the first run


def configured_topics(config: Config) -> list[Topic]:
    """Every topic of a live farmwatch with the limits of the configuration."""
    defaults = ON_KAFKA if _is_broker(config) else ON_ONE_MACHINE
    return all_topics(config.log.partitions, feature_epoch(config.measure), config.retention, defaults)


def create_missing(log: Log, config: Config) -> None:
    """Create missing topics; existing ones keep their limits. Raises as `create_topics`."""
    refuse_unfinished(log)
    log.create(configured_topics(config))


def create_topics(log: Log, config: Config) -> None:
    """Create missing topics, and give existing ones the limits of [retention]; a changed limit is reported.

    For the roles, which delete what is beyond the limits. An unset limit is the default on the embedded log. On Kafka
    the topic keeps its own, which an operator may have set. Raises TopicMismatch if log.partitions has changed,
    StreamError for an unfinished copy.
    """
    create_missing(log, config)
    if _is_broker(config) and config.retention == RetentionSettings():
        return
    changed = []
    for now in log.definitions().values():
        setting = setting_of(now.name)
        if setting and now.cleanup is CleanupPolicy.DELETE:
            limits = config.retention.limits(setting, limits_of(now) if _is_broker(config) else ON_ONE_MACHINE[setting])
            cap = -(-limits.size_bytes // now.partitions) if limits.size_bytes else None
            wanted = replace(now, retention_ms=round(limits.days * DAY_MS) or None, retention_bytes=cap)
            if limits_of(wanted) != limits_of(now):
                changed.append((now, wanted))
    log.set_limits([wanted for _, wanted in changed])
    held = log.sizes([now.name for now, _ in changed])
    for now, wanted in changed:
        text = f"retention of {now.name}: {kept(wanted)}; before: {kept(now)}"
        excess = held[now.name].bytes - limits_of(wanted).size_bytes if wanted.retention_bytes is not None else 0
        message(text + (f"; about {size(excess)} of it leave" if excess > 0 else ""))


def setting_of(topic: str) -> str:
    """Name of a topic in [retention]; "" for compacted topics."""
    kind = topic.partition(".")[0] if topic.startswith(_OF_RUNS) else topic
    return SETTING_OF.get(kind, "")


def limits_of(topic: Topic) -> Limits:
    """The limits of a defined topic."""
    return Limits((topic.retention_ms or 0) / DAY_MS, (topic.retention_bytes or 0) * topic.partitions)


def kept(topic: Topic) -> str:
    """The limits of a topic as text: `30 days, 7 GiB`."""
    if topic.cleanup is CleanupPolicy.COMPACT:
        return "newest of each key"
    days, size_bytes = limits_of(topic)
    parts = [f"{days:g} days"] if topic.retention_ms is not None else []
    return ", ".join([*parts, size(size_bytes)] if topic.retention_bytes is not None else parts) or "all"


def _is_broker(config: Config) -> bool:
    return config.log.url.startswith("kafka:")
