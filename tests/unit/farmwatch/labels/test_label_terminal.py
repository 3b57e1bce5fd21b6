"""`farmwatch label` on a terminal: the screen, single keys, and the restored terminal."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import termios
from pathlib import Path

import pytest

from tests.support.label_sample import page, write
from tests.support.label_terminal import Desk, farmwatch

LEFT = "\x1b[?1049l"  # leave the alternate screen


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Three pages; the first is long and hostile."""
    hostile = "\x1b]0;owned\x07\x1b[3J\u202e" + " ".join(f"word{number}" for number in range(2000))
    return write(tmp_path / "sample.jsonl", page(0, text=hostile, url="https://s0.example/\x1b[31m"), page(1), page(2))


def said(folder: Path) -> list[tuple[str, str]]:
    """Pages and their labels in the file."""
    found = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    return [(line["fetch_id"], line["page_type"]) for line in found]


def test_one_key_a_page(sample: Path, tmp_path: Path) -> None:
    """Each answer is on disk before the next page; space shows more text; q ends with the number of open pages.

    The screen has no verdict of a run and no control character of the page.
    """
    with Desk(farmwatch("label", "sample.jsonl"), tmp_path) as desk:
        first = desk.wait_for("q quit")
        assert "word0" in first and not desk.echoes()
        desk.press(" ")
        assert "word0 " not in desk.wait_for("q quit")
        desk.press("a")
        desk.wait_for("page 2 of 3, 1 labelled")
        assert said(tmp_path) == [("f0", "article")]
        desk.wait_for("q quit")
        desk.press("n")
        desk.wait_for("page 3 of 3, 2 labelled")
        desk.wait_for("q quit")
        desk.press("u")
        desk.wait_for("page 2 of 3, 1 labelled")
        desk.wait_for("q quit")
        desk.press("q")
        assert desk.end() == 0 and "1 of 3 pages labelled" in desk.shown.partition(LEFT)[2]
        screen = desk.shown.partition(LEFT)[0]
        assert not any(hidden in screen for hidden in ("dropped", "min_tokens", "strict", "owned\x07", "\x1b[3J"))
        assert "\u202e" not in screen and "\x1b[31m" not in screen
    assert said(tmp_path) == [("f0", "article"), ("f1", "other"), ("f1", "")]


@pytest.mark.parametrize(
    ("how", "code"), [("ctrl-c", 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_the_terminal_is_restored_when_it_is_ended(
    sample: Path, tmp_path: Path, how: str | signal.Signals, code: int
) -> None:
    """Ctrl-C and signals end it with their usual status, the terminal restored, and every answer kept."""
    with Desk(farmwatch("label", "sample.jsonl"), tmp_path) as desk:
        desk.wait_for("q quit")
        desk.press("h")
        desk.wait_for("page 2 of 3")
        if isinstance(how, signal.Signals):
            os.kill(desk.pid, how)
        else:
            desk.press("\x03")
        desk.wait_for(LEFT)
        desk.wait_for("1 of 3 pages labelled")
        assert desk.echoes()
        assert desk.end() == code
    assert said(tmp_path) == [("f0", "article")]


def test_the_terminal_is_restored_when_an_answer_cannot_be_kept(sample: Path, tmp_path: Path) -> None:
    """On a full disk, the message is on the restored screen, the exit code is 3, and no half line is left."""
    with Desk(farmwatch("label", "sample.jsonl"), tmp_path, file_cap=300) as desk:
        desk.wait_for("q quit")
        desk.press("a")
        desk.wait_for(LEFT)
        desk.wait_for("the last answer was not kept")
        assert desk.echoes()
        assert desk.end() == 3
    assert said(tmp_path) == []


def test_stopped_and_continued(sample: Path, tmp_path: Path) -> None:
    """Ctrl-Z restores the shell's terminal; `fg` draws the page again and reads single keys."""
    command = " ".join(farmwatch("label", "sample.jsonl"))
    with Desk(["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"], tmp_path) as desk:
        desk.wait_for("$ ")
        desk.press(f"{command}\n")
        desk.wait_for("page 1 of 3")
        desk.wait_for("q quit")
        desk.press("\x1a")
        desk.wait_for(LEFT)
        desk.wait_for("$ ")
        desk.wait_for_echo(True)
        desk.press("fg\n")
        desk.wait_for("page 1 of 3")
        desk.wait_for("q quit")
        desk.wait_for_echo(False)
        desk.press("n")
        desk.wait_for("page 2 of 3")
        desk.wait_for("q quit")
        desk.press("q")
        desk.wait_for("1 of 3 pages labelled")
        desk.wait_for("$ ")
        desk.wait_for_echo(True)
    assert said(tmp_path) == [("f0", "other")]


def test_what_is_pasted_answers_nothing(sample: Path, tmp_path: Path) -> None:
    """Pasted keys, arrow keys and unknown keys are no answer; a key held down counts once."""
    with Desk(farmwatch("label", "sample.jsonl"), tmp_path) as desk:
        desk.wait_for("q quit")
        for typed, told in (
            ("hal", "several keys at once"),
            ("\x1b[200~hello\x1b[201~", "several keys at once"),
            ("x", "'x' is no key here"),
            ("\x1bOB", "lines 2 to"),
        ):
            desk.press(typed)
            desk.wait_for(told)
            desk.wait_for("q quit")
        assert said(tmp_path) == []
        desk.press("A")
        desk.wait_for("page 2 of 3, 1 labelled")
        desk.wait_for("q quit")
        desk.press("q")
        assert desk.end() == 0


def test_another_size_draws_anew(sample: Path, tmp_path: Path) -> None:
    """After a resize, the page is laid out for the new width."""
    with Desk(farmwatch("label", "sample.jsonl"), tmp_path) as desk:
        desk.wait_for("q quit")
        fcntl.ioctl(desk.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 40, 0, 0))
        os.kill(desk.pid, signal.SIGWINCH)
        drawn = desk.wait_for("q quit")
        assert "-" * 40 in drawn and "-" * 41 not in drawn
        desk.press("q")
        assert desk.end() == 0
