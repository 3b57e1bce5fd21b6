"""`farmwatch hits imports` and `hits undo`: a file that was added can be listed, and taken back before it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from farmwatch.commands.hits.imports import undo_import
from farmwatch.config.config import Config, load
from farmwatch.config.opening import opened
from farmwatch.crawl.append_hits import append_hits
from scoring.stages.tally import TallyStage
from stream.log.contract import Log, Output, wall_ms
from stream.log.forwarding import ForwardingLog
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.schema.imports import Imports, import_row
from stream.schema.topics import CONTROL, HITS
from stream.text.user_errors import Exit, UsageError
from tests.support.front_door import DETECTOR, Runner

COLUMNS = "url,rank,query,source,fetched_at\n"
RIGHT = COLUMNS + "https://a.example/,2,q1,file,2026-05-01\nhttps://b.example/,1,q2,file,2026-05-01\n"
WRONG = COLUMNS + "https://a.example/x,1,q9,bing,2026-05-02\nhttps://c.example/,1,q9,bing,2026-05-02\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A right and a wrong file of hits; they share a site."""
    for name, text in (("right.csv", RIGHT), ("wrong.csv", WRONG)):
        (tmp_path / name).write_text(text)
    return tmp_path / "right.csv", tmp_path / "wrong.csv"


def config_of(url: str) -> Config:
    return load(None, [f"log.url={url}"], {}).config


def tally(url: str) -> None:
    """TALLY reads all hits that are not undone."""
    with opened(config_of(url), write=True) as log:
        stage = TallyStage(DETECTOR)
        stage.poll_s = 0.001
        member = log.join(stage.name, list(stage.inputs), member="one", store=stage.store)
        loop = StageLoop(stage, member, metrics=Metrics())
        for _ in range(60):
            loop.cycle(threading.Event())
        member.close()


def shown(farmwatch: Runner, url: str) -> list[list[dict[str, Any]]]:
    """What the lists and the share by source say."""
    said = [
        farmwatch(*words, "--json", "--log", url).lines
        for words in (["hits", "list"], ["sites"], ["rate"], ["rate", "--by", "source"])
    ]
    return [[{name: row[name] for name in row if name != "updated_at"} for row in rows] for rows in said]


def test_an_undone_import_is_as_if_it_had_not_been_made(
    farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]
) -> None:
    """Hits, sites, share and sources are those of a log without it; added again, it counts again."""
    right, wrong = files
    urls = [f"sqlite:{tmp_path / name}" for name in ("undone", "without", "again")]
    farmwatch("hits", "add", right, "--log", urls[1])
    for url in (urls[0], urls[2]):
        farmwatch("hits", "add", right, wrong, "--log", url)
        first, second = farmwatch("hits", "imports", "--json", "--log", url).lines
        assert [(of["file"], of["hits"], of["sites"], of["undone_at"]) for of in (first, second)] == [
            (str(right), 2, 2, 0),
            (str(wrong), 2, 2, 0),
        ]
        ran = farmwatch("hits", "undo", second["id"], "--log", url)
        assert (ran.code, f"undone: 2 hits of 2 sites from {wrong};" in ran.err) == (Exit.OK, True)
    assert farmwatch("hits", "imports", "--json", "--log", urls[0]).lines[1]["undone_by"]
    assert "2 new" in farmwatch("hits", "add", wrong, "--log", urls[2]).out
    for url in urls:
        tally(url)
    undone, without, again = (shown(farmwatch, url) for url in urls)
    assert undone == without and [len(rows) for rows in undone] == [2, 2, 1, 1]
    assert {row["site"] for row in again[1]} == {"a.example", "b.example", "c.example"}


def test_what_a_stage_has_read_is_not_undone(farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]) -> None:
    """Its sites count already. An unknown and an undone import are refused too, and any while a role runs."""
    url = f"sqlite:{tmp_path / 'log'}"
    farmwatch("hits", "add", files[0], "--log", url)
    tally(url)
    farmwatch("hits", "add", files[1], "--log", url)
    before, after = (of["id"] for of in farmwatch("hits", "imports", "--json", "--log", url).lines)
    ran = farmwatch("hits", "undo", before, "--log", url)
    assert ran.code == Exit.USAGE and "2 hits read by a stage already" in ran.err and "crawl forget" in ran.err
    assert len(farmwatch("hits", "list", "--json", "--log", url).lines) == 4
    with opened(config_of(url), write=True) as log:
        member = log.join("crawl", ["hits"], member="one")
        ran = farmwatch("hits", "undo", after, "--log", url)
        assert ran.code == Exit.USAGE and "crawl is running: stop farmwatch" in ran.err
        member.close()
    codes = [farmwatch("hits", "undo", name, "--log", url).code for name in (after, after, "none")]
    assert codes == [Exit.OK, Exit.USAGE, Exit.PROBLEM]


