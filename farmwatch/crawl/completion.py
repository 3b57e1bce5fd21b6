"""Whether a crawl has nothing left to do now: no hit unread, no site active. Resting sites wait for another day."""

from __future__ import annotations

from crawler.crawl_stage import frontier_left
from replay.runs.topology import READS
from stream.log.contract import Log

_GROUP = "crawl"


def crawl_is_done(log: Log, partitions: int) -> bool:
    """True when nothing can move any more unless somebody appends: the ends stood still while that was seen."""
    ends = _ends(log)
    return _has_read_all(log, ends) and frontier_left(log, partitions).active == 0 and _ends(log) == ends


def _ends(log: Log) -> dict[str, list[int]]:
    return {topic: log.end(topic) for topic in READS[_GROUP]}


def _has_read_all(log: Log, ends: dict[str, list[int]]) -> bool:
    """On Kafka the markers of transactions take offsets, too: what counts is that no record is left."""
    for topic, stops in ends.items():
        committed, beginning = log.committed(_GROUP, topic), log.beginning(topic)
        for partition, stop in enumerate(stops):
            start = max(beginning[partition], committed[partition] or 0)
            if start < stop and next(iter(log.read(topic, partition, start, stop)), None) is not None:
                return False
    return True
