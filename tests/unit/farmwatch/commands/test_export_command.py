"""`export`: tables as files, hostile content, windows, and missing records."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any, cast, get_args

import pytest
import zstandard

from farmwatch.archive.tables import What, columns_of_table, html_of
from farmwatch.tables.columns import Column
from farmwatch.tables.files import Format, write_table
from scoring.rates.canary import CanaryName
from stream.log.contract import Output
from stream.opening import open_log
from stream.schema.records import AdsTxt, Hit, Page, RatePoint, Sitemaps, Verdict, encode
from stream.schema.topics import ADS_TXT, HITS, PAGES, RATES, SITEMAPS, VERDICTS
from stream.text.user_errors import Exit, MissingExtra, UsageError
from tests.support.front_door import Runner

pytestmark = pytest.mark.usefixtures("no_weights")

DAY_MS = 86_400_000
FIRST_MS = 20_000 * DAY_MS  # 2024-10-04
HOSTILE = '=cmd|"/c calc"!A1\r\n,\x1b[2J\u202e\x00"'


def put_verdicts(url: str, *sites: str, at_ms: int = FIRST_MS) -> None:
    """A verdict for each site, fetched on consecutive days, in partition 0."""
    with closing(open_log(url)) as log:
        verdicts = [
            Verdict(id=f"f{n}", site=site, page_id="p", url=HOSTILE, verdict="article", failed=["-x"], fetched_at=at)
            for n, site in enumerate(sites)
            for at in [at_ms + n * DAY_MS]
        ]
        log.append([Output(VERDICTS, 0, v.site.encode(), encode(v), {}, v.fetched_at) for v in verdicts])


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of an exported file; JSON text decoded."""
    columns = columns_of_table(cast("What", file.stem), 0)
    if file.suffix == ".json":
        return cast("list[dict[str, Any]]", json.loads(file.read_text()))
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text().splitlines()]
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as opened:
            return [
                {column.name: _from_csv(column, row[column.name]) for column in columns}
                for row in csv.DictReader(opened)
            ]
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    jsons = [column.name for column in columns if column.kind == "json"]
    return [{**row, **{name: json.loads(row[name]) for name in jsons}} for row in rows]


def _from_csv(column: Column[Any], cell: str) -> Any:
    if cell == "" and column.kind != "text":
        return None
    if column.kind == "text":
        return cell.removeprefix("'")
    return json.loads(cell)


@pytest.mark.parametrize("what", get_args(What))
def test_the_three_formats_hold_the_same_rows(farmwatch: Runner, finished: str, tmp_path: Path, what: What) -> None:
    """Each format has the same rows with hostile texts, nulls and lists, and the same order of columns."""
    put_verdicts(finished, "a.example", "b.example")
    with closing(open_log(finished)) as log:
        log.append([Output(RATES, 0, b"k", encode(RatePoint(id="k", site="", at=FIRST_MS, group=HOSTILE, low=-0.5)))])
        log.append([Output(HITS, 0, b"a.example", encode(Hit(id="h", site="a.example", url="u", query=HOSTILE)))])
        for urls in (8, 9):
            counts = Sitemaps(
                id="a.example", site="a.example", urls=urls, files_read=1, files_listed=2, months={"2024-05": urls}
            )
            stated = AdsTxt(id="a.example", site="a.example", owner_domain="b.example", google_ids=[f"pub-{urls}"])
            log.append([Output(SITEMAPS, 0, b"a.example", encode(counts))])
            log.append([Output(ADS_TXT, 0, b"a.example", encode(stated))])
    found = []
    for form in get_args(Format):
        ran = farmwatch("log", "export", tmp_path, "--what", what, "--format", form, "--log", finished)
        assert ran.code == Exit.OK, ran.err
        found.append(read(tmp_path / f"{what}.{form}"))
        assert ran.err == f"{len(found[0])} row{'s'[: len(found[0]) != 1]} of {what} in {tmp_path / what}.{form}\n"
    if what in ("hits", "pages", "scores", "verdicts"):  # an unknown text is empty in CSV
        found = [[{key: value or None for key, value in row.items()} for row in rows] for rows in found]
    assert found[0] == found[1] == found[2] == found[3]
    assert list(found[0][0]) == [column.name for column in columns_of_table(what, 0)]
    if what == "sitemaps":  # the newest of a site
        assert [(row["urls"], row["months"]) for row in found[0]] == [(9, {"2024-05": 9})]
    if what == "ads_txt":
        assert [(row["owner_domain"], row["google_ids"]) for row in found[0]] == [("b.example", ["pub-9"])]


