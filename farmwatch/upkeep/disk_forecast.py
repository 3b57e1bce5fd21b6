"""Forecasts the size of the log: how fast each topic grows, what retention removes, and when the disk is full.

A topic grows at the mean pace of the records that it holds. Retention by time and size ends the growth of a topic; a
compacted topic and keyed state grow with the number of sites, so their growth has no end here.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.topic_limits import kept, limits_of
from stream.log.contract import At, CleanupPolicy, Log, Topic
from stream.text.times import DAY_MS, DAY_S
from stream.text.wording import lasting, size

LEAST_DAYS = 1.0  # a younger log has no forecast
_FAR_DAYS = 3650
_PROBED = 8  # records from the first retained offset on; on Kafka the first ones may be transaction markers


@dataclass(frozen=True, slots=True)
class TopicGrowth:
    """The size of a topic, its growth and its end: `most_bytes` is infinite without a limit."""

    name: str
    size_bytes: int
    bytes_a_day: float
    most_bytes: float
    kept: str

    def after(self, days: float) -> float:
        """Size in so many days, retention applied."""
        return min(self.most_bytes, self.size_bytes + self.bytes_a_day * days)


@dataclass(frozen=True, slots=True)
class DiskForecast:
    """The growth of all topics; `full_in_days` is None if they never need the free bytes."""

    size_bytes: int
    bytes_a_day: float  # now, without the topics that are at their limit
    full_in_days: float | None


def topic_growths(log: Log, now_ms: int) -> tuple[list[TopicGrowth], float]:
    """The growth of each topic, by name, and the age of the log in days. The pace is 0 in a log of less than a day."""
    topics = log.definitions()
    sizes = log.sizes(list(topics))
    oldest = _oldest_ms(log, topics)
    age_days = (now_ms - min(oldest.values(), default=now_ms)) / DAY_MS
    growths = []
    for name in sorted(topics):
        topic, size_bytes = topics[name], sizes[name].bytes if name in sizes else 0
        deletes = topic.cleanup is CleanupPolicy.DELETE
        span_days = max(LEAST_DAYS, (now_ms - oldest[name]) / DAY_MS if deletes and name in oldest else age_days)
        pace = size_bytes / span_days if age_days >= LEAST_DAYS else 0.0
        most_bytes = math.inf
        if deletes:
            limits = limits_of(topic)
            by_size = limits.size_bytes if topic.retention_bytes is not None else math.inf
            by_time = pace * limits.days if topic.retention_ms is not None and pace else math.inf
            most_bytes = min(by_size, by_time)
        growths.append(TopicGrowth(name, size_bytes, pace, most_bytes, kept(topic)))
    return growths, age_days


def forecast(growths: Sequence[TopicGrowth], free_bytes: float) -> DiskForecast:
    """When growing topics have taken the free bytes of a disk."""
    size_bytes = sum(growth.size_bytes for growth in growths)

    def taken(days: float) -> float:
        return sum(growth.after(days) for growth in growths) - size_bytes

    full: float | None = None
    if taken(_FAR_DAYS) > free_bytes:
        low, full = 0.0, float(_FAR_DAYS)
        while full - low > 0.01:  # `taken` is at first below the free bytes and grows
            middle = (low + full) / 2
            low, full = (low, middle) if taken(middle) > free_bytes else (middle, full)
    return DiskForecast(size_bytes, taken(1.0) - taken(0.0), full)


def forecast_in_words(config: Config, growths: Sequence[TopicGrowth], age_days: float, now_ms: int) -> list[str]:
    """Size and growth of the log, and when its disk is full."""
    free = None if config.log.url.startswith("kafka:") else free_bytes(config)
    growth = forecast(growths, math.inf if free is None else free)
    if age_days < LEAST_DAYS:
        return [f"the log holds {size(growth.size_bytes)}; a forecast needs records of a day"]
    lines = [f"the log holds {size(growth.size_bytes)} and grows by {size(growth.bytes_a_day)} a day"]
    if free is None:
        lines.append("farmwatch does not see the brokers' disks: compare this with their free space")
    elif growth.full_in_days is None:
        lines.append(f"retention ends the growth before the disk is full ({size(free)} free)")
    else:
        span_s = growth.full_in_days * DAY_S
        due = time.strftime("%Y-%m-%d", time.gmtime(now_ms / 1000 + span_s))
        lines.append(
            f"at this pace the disk ({size(free)} free) is full in {lasting(span_s)}, on {due}: add disk, or lower the"
            " limits of the largest topics ([retention], docs/how-to/disk.md)"
        )
    return lines


def held_for(topics: Sequence[str]) -> str:
    """What a stopped replay keeps on the disk, to follow the words that it is stopped; "" for nothing."""
    return f"; retention keeps old records of {', '.join(topics)} for it" if topics else ""


def existing_folder(config: Config) -> Path:
    """The folder of an embedded log, or of the local state on Kafka; while it is not made, the first above it."""
    folder = names_folder(config).absolute()
    return next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110 - no error


def free_bytes(config: Config) -> int:
    """Free bytes on the disk of this folder."""
    return shutil.disk_usage(existing_folder(config)).free


def _oldest_ms(log: Log, topics: Mapping[str, Topic]) -> dict[str, int]:
    """Topic -> time of its oldest retained record, as far as it has one."""
    spans: dict[At, tuple[int, int]] = {}
    for name in topics:
        for partition, (first, end) in enumerate(zip(log.beginning(name), log.end(name), strict=True)):
            if first < end:
                spans[At(name, partition)] = (first, min(end, first + _PROBED))
    oldest: dict[str, int] = {}
    for message in log.read_all(spans):
        oldest[message.topic] = min(message.timestamp_ms, oldest.get(message.topic, message.timestamp_ms))
    return oldest
