"""Tables on a terminal of 80 columns show every site and verdict whole; lines stay whole."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from farmwatch.terminal.messages import message, put_table, put_wrapped
from tests.support.front_door import DETECTOR, Runner

HEADINGS = ("site", "verdict", "pages", "llr", "most dropped by", "detector")
SITE = "a-rather-long-name-of-a-site.blog.example"
Shown = Callable[..., list[str]]


def terminal_of(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """stdout is a terminal of so many columns, and rich prints text only."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """The lines of a table on a terminal."""

    def show(
        rows: list[list[str]], width: int = 80, less: tuple[str, ...] = (), headings: tuple[str, ...] = HEADINGS
    ) -> list[str]:
        terminal_of(width, monkeypatch)
        put_table(headings, rows, less=less)
        return capsys.readouterr().out.splitlines()

    return show


def _row(site: str, detector: str = "some-detector/1-0123456789abcdef") -> list[str]:
    return [site, "unclassifiable", "20", "-12.34", "duplicate_share", detector]


def test_site_and_verdict_are_whole_and_the_rest_gives_way(shown: Shown) -> None:
    """Less important columns are left out with a note that has the one value of a column, and no line is too long."""
    lines = shown([_row(SITE), _row("b.example")], less=("detector", "most dropped by", "llr"))
    assert any(SITE in line and "unclassifiable" in line and "-12.34" in line for line in lines)
    assert max(map(len, lines)) <= 80
    note = " ".join(lines[lines.index("") :] if "" in lines else lines)
    assert "detector (some-detector/1-0123456789abcdef)" in note and "most dropped by" in note and "llr," not in note


def test_what_fits_is_shown_whole(shown: Shown) -> None:
    """A terminal wide enough has every column, also one with empty cells, and two of one heading, without a note."""
    lines = shown([_row("a.example", "x/1"), _row("b.example", "")], 200, less=("detector",))
    assert len(lines) == 4 and "x/1" in lines[2] and "b.example" in lines[3]
    assert all(heading in lines[0] for heading in HEADINGS)
    assert shown([["1", "2"]], headings=("a", "a"))[2].split() == ["1", "2"]


def test_empty_columns_are_left_out(shown: Shown) -> None:
    """Columns that are empty in all rows are omitted; with one value they are shown."""
    lines = shown([["a", "", ""], ["b", "judge", ""]], headings=("run", "phase", "left"))
    assert lines[0].split() == ["run", "phase"] and "judge" in lines[3]


def test_a_pipe_gets_the_table_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal a table is tab-separated, with its empty columns and those of `less`."""
    put_table(("a", "b"), [["x" * 100, ""]], "Title", less=("a",))
    assert capsys.readouterr().out == f"# Title\na\tb\n{'x' * 100}\t\n"


@given(
    st.lists(st.lists(st.text("ab_-/| 7.é漢[]", max_size=60), min_size=3, max_size=3), min_size=1, max_size=3),
    st.integers(40, 90),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_character_is_shown_at_any_width(shown: Shown, rows: list[list[str]], width: int) -> None:
    """For any cells, only white space is lost, nothing is read as markup, and no line is too long."""
    lines = shown(rows, width, headings=("RULE", "PAGE TYPE", "[b]A[/b]+RATHER+LONG+NAME+OF+A+FILE"))
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    characters = Counter("".join(lines))
    cells = Counter("".join(map("".join, rows)))
    assert all(characters[character] >= number for character, number in cells.items() if not character.isspace())


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


def test_sites_fits_80_columns(farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sites` on a terminal of 80 columns has whole names and verdicts, the detector once, and explained columns."""
    terminal_of(80, monkeypatch)
    ran = farmwatch("sites", "--log", finished)
    assert max(map(len, ran.out.splitlines())) <= 80
    assert any("b.example" in line and "not judged" in line for line in ran.out.splitlines())
    assert ran.out.count(DETECTOR) == 1
    assert "most_dropped_by: the rule that failed most of the site's pages" in " ".join(ran.err.split())


_TWO_WRITERS = """
import sys, threading
import structlog
from farmwatch.terminal.messages import message, start_logging
sys.setswitchinterval(1e-6)
start_logging()
_log = structlog.get_logger()
def tell():
    for _ in range(5000):
        _log.info("event")
telling = threading.Thread(target=tell)
telling.start()
for _ in range(5000):
    message("sentence")
telling.join()
"""


def test_lines_of_two_threads_do_not_mix() -> None:
    """Messages and log events of a process stay whole lines, so that a reader of its stderr finds them."""
    said = subprocess.run([sys.executable, "-c", _TWO_WRITERS], stderr=subprocess.PIPE, text=True, check=True).stderr
    lines = said.splitlines()
    assert lines.count("sentence") == 5000
    assert sum(line.startswith("timestamp=") and line.endswith("event=event") for line in lines) == 5000


def test_long_urls_are_shown_by_their_ends(shown: Shown) -> None:
    """A URL gives way before a column does: its end is left, at least 32 characters of it."""
    url = f"https://{SITE}/2026/04/a-post-with-a-title"
    lines = shown([[url, "dropped", "few_words"]], 60, headings=("url", "result", "why"), less=("why", "result"))
    assert lines[2].startswith("…") and url.endswith(lines[2].split()[0][1:]) and "few_words" in lines[2]