@pytest.mark.parametrize(
    ("named", "form"), [*((f"sites.{form}", form) for form in get_args(Format)), ("SITES.CSV", "csv"), ("s", "jsonl")]
)
def test_the_ending_decides_the_format(
    farmwatch: Runner, finished: str, tmp_path: Path, named: str, form: Format
) -> None:
    """A file is of the format that its name ends in, and of JSON lines without an ending; --format comes first."""
    if form == "parquet":
        pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    for out, more in ((named, []), (f"other-{named}", ["--format", "csv"]), ("as-told.jsonl", ["--format", form])):
        assert farmwatch("log", "export", out, "--what", "sites", *more, "--log", finished).code == Exit.OK
    (tmp_path / "folder").mkdir()
    farmwatch("log", "export", "folder", "--what", "sites", "--format", form, "--log", finished)
    wanted = (tmp_path / "folder" / f"sites.{form}").read_bytes()
    assert (tmp_path / named).read_bytes() == (tmp_path / "as-told.jsonl").read_bytes() == wanted
    assert (tmp_path / f"other-{named}").read_text().startswith("site,verdict,")


@pytest.mark.parametrize("named", ["sites.txt", "sites.csv.gz", "sites.xlsx", "sites.tsv"])
def test_an_unknown_ending_is_refused(farmwatch: Runner, finished: str, tmp_path: Path, named: str) -> None:
    """A name that promises another format gets no file, unless --format says what it is."""
    ran = farmwatch("log", "export", named, "--what", "sites", "--log", finished)
    assert (ran.code, named in ran.err, (tmp_path / named).exists()) == (Exit.USAGE, True, False)
    assert farmwatch("log", "export", named, "--what", "sites", "--format", "csv", "--log", finished).code == Exit.OK


