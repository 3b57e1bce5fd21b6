"""A log in the memory of one process: for tests, of this package and of its users, and for trying things out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stream.memory.member import MemoryMember
from stream.memory.storage import ConsumerGroup, Membership, MemoryStorage


class MemoryLog(MemoryStorage):
    """See `Log`. A member that neither polls nor commits for `lease_ms` of the clock may lose its partitions."""

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        member: str,
        store: str | None = None,
        background: Collection[str] = (),
    ) -> MemoryMember:
        with self.changed:
            counts = {topic: len(self.partitions(topic)) for topic in topics}
            joined = self.groups.setdefault(group, ConsumerGroup())
            membership = Membership(member, self.clock() + self.lease_ms)
            joined.members[member] = membership
            for partition, (owner, _) in list(joined.leases.items()):
                if owner == member:
                    joined.grant(partition, member)
            return MemoryMember(self, group, membership, counts, store, background)
