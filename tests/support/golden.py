"""The words of commands: one golden file a command. Other tests assert values."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.support.front_door import Ran
from tests.support.paths import ROOT

RENEW = "FARMWATCH_TEST_RENEW"
_CHANGING = (
    (re.compile(re.escape(str(ROOT))), "<source>"),
    (re.compile(r"sqlite:\S*/"), "sqlite:<folder>/"),
    (re.compile(r"(?<=looked for in )\S+"), "<folder>"),
    (re.compile(r"\S+ -P -m farmwatch"), "farmwatch"),
    (re.compile(r"(?<=: )b['\"].*"), "<bytes>"),
    (re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?|\b1\d{12}\b|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT"), "<time>"),
    (re.compile(r"\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,40}\b"), "<digest>"),
    (re.compile(r"(?<![\d.])\d+(\.\d+){2}(?![\d.])|(?<=Python/)3\.\d+"), "<version>"),
    (re.compile(r"\b\d+(\.\d+)? ([KMGT]i)?B\b|(?<=size: )\d+ bytes"), "<size>"),
    (re.compile(r"\b[\d.]+ (s|min|h)( \d+ (s|min))?(?= ago|\t)|(?<=duration_ms: )\d+"), "<duration>"),
    (re.compile(r"(?<=pages-0 )\d+|(?<=offset: )\d+|(?<=pages partition 0 offset )\d+"), "<offset>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"[\w.-]+@[\w-]+(?=[\s;])"), "<user>"),
    (re.compile(r"(\.\d{3})\d+"), r"\1"),  # floats: their last digits depend on the processor
)
_BY_DURATION = re.compile(r"(?:^\S+\t<duration>\t.*\n)+", re.MULTILINE)  # rows in the order of a time


def golden_file(command: str) -> Path:
    return ROOT / "tests" / "golden" / "commands" / f"{command}.txt"


def check_words(command: str, *runs: Ran) -> None:
    """The outputs of runs are those of tests/golden/commands/COMMAND.txt, but for what changes with time and machine.

    With FARMWATCH_TEST_RENEW set, they are written: look at the difference.
    """
    text = "\n".join(f"{ran.line}exit {int(ran.code)}\n{ran.out}{ran.err}" for ran in runs)
    text = text.replace(str(Path.cwd()), "<folder>")
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    text = _BY_DURATION.sub(lambda rows: "".join(sorted(rows[0].splitlines(keepends=True))), text)
    file = golden_file(command)
    if os.environ.get(RENEW):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