def test_a_cell_of_csv_is_no_formula(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Text that begins like a formula gets an apostrophe in CSV; numbers do not."""
    put_verdicts(finished, "a.example")
    farmwatch("log", "export", "out.csv", "--what", "verdicts", "--format", "csv", "--log", finished)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["url"] for row in rows if row["site"] == "a.example"] == [f"'{HOSTILE}"]
    for start in "=+-@\t\r":
        file = tmp_path / f"{ord(start)}.csv"
        write_table(
            file,
            "csv",
            [Column("t", "text", itemgetter(0)), Column("n", "number", itemgetter(1))],
            [[f"{start}1", -1.5]],
        )
        assert file.read_bytes().splitlines(keepends=False)[-1].endswith(b",-1.5")
        assert f"'{start}1".encode() in file.read_bytes()


def test_a_window_holds_both_its_days(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """--from and --to are days of fetched_at, both included; records without a time are left out."""
    put_verdicts(finished, "a.example", "b.example", "c.example", "d.example")
    days = ["--from", "2024-10-05", "--to", "2024-10-06"]
    ran = farmwatch("log", "export", "verdicts.jsonl", "--what", "verdicts", *days, "--log", finished)
    assert [row["site"] for row in read(tmp_path / "verdicts.jsonl")] == ["b.example", "c.example"]
    assert "retention" not in ran.err


@pytest.mark.parametrize(("since", "is_whole"), [("2024-10-04", False), ("", False), ("2024-10-07", True)])
def test_what_retention_took_of_a_window_is_said(farmwatch: Runner, finished: str, since: str, is_whole: bool) -> None:
    """If retention removed a part of the window, the message has the time of the oldest record."""
    put_verdicts(finished, "a.example", "b.example", "c.example", "d.example")
    with closing(open_log(finished)) as log:
        log.truncate(VERDICTS, [2 + log.end(VERDICTS)[0] - 4, 0])
    options = ["--from", since] if since else []
    ran = farmwatch("log", "export", "verdicts.jsonl", "--what", "verdicts", *options, "--log", finished)
    said = "retention has removed verdicts from before 2024-10-06 00:00:00Z: they are missing here"
    assert (ran.code, said in ran.err) == (Exit.OK, not is_whole)


def test_a_window_that_retention_took_is_refused(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Nothing of it is left: no file is written. The rest of the log is exported; one partition is empty now."""
    put_verdicts(finished, "a.example", "b.example")
    days = ["--from", "2024-10-04", "--to", "2024-10-05"]
    with closing(open_log(finished)) as log:
        log.truncate(VERDICTS, [log.end(VERDICTS)[0], 0])
    ran = farmwatch("log", "export", "v.jsonl", "--what", "verdicts", *days, "--log", finished)
    assert (ran.code, list(tmp_path.glob("v.jsonl*"))) == (Exit.PROBLEM, [])
    assert "removed verdicts from before 2024-10-06 00:00:00Z, and nothing of the window is left" in ran.err
    ran = farmwatch("log", "export", "v.jsonl", "--what", "verdicts", "--log", finished)
    assert (ran.code, (tmp_path / "v.jsonl").exists()) == (Exit.OK, True)
    assert "retention has removed verdicts from before" in ran.err


def test_unreadable_records_show_in_the_exit_code(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """The other rows are written; the message counts the missing ones."""
    with closing(open_log(finished)) as log:
        log.append([Output(VERDICTS, 0, b"a.example", b"no record")])
    ran = farmwatch("log", "export", "verdicts.jsonl", "--what", "verdicts", "--log", finished)
    assert (ran.code, len(read(tmp_path / "verdicts.jsonl"))) == (Exit.PROBLEM, 2)
    assert "1 record of verdicts could not be read" in ran.err


def test_canaries_are_in_no_export(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Canaries are in no exported table, because they are no sites of the web."""
    put_verdicts(finished, CanaryName("notes", "0" * 16, 10, 7, "llm").site)
    farmwatch("log", "export", "verdicts.jsonl", "--what", "verdicts", "--log", finished)
    assert {row["site"] for row in read(tmp_path / "verdicts.jsonl")} == {"kept.example"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--what", "sites", "--from", "2024-10-05"], "a site has one row, the newest"),
        (["--what", "pages", "--from", "2024-10-05", "--to", "2024-10-04"], "--from 2024-10-05 is after --to"),
        (["--what", "pages", "--from", "2999-01-01"], "--from is '2999-01-01', out of range"),
        (["--what", "pages", "--run", "first"], "--run: pages are those of all runs"),
        (["--what", "sites", "--run", "unknown"], "this log has no runs yet"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    farmwatch: Runner, finished: str, tmp_path: Path, options: list[str], said: str
) -> None:
    """Options without a meaning are refused in one line, and no file is created."""
    ran = farmwatch("log", "export", "out", *options, "--log", finished)
    assert (ran.code in (Exit.USAGE, Exit.PROBLEM), said in ran.err) == (True, True)
    assert not (tmp_path / "out").exists()


def test_no_file_is_overwritten_and_none_left_half_done(tmp_path: Path) -> None:
    """An existing file stays; an export that fails leaves no file."""
    file = tmp_path / "out"
    for form in get_args(Format):
        with pytest.raises(ZeroDivisionError):
            write_table(file, form, [Column("n", "number", float)], (1 / n for n in (1, 0)))
        assert list(tmp_path.iterdir()) == []
    file.write_text("mine")
    with pytest.raises(UsageError, match="exists: name another file"):
        write_table(file, "csv", [], [])
    assert file.read_text() == "mine"


def test_a_large_table_is_written_in_row_groups(tmp_path: Path) -> None:
    """Row groups are limited by rows and size, and the writer holds only one."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    held: list[int] = []

    def rows(count: int, text: str) -> Iterator[list[Any]]:
        for number in range(count):
            held.append(number)
            yield [text, number]

    columns: list[Column[list[Any]]] = [Column("t", "text", itemgetter(0)), Column("n", "integer", itemgetter(1))]
    write_table(tmp_path / "a", "parquet", columns, rows(45_000, "x"))
    write_table(tmp_path / "b", "parquet", columns, rows(100, "x" * 1024**2))
    assert parquet.ParquetFile(tmp_path / "a").num_row_groups == 3
    assert parquet.ParquetFile(tmp_path / "b").num_row_groups == 4


def test_parquet_without_its_extra_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra for Parquet, the message names it and no file is created."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra) as refused:
        write_table(tmp_path / "out", "parquet", [], [])
    assert refused.value.facts == {"extra": "parquet"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "encoding", "html"),
    [
        ("é".encode("latin-1"), "iso-8859-1", "é"),
        ("é".encode(), "", "é"),
        (b"\xff", "utf-8", "\ufffd"),
        ("é".encode(), "no-charset", "é"),
        (b"x" * 101, "", None),
        (None, "", None),
        (b"rubbish", "packed", None),
    ],
)
def test_html_is_text_in_the_charset_of_the_page(body: bytes | None, encoding: str, html: str | None) -> None:
    """Wrong bytes and unknown charsets do not stop an export; too large or damaged HTML is null."""
    packed = body if encoding == "packed" else zstandard.compress(body) if body is not None else b""
    page = Page(id="f", site="a.example", page_id="p", url="u", body=packed or b"", encoding=encoding)
    assert html_of(page, 100) == html


def test_pages_have_neither_headers_nor_packed_bodies(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Exported pages have no headers, which may hold cookies, and no compressed bodies."""
    with closing(open_log(finished)) as log:
        page = Page(id="f", site="a.example", page_id="p", url="u", headers={"set-cookie": "secret"})
        log.append([Output(PAGES, 0, b"a.example", encode(page))])
    farmwatch("log", "export", "pages.jsonl", "--what", "pages", "--log", finished)
    assert "secret" not in (tmp_path / "pages.jsonl").read_text()


def test_a_series_without_a_point_says_when_one_comes(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """A series without points ends with 0 and a line with the reason; a log with points has no such line."""
    out = str(tmp_path / "rate.csv")
    told = farmwatch("log", "export", out, "--what", "rate", "--format", "csv", "--log", finished)
    assert (told.code, "TALLY keeps one every 3600 s while it runs" in told.err) == (Exit.OK, True)
    with closing(open_log(finished)) as log:
        log.append([Output(RATES, 0, b"all", encode(RatePoint(id="1/all", site="", at=FIRST_MS, group="all")))])
    told = farmwatch("log", "export", out + "2", "--what", "rate", "--format", "csv", "--log", finished)
    assert "1 row of rate" in told.err and "TALLY" not in told.err
