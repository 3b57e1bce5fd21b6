"""Offsets of idle groups: set again where they would be forgotten, and left alone where they would not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from stream.log.contract import Output, Topic
from stream.log.idle_groups import renew_offsets
from stream.memory.log import MemoryLog


class _Log(MemoryLog):
    """Notes which offsets are set."""

    def __init__(self) -> None:
        super().__init__()
        self.set: list[tuple[str, str, list[int]]] = []
        self.create([Topic("in", 2), Topic("unread", 2)])
        self.append([Output("in", 0, b"k", b"v")])
        super().reset("g", "in", [1, 0])

    def reset(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        super().reset(group, topic, offsets)
        self.set.append((group, topic, list(offsets)))


class _Forgetting(_Log):
    """As a broker does."""

    forgets_offsets: ClassVar[bool] = True


def test_nothing_is_written_where_no_offset_is_forgotten() -> None:
    """Who joins, commits and leaves meanwhile cannot lose its offsets to it."""
    log = _Log()
    assert not renew_offsets(log, "g", ["in", "unread"])
    assert log.set == []


def test_offsets_that_would_be_forgotten_are_set_to_what_they_are() -> None:
    """Those of topics that were read, and no others."""
    log = _Forgetting()
    assert renew_offsets(log, "g", ["in", "unread", "nowhere"])
    assert log.set == [("g", "in", [1, 0])]


@pytest.mark.parametrize("group", ["g", "nobody"])
def test_groups_with_members_or_without_offsets_are_left_alone(group: str) -> None:
    """Members keep their own offsets alive."""
    log = _Forgetting()
    log.join("g", ["in"], member="m")
    assert not renew_offsets(log, group, ["in"])
    assert log.set == []
