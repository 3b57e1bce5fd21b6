"""Commands that only look leave the log as it is, and make none where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream.text.user_errors import Exit
from tests.support.front_door import SITE, URL, Runner

LOOKING = [
    ("rate",),
    ("rate", "--history"),
    ("sites",),
    ("topics",),
    ("audit",),
    ("runs",),
    ("runs", "show", "live"),
    ("explain", URL),
    ("compare", "live", "live"),
    ("frontier",),
    ("frontier", "--site", SITE),
    ("canaries",),
    ("cutover", "--list"),
    ("crawl", "--dry-run"),
    ("robots", URL, "--stored"),
    ("doctor",),
]


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_a_command_that_looks_changes_no_file_of_the_log(
    farmwatch: Runner, finished: str, no_weights: None, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Names, sizes and times of all files are the same after it, whether it found something or not."""
    monkeypatch.setenv("FARMWATCH_CRAWL_CONTACT", "https://operator.example/")
    folder = Path(finished.removeprefix("sqlite:"))

    def snapshot() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}

    before = snapshot()
    ran = farmwatch(*command, "--log", finished)
    assert ran.code in (Exit.OK, Exit.PROBLEM, Exit.UNAVAILABLE)
    assert "reading only" not in ran.out + ran.err
    assert snapshot() == before


@pytest.mark.parametrize("there", [False, True], ids=["no folder", "an empty folder"])
@pytest.mark.parametrize("command", ["rate", "audit", "sites", "runs", "frontier", "topics", "crawl --dry-run"])
def test_a_command_that_looks_makes_no_log(farmwatch: Runner, tmp_path: Path, command: str, there: bool) -> None:
    """Exit 3 and one line; a folder is not made, and one that is there stays empty."""
    folder = tmp_path / "log"
    if there:
        folder.mkdir()
    ran = farmwatch(*command.split(), "--log", f"sqlite:{folder}")
    assert (ran.code, "there is no log" in ran.err, len(ran.err.splitlines())) == (Exit.UNAVAILABLE, True, 1)
    assert list(tmp_path.rglob("*")) == [folder] * there
