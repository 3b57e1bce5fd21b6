"""Live groups that would read a topic again from its beginning, or without their state.

A broker forgets the offsets of a group without members after a week, and an operator may delete a group or a topic.
Sites and rates stay right, since TALLY counts a page once, but features and verdicts are written twice. A group whose
store is gone counts or crawls again. `up` warns and starts: at night nobody would look at a daemon that stands still.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from replay.runs.lookup import names_of_live
from replay.runs.topology import reads_of_live
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.topics import FRONTIER_STORE, PAGES, REPLAY_REQUESTS, SCORES
from stream.text.wording import counted


@dataclass(frozen=True, slots=True)
class StartOver:
    """A group that reads topics again: `records` per topic, and why. Without records: one whose store is empty."""

    group: str
    records: dict[str, int]
    why: str
    inputs: tuple[str, ...] = ()  # of a group whose store is empty

    @property
    def said(self) -> str:
        """What happens, in one line."""
        if not self.records:
            return f"the group {self.group} {self.why}: it resumes without what it remembered of the sites"
        topics = " and ".join(f"{topic} ({counted(count, 'record')})" for topic, count in self.records.items())
        return (
            f"the group {self.group} {self.why}, so it reads {topics} again from the beginning: rates stay right, but"
            " the work is done twice, and `farmwatch audit` finds records that are written twice"
        )


def groups_starting_over(log: Log, roles: Collection[Role] = tuple(Role)) -> Iterator[StartOver]:
    """The groups of these roles that lost the offsets of a topic, or have offsets beyond its end, or lost their store.

    Raises LogUnavailable.
    """
    names = names_of_live(Control(log))
    existing = log.topics()
    made_by = (f"state.{FRONTIER_STORE}", names.features, names.verdicts, SCORES, names.sites)
    stores = {Role.CRAWL: (FRONTIER_STORE, PAGES), Role.TALLY: (names.tally_store, names.sites)}
    for role, made, (group, topics) in zip(Role, made_by, reads_of_live(names).items(), strict=True):
        there = [topic for topic in topics if topic in existing]
        if role not in roles or not there:
            continue
        committed = {topic: log.committed(group, topic) for topic in there}
        known = {topic for topic, offsets in committed.items() if any(offset is not None for offset in offsets)}
        sizes = {topic: size.records for topic, size in log.sizes(there).items() if size.records}
        for topic in known & sizes.keys():
            pairs = zip(committed[topic], log.end(topic), strict=True)
            if any(offset is not None and offset > end for offset, end in pairs):
                why = f"has offsets beyond the end of {topic}, which was made anew or cut off"
                yield StartOver(group, {topic: sizes[topic]}, why)
        lost = {topic: records for topic, records in sizes.items() if topic not in known}
        if lost and made in existing and log.sizes([made])[made].records:
            if known:
                lost = {topic: records for topic, records in lost.items() if _was_read(log, topic, made)}
            if lost:
                of = f" of {' and '.join(lost)}" if known else ""
                yield StartOver(group, lost, f"has no offsets{of}, though {made} holds what it made")
        if known and role in stores:
            store, product = stores[role]
            changelog = f"state.{store}"
            is_empty = not any(size.records for size in log.sizes([changelog]).values())
            if is_empty and product in existing and any(log.end(product)):
                yield StartOver(group, {}, f"has offsets, but its store {store} is empty", tuple(there))


def _was_read(log: Log, topic: str, made: str) -> bool:
    """Whether the group must have read `topic`: it wrote to `made` after the first record that is kept there.

    Requests of replays are left out: they wait while there are live ones, and reading them again does no harm.
    """
    if topic == REPLAY_REQUESTS:
        return False
    starts = enumerate(log.beginning(topic))
    times = [m.timestamp_ms for p, start in starts for m in islice(log.read(topic, p, start), 1)]
    first_ms = min(times, default=None)
    return first_ms is not None and any(
        at < end for at, end in zip(log.offset_at(made, first_ms), log.end(made), strict=True)
    )


def remedy(log: Log, prefix: str, found: StartOver) -> str:
    """How the operator prevents it, in words."""
    if not log.forgets_offsets:
        return "to prevent that, stop farmwatch now and restore the log's folder from a backup"
    topics = " ".join(f"--topic {prefix}{topic}" for topic in found.records or found.inputs)
    command = f"kafka-consumer-groups.sh --bootstrap-server HOST:PORT --group {prefix}{found.group} {topics}"
    if found.records:
        why = "to prevent that, stop farmwatch now and set the offsets to the end of what was read"
        return f"{why}: {command} --reset-offsets --to-latest --execute (or --to-datetime)"
    why = "to rebuild it from the records that are kept, stop farmwatch now and let the group read them again"
    return f"{why}: {command} --reset-offsets --to-earliest --execute"
