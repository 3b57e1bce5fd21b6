"""Lines of the wrong stage are known for what they are, and answered with the command that makes the right ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farmwatch.terminal.line_forms import READS, of_another_stage
from stream.text.user_errors import Exit
from tests.support.front_door import Runner, article_html

_READERS = {form: command for command, form in READS.items()}


@pytest.fixture
def made(farmwatch: Runner, tmp_path: Path) -> dict[str, Path]:
    """A file of lines of each form, made by the stages one after the other."""
    files = {form: tmp_path / f"{form}.jsonl" for form in (*_READERS, "verdicts")}
    pages = [{"url": f"https://a.example/{n}", "html": article_html(), "site": "a.example"} for n in range(2)]
    files["pages"].write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    steps = (
        ("features", ["measure", "-j", "1", files["pages"]]),
        ("verdicts", ["judge", files["features"]]),
        ("articles", ["judge", "--ruleset", "notes", "--articles", files["features"]]),
        ("scores", ["score", "-j", "1", files["articles"]]),
        ("site verdicts", ["tally", files["scores"]]),
    )
    for form, command in steps:
        files[form].write_text(farmwatch(*command).out, encoding="utf-8")
        assert files[form].stat().st_size, form
    files["labelled texts"].write_text('{"label": "human", "text": "A garden."}\n', encoding="utf-8")
    return files


def test_each_stage_knows_the_lines_of_all_others(farmwatch: Runner, made: dict[str, Path]) -> None:
    """Every command with the lines of every stage: its own are read, each other line is answered with what it is."""
    for form, file in made.items():
        for command, reads in READS.items():
            lines = file.read_bytes().splitlines()
            if form == reads:
                assert not any(of_another_stage(line, command) for line in lines), (form, command)
                continue
            ran = farmwatch(command, *(["--no-plot", "--labels"] if command == "calibrate" else []), file)
            told = [line for line in ran.err.splitlines() if line.startswith("line ")]
            assert ran.code == (Exit.UNAVAILABLE if command == "calibrate" else Exit.PROBLEM), (form, command)
            assert len(told) == len(lines), (form, command)
            assert all(f"; `{command}` reads {reads}" in line for line in told), (form, command, told)


@pytest.mark.parametrize("line", [b"{}", b"[1]", b"{", b"\xff", b'{"a":' * 100_000, b'{"url": 1, "site": "a"}'])
def test_a_line_that_is_no_stages_has_no_hint(line: bytes) -> None:
    """Whatever it is: broken, nested without end, or without the names of any stage."""
    assert of_another_stage(line, "judge") == ""
