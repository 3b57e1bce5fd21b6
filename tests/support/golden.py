"""The words of commands: one golden file a command. Other tests assert values."""

from __future__ import annotations

import os
import re

from tests.support.front_door import Ran
from tests.support.paths import ROOT

RENEW = "FARMWATCH_TEST_RENEW"
_CHANGING = (
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,40}\b"), "<digest>"),
    (re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?"), "<time>"),
    (re.compile(r"sqlite:\S*/"), "sqlite:<folder>/"),
    (re.compile(r"\S+ -P -m farmwatch"), "farmwatch"),
)


def check_words(command: str, *runs: Ran) -> None:
    """The outputs of runs are those of tests/golden/commands/COMMAND.txt, but for digests, times and folders.

    With FARMWATCH_TEST_RENEW set, they are written: look at the difference.
    """
    text = "\n".join(f"exit {int(ran.code)}\n{ran.out}{ran.err}" for ran in runs)
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    file = ROOT / "tests" / "golden" / "commands" / f"{command}.txt"
    if os.environ.get(RENEW):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
