"""Tables on a terminal of 80 columns show every site and verdict whole."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from farmwatch.terminal.messages import message, put_wrapped
from farmwatch.terminal.tables import fit
from filters.rules.ruleset import load_ruleset
from tests.support.front_door import DETECTOR, Runner

HEADINGS = ("site", "verdict", "pages", "llr", "most dropped by", "detector")
SITE = "a-rather-long-name-of-a-site.blog.example"


def _shown(
    rows: list[list[str]],
    width: int = 80,
    less: tuple[str, ...] = (),
    same: tuple[str, ...] = (),
    headings: tuple[str, ...] = HEADINGS,
    below: int = 0,
    title: str = "Title",
) -> tuple[list[str], list[str]]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    fitted = fit(console, headings, rows, less=less, same=same, below=below, title=title)
    console.print(fitted.table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines(), fitted.notes


def _row(site: str, detector: str = "some-detector/1-0123456789abcdef") -> list[str]:
    return [site, "unclassifiable", "20", "-12.34", "duplicate_share", detector]


def test_site_and_verdict_are_whole_and_the_rest_gives_way() -> None:
    """Less important columns are left out with a note, and no line is longer than the terminal."""
    lines, notes = _shown([_row(SITE), _row("b.example")], less=("llr", "most dropped by"), same=("detector",))
    assert any(SITE in line and "unclassifiable" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert notes[0] == "detector: some-detector/1-0123456789abcdef"
    assert "left out" in notes[1]


def test_what_differs_stays_a_column() -> None:
    """A column with two detectors stays in the table; it does not become a note."""
    lines, notes = _shown([_row("a.example", "x/1"), _row("b.example", "y/1")], 200, same=("detector",))
    assert notes == []
    assert "x/1" in lines[3] and "y/1" in lines[4]
    assert all(heading in lines[1] for heading in HEADINGS)


def test_an_empty_cell_is_no_difference() -> None:
    """A site without a verdict has no detector; one detector is still a note and not a column."""
    lines, notes = _shown([_row("a.example", "x/1"), _row("b.example", "")], 200, same=("detector",))
    assert notes == ["detector: x/1"]
    assert not any("x/1" in line for line in lines)


@pytest.mark.parametrize("below", [0, 1])
def test_titles_and_headings_are_no_markup(below: int) -> None:
    """Brackets in titles and headings are printed as text."""
    lines, _ = _shown([["x" * 30, "y"]], 40, headings=("rule", "[b]a[/b].toml"), title="[b]of[/b]", below=below)
    assert lines[0].strip() == "[b]of[/b]"
    assert any("[b]a[/b].toml" in line for line in lines)


RULES = ("rule", "drops", "marginal", "sole", "sole articles", "sole others", "n/a")


def _rules(*names: str) -> list[list[str]]:
    return [[name, "1234", "1200", "17", "1", "0", "disabled"] for name in names]


def test_numbers_keep_their_line_where_headings_can_be_broken() -> None:
    """A table that is a little too wide breaks headings over numbers, and no cell."""
    lines, _ = _shown(_rules("gopher_max_bullet_line_share"), headings=RULES)
    assert sum("gopher_max_bullet_line_share" in line and "1234" in line for line in lines) == 1


def test_shares_with_intervals_are_broken_between_the_two() -> None:
    """With many rulesets, the interval goes below its share, and no number or name is broken."""
    headings = ("page type", "pages", "c4", "default", "dolma", "fineweb", "gopher", "notes")
    lines, _ = _shown([["documentation", "52", *["77 (64-86)"] * 6]], headings=headings)
    assert max(map(len, lines)) <= 80
    words = [word for line in lines for word in line.split()]
    assert words.count("(64-86)") == words.count("77") == 6
    assert {"documentation", "default", "fineweb", "pages"} <= set(words)


@given(
    st.lists(st.lists(st.text("ab_-/| 7.é漢[]", max_size=60), min_size=3, max_size=3), min_size=1, max_size=3),
    st.integers(40, 90),
    st.sampled_from([0, 1, 2]),
)
@settings(max_examples=60)
def test_every_character_is_shown_at_any_width(rows: list[list[str]], width: int, below: int) -> None:
    """For any cells, only white space is lost, nothing is read as markup, and no line is too long."""
    headings = ("RULE", "PAGE TYPE", "A+RATHER+LONG+NAME+OF+A+FILE")  # not in any cell
    lines, _ = _shown(rows, width, headings=headings, below=below, title="")
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    shown = Counter("".join(lines))
    cells = Counter("".join(map("".join, rows)))
    assert all(shown[character] >= number for character, number in cells.items() if not character.isspace())


def test_empty_columns_are_left_out() -> None:
    """Columns that are empty in all rows are omitted without a note; with one value they are shown."""
    lines, notes = _shown([["a", "", ""], ["b", "judge", ""]], headings=("run", "phase", "left"))
    shown = "\n".join(lines)
    assert "phase" in shown and "judge" in shown and "left" not in shown
    assert notes == []


def test_rows_of_lines_leave_nothing_out_but_empty_cells() -> None:
    """If a table does not fit even without `less`, lines below each row have all other cells, with whole headings."""
    headings = ("run", "state", "a long name of a number", "lag", "by")
    rows = [["r" * 30, "done", "7", "12", "me"], ["s", "live", "", "0", "me"]]
    lines, notes = _shown(rows, 40, headings=headings, less=("lag",), same=("by",), below=3)
    assert [line.rstrip() for line in lines[1:]] == [
        f"{'r' * 30}  done",
        "  a long name of a number: 7",
        "  lag: 12",
        "s  live",
        "  lag: 0",
    ]
    assert notes == ["by: me"]


@pytest.mark.parametrize("say", [message, put_wrapped])
def test_sentences_are_broken_at_words_on_a_terminal(
    say: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences are wrapped to the terminal with whole paths; in a file or a pipe, a sentence is one line."""
    path = "/a/long-path/of-a-file/" + "x" * 40
    sentence = f"{path}: line 3: " + "words that say what is wrong " * 3
    say(sentence)
    captured = capsys.readouterr()
    assert captured.out + captured.err == sentence + "\n"
    monkeypatch.setenv("COLUMNS", "50")
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    say(sentence + "\nsecond line")
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    assert lines[0] == f"{path}:" and lines[-1] == "second line"
    assert all(len(line) < 50 for line in lines[1:])
    assert " ".join(lines[:-1]).split() == sentence.split()


