"""`farmwatch hits imports` and `hits undo`: a file that was added can be listed, and taken back before it is read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from farmwatch.config.config import load
from farmwatch.config.opening import opened
from scoring.stages.tally import TallyStage
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.text.user_errors import Exit
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


def tally(url: str) -> None:
    """TALLY reads all hits that are not undone."""
    config = load(None, [f"log.url={url}"], {}).config
    with opened(config, write=True) as log:
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
        assert (ran.code, f"undone: 2 hits of 2 sites from {wrong}" in ran.err) == (Exit.OK, True)
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
    with opened(load(None, [f"log.url={url}"], {}).config, write=True) as log:
        member = log.join("crawl", ["hits"], member="one")
        ran = farmwatch("hits", "undo", after, "--log", url)
        assert ran.code == Exit.USAGE and "crawl is running: stop farmwatch" in ran.err
        member.close()
    codes = [farmwatch("hits", "undo", name, "--log", url).code for name in (after, after, "none")]
    assert codes == [Exit.OK, Exit.USAGE, Exit.PROBLEM]
