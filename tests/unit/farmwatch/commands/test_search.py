"""`farmwatch hits add`: appends hits from files to the log."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from farmwatch.crawl.append_hits import append_hits
from replay.rows.site_table import read_sites
from replay.runs.topology import lag_of
from scoring.rates.cuts import Cut
from scoring.rates.split_rates import RateQuery, rate_lines
from scoring.stages.tally import TallyStage
from stream.log.contract import Output, partition_of
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.records import Hit, SiteState, decode
from stream.schema.topics import HITS, all_topics
from stream.text.user_errors import Exit
from tests.support.fake_detector import FakeDetector
from tests.support.front_door import PARTITIONS, Runner


def _hits(url: str) -> list[tuple[int, Hit]]:
    log = open_log(url)
    found = [(m.partition, decode(Hit, m.value or b"")) for p in range(PARTITIONS) for m in log.read(HITS, p)]
    log.close()
    return found


def test_hits_stand_in_the_partition_of_their_site(farmwatch: Runner, tmp_path: Path) -> None:
    """Every usable line is a hit in its site's partition; a missing log is created."""
    (tmp_path / "hits.csv").write_text(
        "url,query,rank\n" + "".join(f"https://s{n}.example/,q,{n}\n" for n in range(1, 9))
    )
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("hits", "add", "hits.csv", "--log", url)
    assert (ran.code, ran.out) == (Exit.OK, "8 hits read, 8 new, 0 lines skipped\n")
    found = _hits(url)
    assert sorted(hit.rank for _, hit in found) == list(range(1, 9))
    assert all(partition == partition_of(hit.site, PARTITIONS) for partition, hit in found)


def test_broken_lines_are_numbered_skipped_and_in_the_exit_code(farmwatch: Runner, tmp_path: Path) -> None:
    """Two of four lines have no URL: they are named on stderr, the others are appended, exit 1."""
    lines = ['{"url": "https://a.example/"}', "{broken", '{"query": "x"}', '{"url": "https://b.example/"}']
    (tmp_path / "hits.jsonl").write_text("\n".join(lines))
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("hits", "add", "hits.jsonl", "--json", "--log", url)
    assert ran.code == Exit.PROBLEM
    assert [line.split(": ")[:2] for line in ran.err.splitlines()] == [["hits.jsonl", f"line {n}"] for n in (2, 3)]
    assert ran.json == {"source": "file", "hits": 2, "new": 2, "skipped": 2}
    assert len(_hits(url)) == 2


