"""Tables on a terminal of 80 columns show every site and verdict whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from farmwatch.site_table import COLUMNS
from farmwatch.tables import fit
from tests.front_door import DETECTOR, Runner

HEADINGS = ("site", "verdict", "pages", "llr", "most dropped by", "detector")
SITE = "a-rather-long-name-of-a-site.blog.example"


def _shown(
    rows: list[list[str]], width: int = 80, less: tuple[str, ...] = (), same: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    fitted = fit(console, HEADINGS, rows, less=less, same=same)
    console.print(fitted.table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines(), fitted.notes


def _row(site: str, detector: str = "some-detector/1-0123456789abcdef") -> list[str]:
    return [site, "unclassifiable", "20", "-12.34", "duplicate_share", detector]


def test_site_and_verdict_are_whole_and_the_rest_gives_way() -> None:
    """The less important columns are left out, the note names them, and no line is longer than the terminal."""
    lines, notes = _shown([_row(SITE), _row("b.example")], less=("llr", "most dropped by"), same=("detector",))
    assert any(SITE in line and "unclassifiable" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert notes[0] == "detector: some-detector/1-0123456789abcdef"
    assert "left out" in notes[1]


def test_what_differs_stays_a_column() -> None:
    """Two detectors are no note under the table."""
    lines, notes = _shown([_row("a.example", "x/1"), _row("b.example", "y/1")], 200, same=("detector",))
    assert notes == []
    assert "x/1" in lines[2] and "y/1" in lines[3]


def test_a_site_wider_than_the_terminal_is_folded_not_shortened() -> None:
    """Every character is there, over several lines."""
    site = "x" * 100 + ".example"
    lines, _ = _shown([_row(site)], less=HEADINGS[2:])
    assert "".join(line.split(" ")[0] for line in lines[2:]) == site


def test_all_columns_are_shown_where_there_is_room() -> None:
    """A wide terminal leaves nothing out."""
    lines, notes = _shown([_row("a.example")], 200, less=("llr", "most dropped by"))
    assert notes == []
    assert all(heading in lines[0] for heading in HEADINGS)


def test_sites_fits_80_columns(farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sites` on a terminal of 80 columns: whole names and verdicts, the detector once, columns explained."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("farmwatch.messages._console", lambda: Console(width=80, color_system=None))
    ran = farmwatch("sites", "--log", finished)
    assert max(map(len, ran.out.splitlines())) <= 80
    assert any("b.example" in line and "unclassifiable" in line for line in ran.out.splitlines())
    assert ran.out.count(DETECTOR) == 1
    assert COLUMNS in ran.err
