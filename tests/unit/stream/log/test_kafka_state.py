"""The local copy of state and the fetch buffer, without a broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.kafka.buffer import FetchBuffer
from stream.kafka.state import LocalState, decode_change, encode_change
from stream.log.contract import NO_HEADERS, Message, StateChange
from stream.log.errors import Fenced, LogUnavailable

KEYS = st.binary(min_size=1, max_size=3) | st.sampled_from([b"\xff", b"\xff\xff", b"a\xff"])
CHANGES = st.builds(StateChange, KEYS, st.none() | st.binary(max_size=4), st.none() | st.integers(0, 9))
DAY_MS = 86_400_000


def opened(path: Path, now_ms: int = 0, changelog: str = "id") -> LocalState:
    """The state file at `path`."""
    return LocalState(path, changelog, now_ms=now_ms, max_age_ms=DAY_MS)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(CHANGES, max_size=8), max_size=6), KEYS, KEYS, st.integers(0, 9), st.integers(1, 5))
def test_it_reads_as_a_dictionary_would(
    tmp_path: Path, commits: list[list[StateChange]], prefix: bytes, after: bytes, now: int, limit: int
) -> None:
    """get, scan, due and next_due agree with a dictionary after any changes, also when opened again."""
    path = tmp_path / "state.sqlite"
    path.unlink(missing_ok=True)
    state = opened(path)
    wanted: dict[bytes, tuple[bytes, int | None]] = {}
    for number, changes in enumerate(commits, 1):
        state.apply([decode_change(c.key, encode_change(c)) for c in changes], number, 0)
        for change in changes:
            wanted.pop(change.key, None)
            if change.value is not None:
                wanted[change.key] = (change.value, change.due_at)
    state.close()
    state = opened(path)
    assert state.next_offset == len(commits)
    rows = sorted((k, v) for k, (v, _) in wanted.items() if k.startswith(prefix))
    assert state.scan(prefix, limit) == rows[:limit]
    assert state.scan(prefix, limit, after) == [row for row in rows if row[0] > after][:limit]
    assert list(state.items()) == sorted((k, v) for k, (v, _) in wanted.items())
    due = sorted((d, k, v) for k, (v, d) in wanted.items() if d is not None)
    assert state.due(now, limit) == [(k, v, d) for d, k, v in due if d <= now][:limit]
    assert state.next_due() == (due[0][0] if due else None)
    assert state.get(after) == wanted.get(after, (None, None))[0]
    state.close()


@pytest.mark.parametrize(
    ("now_ms", "changelog", "kept"), [(DAY_MS, "id", True), (DAY_MS + 1, "id", False), (0, "another", False)]
)
def test_an_old_file_or_one_of_another_changelog_starts_anew(
    tmp_path: Path, now_ms: int, changelog: str, kept: bool
) -> None:
    """Tombstones may be gone by then, or the topic was made again: the file is worth nothing."""
    path = tmp_path / "state.sqlite"
    state = opened(path)
    state.apply([StateChange(b"k", b"v")], 7, 0)
    state.close()
    again = opened(path, now_ms, changelog)
    assert (again.next_offset, again.get(b"k")) == ((7, b"v") if kept else (0, None))
    again.close()


def test_two_processes_on_one_file_do_not_mix(tmp_path: Path) -> None:
    """The one that is behind is fenced, and what it wanted to write is not there."""
    first, second = opened(tmp_path / "state.sqlite"), opened(tmp_path / "state.sqlite")
    second.apply([StateChange(b"k", b"second")], 5, 0)
    with pytest.raises(Fenced):
        first.apply([StateChange(b"k", b"first")], 3, 0)
    assert second.get(b"k") == b"second"
    first.close()
    second.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
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
    """Takes keep to both limits save for a first record, hold partitions back, and lose or swap nothing."""
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