@pytest.mark.parametrize(("name", "pack"), [("hits.csv.gz", gzip.compress), ("hits.csv.zst", zstandard.compress)])
def test_packed_files_are_read(farmwatch: Runner, tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    """A gzip or zstd file is recognised by its content; a damaged one is named, exit 3."""
    url = f"sqlite:{tmp_path / 'log'}"
    file = tmp_path / name
    file.write_bytes(pack(b"url,rank\nhttps://a.example/,1\nhttps://b.example/,2\n"))
    assert farmwatch("hits", "add", name, "--log", url).code == Exit.OK
    assert sorted(hit.rank for _, hit in _hits(url)) == [1, 2]
    file.write_bytes(b"nothing of the kind")
    ran = farmwatch("hits", "add", name, "--log", url)
    assert (ran.code, ran.err.startswith(f"farmwatch: {name}: no ")) == (Exit.UNAVAILABLE, True)


def test_one_option_takes_many_files(farmwatch: Runner, tmp_path: Path) -> None:
    """hits add and --hits take several files; a folder is none."""
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text(f"url\nhttps://{name}.example/\n")
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("hits", "add", "a.csv", "b.csv", "--log", url)
    assert (ran.code, ran.out) == (Exit.OK, "2 hits read, 2 new, 0 lines skipped\n")
    assert sorted(hit.site for _, hit in _hits(url)) == ["a.example", "b.example"]
    planned = farmwatch(
        "crawl", "--dry-run", "--hits", "a.csv", "c.csv", "--json", "--log", f"sqlite:{tmp_path / 'no'}"
    )
    assert (planned.code, len(planned.out.splitlines())) == (Exit.OK, 2)
    ran = farmwatch("hits", "add", ".", "--log", url)
    assert (ran.code, ran.err) == (Exit.UNAVAILABLE, "farmwatch: .: Is a directory\n")


def test_a_hit_is_appended_once(farmwatch: Runner, tmp_path: Path) -> None:
    """A repeated file or line adds nothing and is reported; another rank or day is new."""
    url = f"sqlite:{tmp_path / 'log'}"
    file = tmp_path / "hits.csv"
    file.write_text("url,rank,fetched_at\nhttps://a.example/,1,\nhttps://a.example/,1,\nhttps://b.example/,2,\n")
    said = [farmwatch("hits", "add", "hits.csv", "--log", url).out for _ in range(2)]
    assert said == ["3 hits read, 2 new, 0 lines skipped\n", "3 hits read, 0 new, 0 lines skipped\n"]
    assert len(_hits(url)) == 2
    with file.open("a") as more:
        more.write("https://a.example/,2,\nhttps://b.example/,2,2026-05-01\n")
    ran = farmwatch("hits", "add", "hits.csv", "--json", "--log", url)
    assert ran.json == {"source": "file", "hits": 5, "new": 2, "skipped": 0}
    assert len({hit.id for _, hit in _hits(url)}) == len(_hits(url)) == 4


def test_a_hit_that_cannot_be_read_hides_no_other() -> None:
    """An unreadable hit on the topic does not hide known hits."""
    with closing(MemoryLog()) as log:
        log.create(all_topics(1, "e"))
        log.append([Output(HITS, 0, b"a.example", b"nothing of the kind")])
        lines = [b"https://a.example/\n"]
        assert [append_hits(log, lines, print).new for _ in range(2)] == [1, 0]


def _rows(*appended: tuple[list[bytes], float]) -> list[SiteState]:
    """Site rows after these files were appended, each at a time (seconds), and read by TALLY."""
    with closing(MemoryLog()) as log:
        log.create(all_topics(PARTITIONS, "e"))
        for lines, now_s in appended:
            append_hits(log, lines, print, lambda now_s=now_s: now_s)  # type: ignore[misc]
        stage = TallyStage(FakeDetector().identity)
        stage.poll_s = 0.001
        loop = StageLoop(
            stage, log.join(stage.name, list(stage.inputs), member="one", store=stage.store), metrics=Metrics()
        )
        for _ in range(20):
            loop.cycle(threading.Event())
        assert not lag_of(log, stage.name)
        return read_sites(log)


def test_a_file_without_days_is_of_the_day_of_its_first_appending() -> None:
    """Hits without fetched_at have the day of their first append; the same file a day later changes nothing."""
    lines = [b"url,query,rank\n", b"https://a.example/,q,1\n"]
    (row,) = _rows((lines, 3 * 86_400.0), (lines, 4 * 86_400.0 + 5))
    assert (row.days, row.hits) == ([3], 1)


def test_each_line_may_name_its_source() -> None:
    """The column `source` of a line is used in splits and cuts; lines without one have the source `file`."""
    rows = _rows(([b"url,source\n", b"https://a.example/,brave\n", b"https://b.example/,\n"], 86_400.0))
    assert {line.group: line.sites for line in rate_lines(rows, RateQuery(by="source"))} == {"brave": 1, "file": 1}
    assert [row.site for row in Cut(source="brave").of(rows, {})] == ["a.example"]
    assert [line.group for line in rate_lines(rows, RateQuery(by="week", cut=Cut(source="brave")))] == ["1970-W01"]


def test_files_are_opened_before_a_log_is_made(farmwatch: Runner, tmp_path: Path) -> None:
    """A missing file creates no folder; a file without a hit is reported."""
    url = f"sqlite:{tmp_path / 'log'}"
    assert farmwatch("hits", "add", "nothing.csv", "--log", url).code == Exit.UNAVAILABLE
    assert not (tmp_path / "log").exists()
    (tmp_path / "empty.csv").write_text("url,query\n")
    ran = farmwatch("hits", "add", "empty.csv", "--log", url)
    assert (ran.code, "empty.csv: no hit in it" in ran.err) == (Exit.UNAVAILABLE, True)


def test_how_columns_were_read_is_said(farmwatch: Runner, tmp_path: Path) -> None:
    """Columns under other names, those not used and values left out are one line each; given names come first."""
    table = 'Keyword,Pos.,Position,URL,Date\nshoes,7,2,https://a.example/,"May 1, 2026"\n'
    (tmp_path / "hits.csv").write_text(table)
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("hits", "add", "hits.csv", "--log", url)
    assert (ran.code, ran.err.splitlines()) == (
        Exit.OK,
        [
            "hits.csv: read Keyword as query, Position as rank, Date as fetched_at; not used: Pos.",
            "hits.csv: left out: 1 value of Date, no fetched_at",
        ],
    )
    ran = farmwatch("hits", "add", "hits.csv", "--columns", "rank=Pos.,fetched_at=", "--log", url)
    assert (ran.code, ran.err) == (Exit.OK, "hits.csv: read Keyword as query; not used: Position, Date\n")
    assert sorted(hit.rank for _, hit in _hits(url)) == [2, 7]


@pytest.mark.parametrize("columns", ["query=Words", "words=Keyword", "Keyword", "url=", "rank=A,rank=B"])
def test_an_unknown_column_writes_nothing(farmwatch: Runner, tmp_path: Path, columns: str) -> None:
    """A column that the file lacks, or a field that hits lack, is an error in one line, before a log is made."""
    (tmp_path / "hits.csv").write_text("Keyword,URL\nshoes,https://a.example/\n")
    ran = farmwatch("hits", "add", "hits.csv", "--columns", columns, "--log", f"sqlite:{tmp_path / 'log'}")
    assert (ran.code, len(ran.err.splitlines())) == (Exit.USAGE, 1)
    assert not (tmp_path / "log").exists()
