"""The local copy of state and the fetch buffer, without a broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.kafka.buffer import FetchBuffer
from stream.kafka.state import LocalState, decode_change, encode_change
from stream.log.contract import NO_HEADERS, Message, StateChange
from stream.log.errors import Fenced, LogUnavailable

CHANGES = st.builds(StateChange, st.binary(), st.none() | st.binary(), st.none() | st.integers(-(2**62), 2**62))
DAY_MS = 86_400_000


def opened(path: Path, now_ms: int = 0, changelog: str = "id") -> LocalState:
    """The state file at `path`."""
    return LocalState(path, changelog, now_ms=now_ms, max_age_ms=DAY_MS)


@given(CHANGES)
def test_a_change_is_read_back_from_its_changelog_record(change: StateChange) -> None:
    """A change has its value and due time; a deletion has none."""
    due_at = change.due_at if change.value is not None else None
    assert decode_change(change.key, encode_change(change)) == StateChange(change.key, change.value, due_at)


@pytest.mark.parametrize(
    ("now_ms", "changelog", "kept"), [(DAY_MS, "id", True), (DAY_MS + 1, "id", False), (0, "another", False)]
)
def test_an_old_file_or_one_of_another_changelog_starts_anew(
    tmp_path: Path, now_ms: int, changelog: str, kept: bool
) -> None:
    """An old local file is not used: it may lack tombstones, or the topic may have been created again."""
    path = tmp_path / "state.sqlite"
    state = opened(path)
    state.apply([StateChange(b"k", b"v")], 7, 0)
    state.close()
    again = opened(path, now_ms, changelog)
    assert (again.next_offset, again.get(b"k")) == ((7, b"v") if kept else (0, None))
    again.close()


def test_two_processes_on_one_file_do_not_mix(tmp_path: Path) -> None:
    """Of two members on one file, the one that is behind is fenced, and its write is not visible."""
    first, second = opened(tmp_path / "state.sqlite"), opened(tmp_path / "state.sqlite")
    second.apply([StateChange(b"k", b"second")], 5, 0)
    with pytest.raises(Fenced):
        first.apply([StateChange(b"k", b"first")], 3, 0)
    assert second.get(b"k") == b"second"
    first.close()
    second.close()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """A file where the folder should be is a typed error that names the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LogUnavailable, match=r"file/state\.sqlite"):
        opened(tmp_path / "file" / "state.sqlite")


def message(partition: int, offset: int, size: int) -> Message:
    """A message of `size` bytes."""
    return Message("t", partition, offset, b"", b"x" * size, NO_HEADERS, 0)


SIZES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=20)


@given(SIZES, st.sets(st.integers(0, 2)), st.integers(1, 5), st.integers(1, 40))
def test_the_buffer_gives_all_in_order_within_the_limits(
    sizes: list[tuple[int, int]], flowing: set[int], max_records: int, max_bytes: int
) -> None:
    """Takes respect both limits except for a first record, respect paused partitions, and lose or reorder no record."""
    buffer = FetchBuffer()
    added = [message(partition, offset, size) for offset, (partition, size) in enumerate(sizes)]
    buffer.add(added)
    taken: list[Message] = []
    while batch := buffer.take(flowing, max_records, max_bytes):
        assert len(batch) <= max_records
        assert len(batch) == 1 or sum(len(m.value or b"") for m in batch) <= max_bytes
        taken += batch
    assert taken == [m for m in added if m.partition in flowing]
    assert buffer.take({0, 1, 2}, 100, 1000) == [m for m in added if m.partition not in flowing]
