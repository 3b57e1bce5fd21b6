"""Shares of partitions: a fair, sticky share for each live member; fair turns in a poll; pauses.

Each member computes its own next step: it gives up partitions above its share, and takes free ones up to it. The shares
sum to the number of partitions, so repeated steps assign each partition to exactly one member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class LeaseStep(NamedTuple):
    """The next step of one member."""

    give_up: list[int]
    take: list[int]


def fair_counts(members: Collection[str], owners: Mapping[int, str], partitions: int) -> dict[str, int]:
    """Number of partitions per live member; the remainder goes to the members that own most now, ties by name."""
    owned = Counter(owner for owner in owners.values() if owner in members)
    ranked = sorted(members, key=lambda name: (-owned[name], name))
    least, odd = divmod(partitions, len(ranked))
    return {name: least + (place < odd) for place, name in enumerate(ranked)}


def next_step(member: str, members: Collection[str], owners: Mapping[int, str], partitions: int) -> LeaseStep:
    """The step of `member`, one of the live `members`; `owners`: taken partition -> live owner."""
    mine = sorted(partition for partition, owner in owners.items() if owner == member)
    kept = [partition for partition in mine if partition < partitions]
    free = [partition for partition in range(partitions) if partition not in owners]
    share = fair_counts(members, owners, partitions)[member]
    if len(kept) < share and free:
        after = {**owners, **dict.fromkeys(free[: share - len(kept)], member)}
        share = fair_counts(members, after, partitions)[member]
    beyond = [partition for partition in mine if partition >= partitions]
    return LeaseStep(kept[share:] + beyond, free[: max(0, share - len(kept))])


def fair_part(left: int, turns_left: int) -> int:
    """This turn's part of a budget of which `left` remains for `turns_left` turns: at least 1."""
    return max(1, -(-left // turns_left))


class Pauses:
    """Pauses of single partitions, or of all partitions including later ones."""

    def __init__(self) -> None:
        self._some: set[int] = set()
        self._all = False

    def add(self, partitions: Iterable[int] | None) -> None:
        if partitions is None:
            self._all = True
        else:
            self._some.update(partitions)

    def clear(self) -> None:
        self._all = False
        self._some.clear()

    def flowing(self, owned: Iterable[int]) -> list[int]:
        return [] if self._all else [partition for partition in owned if partition not in self._some]
