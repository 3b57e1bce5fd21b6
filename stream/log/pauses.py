"""Which partitions a member holds back; the same bookkeeping in every log."""

from __future__ import annotations

from collections.abc import Iterable


class Pauses:
    """Pauses of single partitions, or of all, newly won ones included."""

    def __init__(self) -> None:
        """Hold nothing back."""
        self._some: set[int] = set()
        self._all = False

    def add(self, partitions: Iterable[int] | None) -> None:
        """Hold back these partitions; None: all."""
        if partitions is None:
            self._all = True
        else:
            self._some.update(partitions)

    def clear(self) -> None:
        """Take back every pause."""
        self._all = False
        self._some.clear()

    def flowing(self, owned: Iterable[int]) -> list[int]:
        """Those of `owned` that are not held back."""
        return [] if self._all else [partition for partition in owned if partition not in self._some]
