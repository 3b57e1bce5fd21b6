"""The search results of a log as lists show them."""

from __future__ import annotations

from collections.abc import Iterator

from farmwatch.share.topic_records import topic_records
from farmwatch.tables.columns import Column, columns_of
from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.schema.records import Hit
from stream.schema.topics import HITS

HIT_COLUMNS: list[Column[Hit]] = columns_of(Hit, "id", source={"total": "count"})
HITS_SHOWN = ("url", "rank", "query", "source", "fetched_at", "engine", "title")


def hit_lines(log: Log) -> Iterator[Hit]:
    """The hits in the order of the log, partition by partition, without those of canary sites."""
    return (hit for hit in topic_records(log, Hit, HITS) if not is_canary(hit.site))
