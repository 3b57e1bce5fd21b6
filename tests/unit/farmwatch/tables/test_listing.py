"""Lists: sorted, filtered, cut, totalled and written alike; what is not a column, format or value is refused."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.tables.columns import Column
from farmwatch.tables.listing import Listing
from stream.text.user_errors import FarmwatchError, UsageError


class Row(NamedTuple):
    """A row with a column of each kind."""

    name: str
    number: float | None = None
    is_kept: bool = False
    seen_at: int = 0
    parts: tuple[str, ...] = ()


COLUMNS: list[Column[Row]] = [
    Column("name", "text", attrgetter("name"), "count"),
    Column("number", "number", attrgetter("number"), "sum"),
    Column("kept", "truth", attrgetter("is_kept")),
    Column("seen_at", "time", attrgetter("seen_at")),
    Column("parts", "json", attrgetter("parts")),
]
DAY_MS = 86_400_000
ROWS = [
    Row("b", 2.0, True, 20_000 * DAY_MS, ("x",)),
    Row("a", None, False, 20_001 * DAY_MS),
    Row("c", -1.0, False, 0, ("x", "y")),
]


def names(**options: Any) -> str:
    """The names of the chosen rows."""
    return "".join(row.name for row in Listing(**options).of(COLUMNS).rows(ROWS))


@pytest.mark.parametrize(
    ("sort", "order"), [("", "bac"), ("name", "abc"), ("-name", "cba"), ("number", "bca"), ("-number", "cba")]
)
def test_numbers_come_from_the_largest_text_from_a_and_unknown_values_last(sort: str, order: str) -> None:
    """Either way round, a row without a value stands at the end."""
    assert names(sort=sort) == order


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (["name=a"], "a"),
        (["name!=a"], "bc"),
        (["number>=0"], "b"),
        (["number<2"], "c"),
        (["number="], "a"),
        (["number!="], "bc"),
        (["kept=true"], "b"),
        (["kept=no"], "ac"),
        (["seen_at>=2024-10-05"], "a"),
        (["parts~y"], "c"),
        (["parts~x", "number > 0"], "b"),
    ],
)
def test_only_rows_of_which_every_condition_holds_are_kept(where: list[str], kept: str) -> None:
    """Conditions compare by the type of their column; an empty value is an unknown one."""
    assert names(where=where) == kept


@pytest.mark.parametrize(
    ("options", "names_it"),
    [
        ({"sort": "nme"}, "name, number, kept"),
        ({"where": ["nme=a"]}, "name, number, kept"),
        ({"where": ["name"]}, "verdict=llm"),
        ({"where": ["number=many"]}, "a number"),
        ({"where": ["kept=perhaps"]}, "true or false"),
        ({"where": ["seen_at>soon"]}, "2026-11-22"),
        ({"where": ["parts=x"]}, "~"),
        ({"out": Path("x.xlsx")}, ".csv"),
        ({"format": "parquet"}, "--out"),
        ({"format": "table", "out": Path("x.csv")}, "no file"),
        ({"format": "csv", "json": True}, "one of them"),
        ({"format": "csv", "out": Path("x.parquet")}, "one of them"),
        ({"out": Path("no/folder/x.csv")}, "no folder"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_can(options: dict[str, Any], names_it: str) -> None:
    """The error of an unknown column, value or format names those that there are."""
    with pytest.raises(FarmwatchError) as error:
        Listing(**options).of(COLUMNS)
    assert names_it in str(error.value)


def test_a_table_has_words_for_people_and_a_file_those_of_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    """Cells and totals of a table are as they are said; conditions take the words of the record and of the table."""
    says = {"llm": "decided llm", "human": "decided human", "undecided": "open"}
    values, words = tuple(says), tuple(says.values())
    columns: list[Column[str]] = [Column("verdict", "text", str, "count", values=values, said=says.get, words=words)]
    Listing().of(columns).put(["llm"], "site")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("verdict\ndecided llm\n", "1 site; verdict 1 decided llm\n")
    assert list(Listing(where=["verdict=llm"]).of(columns).rows(["llm", "human"])) == ["llm"]
    for condition, chosen in (("=decided llm", "llm"), ("=open", "undecided"), ("!=open", "llm human")):
        assert " ".join(Listing(where=[f"verdict{condition}"]).of(columns).rows(says)) == chosen
    takes = "llm, human, undecided, decided llm, decided human, open"
    for refused in ("verdict=opne", "verdict>open"):
        with pytest.raises(UsageError, match=f"verdict takes {takes}, not "):
            Listing(where=[refused]).of(columns)


def test_totals_are_of_all_chosen_rows_whatever_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """Below a cut table stand the number of rows, how often each value occurs, sums, and how to see the rest."""
    Listing(limit=1, where=["name!=a"]).of(COLUMNS).put(ROWS, "thing", ("name", "seen_at"))
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["name\tseen_at", "b\t2024-10-04 00:00"]
    assert shown.err.splitlines() == ["2 things; name 1 b, 1 c; 1.0 number", "1 of 2 shown: --limit 0 shows all"]


@given(st.lists(st.builds(Row, name=st.text(), number=st.none() | st.floats(allow_nan=False, allow_infinity=False))))
def test_stdout_and_a_file_have_the_same_rows(rows: list[Row]) -> None:
    """CSV and JSON of any text are read back as they were, on stdout as in a file; without --limit all rows."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        patched.setattr("sys.stdout", stdout)
        rows = [row._replace(name=row.name.encode(errors="ignore").decode()) for row in rows]
        Listing(json=True).of(COLUMNS).put(rows, "row", ("name",))
        lines = [json.loads(line) for line in stdout.buffer.getvalue().splitlines()]
        for form in ("csv", "json", "jsonl"):
            Listing(out=Path(folder, f"rows.{form}")).of(COLUMNS).put(rows, "row", ("name",))
        assert lines == json.loads(Path(folder, "rows.json").read_text("utf-8"))
        assert [json.loads(line) for line in Path(folder, "rows.jsonl").read_bytes().splitlines()] == lines
        with Path(folder, "rows.csv").open(encoding="utf-8", newline="") as opened:
            cells = list(csv.DictReader(opened))
    assert [line["name"] for line in lines] == [row.name for row in rows]
    assert [cell["name"].removeprefix("'") for cell in cells] == [row.name.removeprefix("'") for row in rows]


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    """An existing file is refused before anything is read."""
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    with pytest.raises(UsageError):
        Listing(out=file).of(COLUMNS)
    assert file.read_text() == "mine"


def test_lists_and_tables_are_sorted_and_searched_by_their_json() -> None:
    """A column of lists or tables has an order too, and contains what its JSON contains."""
    rows: list[dict[str, Any]] = [{"n": {"b": 1}}, {"n": {"a": 2}}, {"n": {}}]
    columns: list[Column[dict[str, Any]]] = [Column("n", "json", lambda row: row["n"])]
    assert [row["n"] for row in Listing(sort="n").of(columns).rows(rows)] == [{"a": 2}, {"b": 1}, {}]
    assert [row["n"] for row in Listing(where=['n~"a":2']).of(columns).rows(rows)] == [{"a": 2}]
