"""`farmwatch lab extractors bench`, on small folders of labelled pages, with tools that fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from filters.settings import MeasureSettings
from lab.extractor_bench import runs
from lab.extractor_bench.pages import read_pages
from lab.extractor_bench.runs import run_tool
from lab.extractor_bench.tools import TOOLS, Tool
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.pages.labelled_folder import add_page

TEXT = "The river rose slowly during the night, and nobody in the village was asleep. " * 12


def add_article(folder: Path, number: int, **fields: object) -> str:
    """A page with a menu; its label is the article. Returns its id."""
    menu = "".join(f"<li><a href='/{part}'>Section {part}</a></li>" for part in range(9))
    html = f"<html><body><ul>{menu}</ul><div><h1>Story {number}</h1><p>{TEXT}</p></div></body></html>"
    return add_page(folder, "web", html, **{"articleBody": f"Story {number}\n{TEXT}", **fields})


@pytest.mark.slow
def test_tools_are_compared_and_what_is_wrong_is_a_row(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that is not installed, one without recorded texts, pages without labels or text, labels of other pages."""
    folder, texts, none = tmp_path / "pages", tmp_path / "texts", tmp_path / "none"
    idents = [add_article(folder, number, page_type="article" if number else None) for number in range(4)]
    add_article(folder, 9, articleBody=None)
    add_page(folder, "web", "<p>nothing of it</p>", articleBody="words of another page")
    add_page(folder, "web", "", articleBody=" ")
    add_page(folder, "web", "<!-- -->", articleBody="words of an empty page")
    add_article(tmp_path / "again", 0)
    texts.mkdir()
    none.mkdir()
    for number, ident in enumerate(idents[:3]):
        (texts / f"{ident}.txt").write_text(f"Story {number}\n{TEXT}")
    monkeypatch.setitem(TOOLS, "goose3", Tool(TOOLS["goose3"].load, ("no-such-distribution",)))
    ran = farmwatch(
        *("lab", "extractors", "bench", folder, tmp_path / "again" / "web", "--out", tmp_path / "out", "--jobs", "1"),
        *("--tool", "bte", "--tool", "goose3", "--recorded", f"readability={texts}", "--recorded", f"empty={none}"),
    )
    assert ran.code == Exit.PROBLEM and "the page is in" in ran.err and ran.err.count("\n") == 1
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert [report[name] for name in ("pages", "skipped", "without_text", "set_aside")] == [4, 1, 2, 2]
    assert [error["cause"] for error in report["gold_errors"]] == ["other_page"] * 2
    rows = {row["name"]: row for row in report["tools"]}
    assert rows["bte"]["mean"]["f1"] > 0.95 and rows["bte"]["cpu_ms"] > 0
    assert rows["goose3"]["note"] == "not installed: no-such-distribution" and rows["goose3"]["mean"] == {}
    assert "no recorded text" in rows["empty"]["note"]
    half = rows["readability"]
    assert half["errors"] == {"missing": 1} and half["mean"]["f1"] == 0.75 and half["quartiles"] == [0.75, 1, 1]
    assert half["f1"]["kind"] == {"article": pytest.approx(2 / 3, abs=1e-4), "no kind": 1}
    assert half["consequences"]["flagged"]["share"] is None
    assert half["consequences"]["kept"]["c4"]["share"] == 0.75
    assert rows["em_2_5"]["note"] == "without resiliparse, trafilatura, go_domdistiller"
    assert rows["em_2_5"]["mean"]["precision"] == 0.75 and rows["em_4_8"]["mean"] == {}
    shown = (tmp_path / "out" / "report.md").read_text()
    assert "not installed" in shown and "| web | other_page | 2 | yes |" in shown and "4 pages. Left out: 2" in shown
    assert "with intervals over sites" in shown and "(intervals over sites)" in ran.out
    assert "| none: it needs scikit-learn (the extra `train`), two tools" in shown
    assert "readability: 100.0%, 75.0% to 100.0%" in (tmp_path / "out" / "f1.svg").read_text()


@pytest.mark.slow
def test_a_tool_that_hangs_or_dies_costs_its_page_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed at the limit, and another goes on; one that never starts is a row. None has a network."""
    for number in range(4):
        add_article(tmp_path / "pages", number)
    pages = read_pages([tmp_path / "pages"], 0, print, lambda _: None).pages
    code = """if True:
        import os, socket, sys, time
        from lab.extractor_bench import tool_process
        from lab.extractor_bench.tools import TOOLS, Tool
        def run(html):
            if "Story 1" in html: time.sleep(600)
            if "Story 2" in html: os._exit(1)
            if "Story 3" in html: raise ValueError
            try: socket.create_connection(("127.0.0.1", 9))
            except OSError as refused: return str(refused)
        TOOLS.update(weak=Tool(lambda _: run), broken=Tool(lambda _: sys.exit(1)))
        tool_process.main(sys.argv[1])"""
    for name in ("weak", "broken"):
        monkeypatch.setitem(TOOLS, name, TOOLS["bte"])
    monkeypatch.setattr(runs, "command", lambda name: (sys.executable, "-P", "-c", code, name))
    settings = MeasureSettings(workers=1, time_limit_s=3)
    weak = run_tool("weak", pages, settings, lambda _: None)
    assert weak.texts == ["an extractor reaches no network", "", "", ""]
    assert weak.errors == {"timeout": 1, "worker_died": 1, "failed": 1}
    broken = run_tool("broken", pages, settings, lambda _: None)
    assert broken.texts == [] and broken.note == "its process does not start; see stderr"


def test_what_cannot_be_meant_is_refused(farmwatch: Runner, tmp_path: Path) -> None:
    """Unknown tools, folders that are not there, names that are taken, and labels without main texts."""
    add_article(tmp_path, 1, articleBody=None)
    bench = ("lab", "extractors", "bench", tmp_path, "--out", tmp_path / "out")
    for more, said in (
        (("--tool", "nothing"), "--tool 'nothing': no such tool; there are measure-trafilatura"),
        (("--recorded", "a=/no/folder"), "give NAME=DIR, with a folder that is there"),
        (("--recorded", f"bte={tmp_path}"), "the tool of this name runs here"),
        ((), "no page has a labelled main text"),
    ):
        ran = farmwatch(*bench, *more)
        assert ran.code != Exit.OK and said in ran.err and not (tmp_path / "out").exists()


def test_of_many_pages_some_are_read_evenly(tmp_path: Path) -> None:
    """From the first to the last, over all datasets."""
    for number in range(9):
        add_article(tmp_path / "pages", number)
    names = [page.gold.split("\n")[0] for page in read_pages([tmp_path / "pages"], 3, print, lambda _: None).pages]
    assert names == ["Story 0", "Story 4", "Story 8"]
