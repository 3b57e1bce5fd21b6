"""Segment files: appends, failed appends, reads, removal."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.embedded import segments
from stream.embedded.segments import Segment, SegmentReader, remove_if_unused
from stream.log.errors import LogUnavailable


def _segment(folder: Path) -> Segment:
    return Segment(folder, 1, lambda _: (1, 1 << 20))


@given(st.lists(st.lists(st.binary(min_size=1, max_size=300), max_size=5), max_size=5), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_any_selection_reads_back(tmp_path: Path, groups: list[list[bytes]], data: st.DataObject) -> None:
    """Any selection of appended values reads back in order, for any grouping of the appends."""
    segment = _segment(tmp_path)
    written = [place for group in groups for place in zip(group, segment.append(group), strict=True)]
    segment.sync()
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(written)))))) if written else []
    reader = SegmentReader(tmp_path)
    for value, position in [written[n] for n in chosen]:
        assert reader.read(segment.file, position, len(value)) == value
    reader.close()
    segment.close()


def test_what_an_error_left_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An incomplete write does not count: the next append replaces it."""
    segment = _segment(tmp_path)
    segment.append([b"first"])

    def full(fd: int, parts: Sequence[bytes], position: int) -> int:
        if position > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.pwrite(fd, parts[0][:3], position)

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(OSError, match="No space"):
        segment.append([b"partially written"])
    monkeypatch.undo()
    assert (tmp_path / segment.file).stat().st_size == 5
    assert segment.append([b"second"]) == [5]
    assert (tmp_path / segment.file).read_bytes() == b"firstsecond"
    segment.close()


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(1, 20), st.integers(1, 4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_a_short_write_is_continued(tmp_path: Path, values: list[bytes], most: int, most_parts: int) -> None:
    """If the system writes only a part, the rest is written next, for any values and any number of buffers a call."""
    segment = _segment(tmp_path)

    def short(fd: int, parts: Sequence[bytes], position: int) -> int:
        assert len(parts) <= most_parts
        return os.pwrite(fd, b"".join(parts)[:most], position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwritev", short)
        patch.setattr(segments, "_MOST_PARTS", most_parts)
        places = segment.append(values)
    data = (tmp_path / segment.file).read_bytes()
    assert data == b"".join(values)
    assert [data[place : place + len(value)] for place, value in zip(places, values, strict=True)] == values
    segment.close()


def test_a_written_or_needed_segment_stays(tmp_path: Path) -> None:
    """A segment is removed only if no process writes it and no record refers to it."""
    segment = _segment(tmp_path)
    segment.append([b"value"])
    path = tmp_path / segment.file
    assert not remove_if_unused(path, lambda _: True)
    segment.close()
    assert not remove_if_unused(path, lambda found: found.st_size != 5)
    assert path.exists()
    assert remove_if_unused(path, lambda found: found.st_size == 5)
    assert not path.exists()
    assert remove_if_unused(path, lambda _: False)


def test_an_empty_segment_leaves_no_file(tmp_path: Path) -> None:
    """A segment without records is removed at close."""
    _segment(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_that_cannot_be_entered_leaves_no_file(tmp_path: Path) -> None:
    """A segment file is created and locked before its name is registered; if registering fails, it is removed."""
    seen = []

    def enter(file: str) -> tuple[int, int]:
        seen.append(remove_if_unused(tmp_path / file, lambda _: True))
        raise LogUnavailable("locked")

    with pytest.raises(LogUnavailable):
        Segment(tmp_path, 1, enter)
    assert seen == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_cannot_be_had_is_short_and_the_others_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad sector, the end of the file or an impossible place shortens only the affected values."""
    (tmp_path / "x.segment").write_bytes(b"0123456789")
    read = os.pread

    def bad_sector(fd: int, size: int, position: int) -> bytes:
        if position <= 3 < position + size:
            raise OSError(errno.EIO, "Input/output error")
        return read(fd, size, position)

    monkeypatch.setattr(os, "pread", bad_sector)
    with closing(SegmentReader(tmp_path)) as reader:
        places = [(-1, 2), (0, 2), (2, 2), (4, 2), (6, -2), (8, 5), (9, 1 << 60), (10, -4)]
        values = [reader.read("x.segment", *place) for place in places]
    assert values == [b"", b"01", b"", b"45", b"", b"89", b"", b""]


def test_other_errors_of_the_disk_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error unrelated to the bytes, such as missing rights, is not reported as a short value."""
    (tmp_path / "x.segment").write_bytes(b"0123456789")

    def refused(*_: int) -> bytes:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "pread", refused)
    reader = SegmentReader(tmp_path)
    with pytest.raises(OSError, match="Permission denied"):
        reader.read("x.segment", 0, 2)
    reader.close()
