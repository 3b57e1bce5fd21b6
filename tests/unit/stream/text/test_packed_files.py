"""Text files, plain or compressed."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from stream.text.packed_files import DamagedFile, bounded_lines, open_packed, unpacked_name

LINES = [b"one\n", b"two\n", b"three"]
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("cap", [4, 5, 100])
def test_lines_are_read_without_a_byte_order_mark(cap: int) -> None:
    """The mark of UTF-8 at the start is no part of the first line; elsewhere it stays."""
    assert list(bounded_lines(io.BytesIO(MARK + b"a\n" + MARK + b"b\n"), cap)) == [b"a\n", (MARK + b"b\n")[: cap + 1]]
    assert list(bounded_lines(io.BytesIO(MARK), cap)) == [b""]


def packed(name: str, data: bytes) -> bytes:
    """The content of a file with that name."""
    if name.endswith(".gz"):
        return gzip.compress(data)
    return zstandard.ZstdCompressor(write_checksum=True).compress(data) if name.lower().endswith(".zst") else data


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.jsonl.gz", "a.csv.gz"])
def test_a_file_is_inflated_by_its_name(tmp_path: Path, name: str) -> None:
    """Plain, zstd and gzip files give the same lines; several members are one file, as `cat` makes them."""
    file = tmp_path / name
    file.write_bytes(packed(name, b"one\ntw") + packed(name, b"o\nthree"))
    with open_packed(file) as stream:
        assert list(bounded_lines(stream, 100)) == LINES
    assert unpacked_name(file) == name.removesuffix(".zst").removesuffix(".gz")


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"x\n" * 99_999)[:-9], b"no gzip", gzip.compress(b"x")[:-8] + b"\0" * 8],
    ids=["cut", "not gzip", "wrong checksum"],
)
def test_a_gzip_file_that_is_cut_or_damaged_is_named(tmp_path: Path, data: bytes) -> None:
    """A wrong end, beginning or checksum is an error with the file's name, and gives no lines that look whole."""
    file = tmp_path / "hits.csv.gz"
    file.write_bytes(data)
    with (
        pytest.raises(DamagedFile, match=r"hits\.csv\.gz: no gzip file, or a damaged one"),
        open_packed(file) as stream,
    ):
        list(bounded_lines(stream, 100))


@pytest.mark.parametrize("cut", [1, 5, 9_000, 20_000])
def test_a_zstd_file_that_is_cut_is_refused_before_a_line_is_read(tmp_path: Path, cut: int) -> None:
    """A cut zstd file is refused before its first line: zstandard's reader would return half a URL as a line."""
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    file = tmp_path / "HITS.ZST"
    whole = packed(file.name, random.Random(1).randbytes(300_000))
    file.write_bytes(skippable + whole + packed(file.name, b"end") + skippable)
    with open_packed(file) as stream:
        assert len(stream.read()) == 300_003
    file.write_bytes(whole + whole[:-cut])
    with (
        pytest.raises(DamagedFile, match=r"HITS\.ZST: no zstd file, or a damaged one: it is cut short"),
        open_packed(file),
    ):
        pytest.fail("it was read")


@pytest.mark.parametrize("name", ["hits.gz", "hits.zst"])
def test_no_line_of_a_damaged_file_is_given(tmp_path: Path, name: str) -> None:
    """A wrong bit may give another URL of the same length: the checksum is checked before the first line."""
    lines = b"".join(b"https://s%d.example/\n" % number for number in range(20_000))
    whole = bytearray(packed(name, lines))
    file, refused = tmp_path / name, 0
    for place in range(200, len(whole), len(whole) // 40):
        whole[place] ^= 1
        file.write_bytes(whole)
        with pytest.raises(DamagedFile, match=name), open_packed(file) as stream:
            pytest.fail(f"{stream.read(40)!r} was read")
        refused += 1
        whole[place] ^= 1
    assert refused >= 40


def test_long_lines_are_cut() -> None:
    """Of a line above the cap only the beginning is returned; the next line, or one at the cap, is whole."""
    stream = io.BytesIO(b"1234\n" + b"x" * 50 + b"\n123456\n" + b"y" * 9)
    assert list(bounded_lines(stream, 5)) == [b"1234\n", b"xxxxxx", b"123456", b"yyyyyy"]


@pytest.mark.parametrize("name", ["bomb.gz", "bomb.zst"])
def test_a_bomb_is_bounded_by_the_line(tmp_path: Path, name: str) -> None:
    """A small file that inflates to a line of 60 MB is read in little memory, with either compression."""
    file = tmp_path / name
    file.write_bytes(packed(name, b"x" * 60_000_000))
    tracemalloc.start()
    try:
        with open_packed(file) as stream:
            assert [len(line) for line in bounded_lines(stream, 100_000)] == [100_001]
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