def test_the_rest_of_a_broken_line_stands_further_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `indent`, lines after the first are indented, on a terminal only."""
    put_wrapped("  one two three four five six", "    ")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    put_wrapped("  one two three four five six", "    ")
    assert capsys.readouterr().out == ("  one two three four five six\n  one two three\n    four five six\n")


def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """stdout is a terminal of 80 columns, without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


def test_sites_fits_80_columns(farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sites` on a terminal of 80 columns has whole names and verdicts, the detector once, and explained columns."""
    narrow(monkeypatch)
    ran = farmwatch("sites", "--log", finished)
    assert max(map(len, ran.out.splitlines())) <= 80
    assert any("b.example" in line and "unclassifiable" in line for line in ran.out.splitlines())
    assert ran.out.count(DETECTOR) == 1
    assert "used: scored pages on which the verdict rests" in " ".join(ran.err.split())


def test_a_diff_of_rulesets_fits_80_columns(farmwatch: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Patterns are printed below their rule and field, each with the name of its ruleset."""
    narrow(monkeypatch)
    (tmp_path / "mine.toml").write_text(load_ruleset("default").source.replace("'^/search", "'^/find"))
    monkeypatch.chdir(tmp_path)
    lines = farmwatch("rulesets", "diff", "mine.toml", "default").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("url_kind  patterns") for line in lines)
    assert any(line.startswith("  default: ") for line in lines)
