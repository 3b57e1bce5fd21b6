"""The memory of texts that lost the device, and its file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.engine.suspects import REMEMBERED, Suspects, default_file

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]


def test_the_next_process_knows_what_this_one_learned(tmp_path: Path) -> None:
    """A suspect is in the file at once and leaves it with the next save after it was read; only digests are stored."""
    path = tmp_path / "new" / "suspects.json"
    first = Suspects(path)
    first.blame([[1, 2], [3, 4]], alone=False)
    first.blame([[3, 4]], alone=True)
    second = Suspects(path)
    assert (second.losses([1, 2]), second.losses([3, 4]), second.losses([5, 6])) == (0, 1, None)
    second.forget([1, 2])
    second.save()
    third = Suspects(path)
    assert (third.losses([1, 2]), third.losses([3, 4]), len(third)) == (None, 1, 1)
    assert not third.problem
    assert [len(key) for key in json.loads(path.read_text())] == [32]


def test_two_processes_write_beside_each_other(tmp_path: Path) -> None:
    """Concurrent changes of another process are kept and loaded."""
    path = tmp_path / "suspects.json"
    one, other = Suspects(path), Suspects(path)
    one.blame([[1, 2]], alone=True)
    other.blame([[3, 4]], alone=True)
    assert other.losses([1, 2]) == 1
    one.blame([[1, 2]], alone=True)
    assert Suspects(path).losses([1, 2]) == 2
    assert Suspects(path).losses([3, 4]) == 1


def test_memory_is_bounded_and_keeps_the_guilty(tmp_path: Path) -> None:
    """A full memory drops texts that were never guilty first, the oldest first."""
    found = Suspects(tmp_path / "suspects.json")
    for _ in range(2):
        found.blame([[7, 7]], alone=True)
    found.blame([[number, 8] for number in range(REMEMBERED)], alone=False)
    found.blame([[9, 9]], alone=False)
    assert len(found) == REMEMBERED
    assert (found.losses([7, 7]), found.losses([0, 8]), found.losses([9, 9])) == (2, None, 0)


@given(st.one_of(st.binary(max_size=40), st.just(b'{"x": 1}'), st.just(b"[]"), st.just(b'{"%s": -1}' % (b"a" * 32))))
def test_a_broken_file_is_told_and_not_used(content: bytes) -> None:
    """A broken file is ignored and reported, and the next loss writes a good file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suspects.json"
        path.write_bytes(content)
        found = Suspects(path)
        assert len(found) == 0
        assert content == b"{}" or "is broken" in found.problem
        found.blame([[1, 2]], alone=True)
        assert Suspects(path).losses([1, 2]) == 1


@pytest.mark.parametrize("place", ["file/below", "folder"])
def test_a_file_that_cannot_be_is_told(tmp_path: Path, place: str) -> None:
    """Without a writable file, the process keeps suspects in memory and reports the reason."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    found = Suspects(tmp_path / place)
    found.blame([[1, 2]], alone=True)
    assert found.losses([1, 2]) == 1
    assert str(tmp_path / place) in found.problem
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("folder")] == ["folder"]


def test_each_pair_has_its_own_file() -> None:
    """Each pair of models has its own file, because another pair may read the same text without harm."""
    one, other = (
        default_file("binoculars/a+b@01234567/float32/512"),
        default_file("binoculars/a+b@01234568/float32/512"),
    )
    assert one != other
    assert one.parent == other.parent
