"""Live groups that would read a topic again from its beginning: found before a role works.

A broker forgets the offsets of a group that nobody was in for a week, and an operator may delete a group or a topic.
What was read then is read again. Sites and rates stay right, since TALLY counts a page once. But features and verdicts
are written twice, which the audit reports, and pages are measured and scored again. `up` warns and starts: a daemon
that a supervisor brings up at night would otherwise stand still until somebody looks, to save work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from replay.runs.lookup import names_of_live
from replay.runs.topology import reads_of_live
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.roles import Role
from stream.schema.topics import FRONTIER_STORE, SCORES
from stream.text.wording import counted


@dataclass(frozen=True, slots=True)
class StartOver:
    """A group that reads topics again: `records` per topic, and why."""

    group: str
    records: dict[str, int]
    why: str

    @property
    def said(self) -> str:
        """What happens, in one line."""
        topics = " and ".join(f"{topic} ({counted(count, 'record')})" for topic, count in self.records.items())
        return (
            f"the group {self.group} {self.why}, so it reads {topics} again from the beginning: rates stay right, but"
            " the work is done twice, and `farmwatch audit` finds records that are written twice"
        )


def groups_starting_over(log: Log, roles: Collection[Role] = tuple(Role)) -> Iterator[StartOver]:
    """The groups of these roles that have no offsets though they have worked, or offsets beyond the end of a topic.

    Raises LogUnavailable.
    """
    names = names_of_live(Control(log))
    existing = log.topics()
    made_by = (f"state.{FRONTIER_STORE}", names.features, names.verdicts, SCORES, names.sites)
    for role, made, (group, topics) in zip(Role, made_by, reads_of_live(names).items(), strict=True):
        there = [topic for topic in topics if topic in existing]
        if role not in roles or not there:
            continue
        committed = {topic: log.committed(group, topic) for topic in there}
        sizes = {topic: size.records for topic, size in log.sizes(there).items() if size.records}
        if any(offset is not None for offsets in committed.values() for offset in offsets):
            for topic, records in sizes.items():
                pairs = zip(committed[topic], log.end(topic), strict=True)
                if any(offset is not None and offset > end for offset, end in pairs):
                    why = f"has offsets beyond the end of {topic}, which was made anew or cut off"
                    yield StartOver(group, {topic: records}, why)
        elif sizes and made in existing and log.sizes([made])[made].records:
            yield StartOver(group, sizes, f"has no offsets, though {made} holds what it made")


def remedy(log: Log, prefix: str, found: StartOver) -> str:
    """How it is prevented, in words."""
    if not log.forgets_offsets:
        return "to prevent that, stop farmwatch now and restore the log's folder from a backup"
    topics = " ".join(f"--topic {prefix}{topic}" for topic in found.records)
    return (
        "to prevent that, stop farmwatch now and set the offsets to the end of what was read: kafka-consumer-groups.sh"
        f" --bootstrap-server HOST:PORT --group {prefix}{found.group} {topics} --reset-offsets --to-latest --execute"
        " (or --to-datetime)"
    )
