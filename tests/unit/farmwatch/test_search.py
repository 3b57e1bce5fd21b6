"""`farmwatch search`: hits from files onto the log."""

from __future__ import annotations

import json
from pathlib import Path

from farmwatch.errors import Exit
from stream.log import partition_of
from stream.opening import open_log
from stream.records import Hit, decode
from stream.topics import HITS
from tests.front_door import PARTITIONS, Runner


def _hits(url: str) -> list[tuple[int, Hit]]:
    log = open_log(url)
    found = [(m.partition, decode(Hit, m.value or b"")) for p in range(PARTITIONS) for m in log.read(HITS, p)]
    log.close()
    return found


def test_hits_stand_in_the_partition_of_their_site(farmwatch: Runner, tmp_path: Path) -> None:
    """Every usable line is a hit under its site; the log is laid out when it was not there."""
    (tmp_path / "hits.csv").write_text(
        "url,query,rank\n" + "".join(f"https://s{n}.example/,q,{n}\n" for n in range(1, 9))
    )
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("search", "--source", "file", "--hits", "hits.csv", "--log", url)
    assert (ran.code, ran.out) == (Exit.OK, "8 hits appended, 0 lines skipped\n")
    found = _hits(url)
    assert sorted(hit.rank for _, hit in found) == list(range(1, 9))
    assert all(partition == partition_of(hit.site, PARTITIONS) for partition, hit in found)


def test_broken_lines_are_numbered_skipped_and_in_the_exit_code(farmwatch: Runner, tmp_path: Path) -> None:
    """Two of four lines hold no URL: they are named on stderr, the others are appended, exit 1."""
    lines = ['{"url": "https://a.example/"}', "{broken", '{"query": "x"}', '{"url": "https://b.example/"}']
    (tmp_path / "hits.jsonl").write_text("\n".join(lines))
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("search", "--hits", "hits.jsonl", "--json", "--log", url)
    assert ran.code == Exit.PROBLEM
    assert [line.partition(":")[0] for line in ran.err.splitlines()] == ["line 2", "line 3"]
    assert json.loads(ran.out) == {"source": "file", "hits": 2, "skipped": 2}
    assert len(_hits(url)) == 2


def test_the_same_file_twice_gives_the_same_ids(farmwatch: Runner, tmp_path: Path) -> None:
    """A hit's id digests what it is, so that what reads the hits can tell a repetition."""
    (tmp_path / "urls").write_text("https://a.example/\n")
    url = f"sqlite:{tmp_path / 'log'}"
    for _ in range(2):
        farmwatch("search", "--hits", "urls", "--log", url)
    (_, first), (_, second) = _hits(url)
    assert first.id == second.id
