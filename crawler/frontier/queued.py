"""What the frontier still has to fetch, read from its committed state from outside (audit)."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.frontier.rows import TOTALS_KEY, is_queue_key, refuse_other_format
from stream.log.contract import Log
from stream.schema.topics import FRONTIER_STORE


def queued_pages(log: Log, partition: int, store: str = FRONTIER_STORE) -> Iterator[str]:
    """Page ids of the URLs of a partition that wait to be fetched, or are being fetched. Raises OldFrontier."""
    for key, value in log.scan_state(store, partition):
        if key == TOTALS_KEY:
            refuse_other_format(value, f"partition {partition} of the store {store!r}")
        elif is_queue_key(key):
            yield value.hex()
