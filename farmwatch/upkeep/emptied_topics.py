"""Detects topics that were deleted and created again: they are empty, although the stages have worked.

`up` creates missing topics and the stages continue, but rates and audits lack the deleted records.
"""

from __future__ import annotations

from collections.abc import Iterator

from replay.runs.lookup import names_of_live
from stream.log.contract import Log
from stream.processing.heartbeat import holds_records
from stream.schema.control import Control
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES, SCORE_REQUESTS, SCORES

_REPLAY = "make it again from features: `farmwatch replay --name rebuilt`, then `farmwatch cutover rebuilt`"
_BACKUP = "restore a backup; without one rates stay right, but audits and replays lack these records"


def find_emptied_topics(log: Log) -> Iterator[tuple[str, str]]:
    """The topics of the live run that must have had records and have none, not even an expired one; and the repair."""
    names = names_of_live(Control(log))
    existing = log.topics()

    def holds(topic: str) -> bool:
        return topic in existing and any(log.end(topic))

    def stores(store: str) -> bool:
        return any(size.records for size in log.sizes([f"state.{store}"]).values())

    def has_read(group: str, topic: str) -> bool:
        return topic in existing and any(offset for offset in log.committed(group, topic))

    judged = log.committed(names.judge_group, names.features) if names.features in existing else []
    has_judged = not holds(names.verdicts) and holds_records(log, names.features, judged)
    expected = (
        (HITS, stores(FRONTIER_STORE), _BACKUP),
        (PAGES, holds(names.features), _BACKUP),
        (names.features, holds(names.verdicts), _BACKUP),
        (names.verdicts, has_judged, _REPLAY),
        (SCORES, has_read("score", SCORE_REQUESTS), _REPLAY),
        (names.sites, not holds(names.sites) and _has_sites(log, names.tally_store), _REPLAY),
    )
    for topic, had_records, repair in expected:
        if had_records and topic in existing and not holds(topic):
            yield topic, repair


def _has_sites(log: Log, store: str) -> bool:
    """Whether TALLY has a site; keys that begin with a zero byte are its own."""
    for partition in range(log.topics().get(f"state.{store}", 0)):
        with log.read_state(store, partition) as state:
            if state.scan(b"", 1, b"\0\xff"):
                return True
    return False
