"""JSON lines: every line is either an object, blank, or reported with its number."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmwatch.terminal.jsonl import ALIKE_SHOWN, JsonLines, batches
from stream.text.user_errors import Exit


class _Item(msgspec.Struct):
    n: int


_good = st.integers(-5, 5).map(lambda n: (json.dumps({"n": n}).encode(), n))
_bad = st.sampled_from([b"{", b"[1]", b'{"n": "x"}', b"{}", b"\xff", b"null"]).map(lambda line: (line, "bad"))
_blank = st.sampled_from([b"", b"   "]).map(lambda line: (line, "blank"))


@given(st.lists(st.one_of(_good, _bad, _blank), max_size=ALIKE_SHOWN), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_line_is_accounted_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[tuple[bytes, object]], ended: bool
) -> None:
    """Good lines are read in order with their place, bad ones are reported by number, blank ones are skipped."""
    file = tmp_path / "in"
    file.write_bytes(b"\n".join(line for line, _ in lines) + (b"\n" if ended else b""))
    capsys.readouterr()
    reader = JsonLines([file], _Item, "tally")
    found = [(place, item.n) for place, item in reader]
    assert found == [(f"line {number}", what) for number, (_, what) in enumerate(lines, 1) if isinstance(what, int)]
    bad = [f"line {number}" for number, (_, what) in enumerate(lines, 1) if what == "bad"]
    assert [message.partition(":")[0] for message in capsys.readouterr().err.splitlines()] == bad
    assert reader.end() == (Exit.PROBLEM if bad else Exit.OK)


def test_each_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """The mark that Windows editors write is no part of the first object of any file."""
    files = [tmp_path / name for name in ("one", "two")]
    for number, file in enumerate(files):
        file.write_bytes(b'\xef\xbb\xbf{"n": %d}\n{"n": 7}\n' % number)
    reader = JsonLines(files, _Item, "tally")
    assert [item.n for _, item in reader] == [0, 7, 1, 7] and reader.end() == Exit.OK


def test_a_line_beyond_the_cap_is_skipped_without_being_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line longer than the cap gives one message; the next line is read normally."""
    file = tmp_path / "in"
    file.write_bytes(b'{"n": ' + b"1" * 1000 + b'}\n{"n": 2}\n')
    assert [item.n for _, item in JsonLines([file], _Item, "tally", cap_bytes=100)] == [2]
    assert capsys.readouterr().err.startswith("line 1: longer than")


def test_lines_that_are_bad_alike_are_counted_after_the_first_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 of each kind are reported one by one, the rest in one line at the end; they do not change the exit code."""
    file = tmp_path / "in"
    file.write_bytes(b'{"n": "x"}\n' * 50 + b'{"n": 1, \xff\n' * 21 + b'{"n": 2}\n' + b"[]\n" * 20)
    reader = JsonLines([file], _Item, "tally")
    assert [item.n for _, item in reader] == [2]
    told = capsys.readouterr().err.splitlines()
    assert [int(line.partition(":")[0].removeprefix("line ")) for line in told] == [
        *range(1, 21),
        *range(51, 71),
        *range(73, 93),
    ]
    assert reader.end() == Exit.PROBLEM
    sums = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in sums] == [
        "30 more lines skipped like these",
        "1 more line skipped like these",
    ]
    assert "int" in sums[0]


def test_lines_bad_at_different_places_of_a_list_are_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The position in a list does not make another kind of bad line."""
    file = tmp_path / "in"
    file.write_bytes(b"".join(b"[" + b"1, " * place + b'"x"]\n' for place in range(30)))
    reader = JsonLines([file], list[int], "tally")
    assert list(reader) == []
    reader.end()
    assert capsys.readouterr().err.splitlines()[-1].startswith("10 more lines skipped like these")


def test_nothing_in_a_reason_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reason that quotes a line is made printable."""
    JsonLines([tmp_path / "in"], _Item, "tally").bad("line 1", "score of \x1b[31mred")
    assert capsys.readouterr().err.rstrip("\n").isprintable()


def test_batches_keep_everything_in_order() -> None:
    """Batches have at most the size, keep the order, and are never empty."""
    items = [(str(n), n) for n in range(7)]
    assert [len(batch) for batch in batches(items, 3)] == [3, 3, 1]
    assert [item for batch in batches(items, 3) for item in batch] == items