def test_a_later_file_with_some_of_the_hits_is_added_again(farmwatch: Runner, tmp_path: Path) -> None:
    """It brought only its other hits. The help and the message of `undo` say so; added again it brings the rest."""
    url = f"sqlite:{tmp_path / 'log'}"
    for name, sites in (("a.csv", "ab"), ("b.csv", "bc")):
        (tmp_path / name).write_text("url\n" + "".join(f"https://{site}.example/\n" for site in sites))
        farmwatch("hits", "add", tmp_path / name, "--log", url)
    first = farmwatch("hits", "imports", "--json", "--log", url).lines[0]
    ran = farmwatch("hits", "undo", first["id"], "--log", url)
    assert "add other files with some of these hits again" in " ".join(ran.err.split())
    assert "add them again" in " ".join(farmwatch("hits", "undo", "--help").out.split())
    assert "2 hits read, 1 new" in farmwatch("hits", "add", tmp_path / "b.csv", "--log", url).out
    assert {row["url"][8] for row in farmwatch("hits", "list", "--json", "--log", url).lines} == {"b", "c"}


def test_only_a_complete_import_is_undone(farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]) -> None:
    """While `hits add` works it is refused; an import that the operator interrupted is complete with what it read."""
    url = f"sqlite:{tmp_path / 'log'}"
    farmwatch("hits", "add", files[0], "--log", url)
    with opened(config_of(url), write=True) as log:
        (first,) = Imports(log).by_id

        def lines() -> Iterator[bytes]:
            yield from (b"https://c.example/%d\n" % n for n in range(30))
            (ident,) = Imports(log).by_id.keys() - {first}
            with pytest.raises(UsageError, match="is not complete: `farmwatch hits add` is at work, or was killed"):
                undo_import(log, ident)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            append_hits(log, lines(), lambda _: None)
        (row,) = (row for row in Imports(log).by_id.values() if row.id != first)
        assert (row.hits, row.sites) == (30, 1)
        undo_import(log, row.id)
    assert len(farmwatch("hits", "list", "--json", "--log", url).lines) == 2


class _Meanwhile(ForwardingLog):
    """A log on which something happens just before the first append."""

    def __init__(self, log: Log, act: Callable[[], object]) -> None:
        super().__init__(log)
        self._acts = [act]

    def append(self, outputs: Sequence[Output]) -> list[int]:
        while self._acts:
            self._acts.pop()()
        return self._log.append(outputs)


def test_a_stage_that_reads_meanwhile_keeps_the_import(
    farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]
) -> None:
    """If a stage starts, or has read hits, before the row of `undo` is there, the import stays, and `undo` says so."""
    url = f"sqlite:{tmp_path / 'log'}"
    farmwatch("hits", "add", files[0], "--log", url)
    with opened(config_of(url), write=True) as log, opened(config_of(url), write=True) as other:
        (ident,) = Imports(log).by_id
        members = []
        with pytest.raises(UsageError, match="crawl is running"):
            undo_import(_Meanwhile(log, lambda: members.append(other.join("crawl", [HITS], member="one"))), ident)
        members[0].close()
        assert not Imports(log).undone
        with pytest.raises(UsageError, match="a stage read hits meanwhile"):
            undo_import(_Meanwhile(log, lambda: other.reset("tally", HITS, other.end(HITS))), ident)
        assert not Imports(log).undone and not Imports(log).by_id[ident].undone_at
        with pytest.raises(UsageError, match="2 hits read by a stage already"):
            undo_import(log, ident)
    assert len(farmwatch("hits", "list", "--json", "--log", url).lines) == 2


def test_a_stage_that_joins_after_an_undo_does_not_read_the_hits(
    farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]
) -> None:
    """Even in a process that opened the log just before; and it sees a row that was taken back."""
    url = f"sqlite:{tmp_path / 'log'}"
    farmwatch("hits", "add", files[0], "--log", url)
    with opened(config_of(url), write=True) as early, opened(config_of(url), write=True) as log:
        (ident,) = Imports(log).by_id
        row = Imports(log).by_id[ident]
        undo_import(log, ident)
        for is_undone in (True, False):
            with closing(early.join(f"tally.{is_undone}", [HITS], member="one")) as member:
                read = [message.value for _ in range(2) for message in member.poll(1, 10, 10_000)]
            assert [value is None for value in read] == [is_undone] * 2
            log.append([import_row(row)])


def test_a_compacted_log_keeps_an_import_undone(farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]) -> None:
    """The newest row of an import stays: that of `undo`."""
    url = f"sqlite:{tmp_path / 'log'}"
    farmwatch("hits", "add", files[0], "--log", url)
    with opened(config_of(url), write=True) as log:
        (ident,) = Imports(log).by_id
        undo_import(log, ident)
        rows = len(list(log.read(CONTROL, 0)))
        log.expire(wall_ms())
        assert len(list(log.read(CONTROL, 0))) < rows and Imports(log).undone == {ident}
    assert not farmwatch("hits", "list", "--json", "--log", url).lines


def test_lost_offsets_keep_an_import(farmwatch: Runner, tmp_path: Path, files: tuple[Path, Path]) -> None:
    """A stage whose offsets are lost may have read the hits."""
    url = f"sqlite:{tmp_path / 'log'}"
    farmwatch("hits", "add", files[0], "--log", url)
    tally(url)
    with opened(config_of(url), write=True) as log:
        (ident,) = Imports(log).by_id
        log.remove(groups=["tally"])
        with pytest.raises(UsageError, match=r"the group tally has no offsets.*nobody knows which hits it"):
            undo_import(log, ident)
