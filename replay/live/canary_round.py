"""When the last round of canaries was sent."""

from __future__ import annotations

from typing import Protocol


def sent_last(state: Keys) -> int:
    """When the last round began that was sent to a partition, ms, by its state; -1 = none."""
    value = state.get(_ROUND_KEY)
    return -1 if value is None else int(value)


_ROUND_KEY = b"\0canary"


class Keys(Protocol):
    """What is looked up in a state."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
