"""The command lines of README.md and docs/sources.md are understood as they stand."""

from __future__ import annotations

import itertools
import re
import shlex

import pytest

from crawler.sources.settings import BUILT_IN, SearchSettings
from farmwatch.commands.cli import app
from farmwatch.config.config import Config
from farmwatch.config.layers import from_flags
from tests.support.paths import ROOT

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = ("", "sh", "bash", "console")


def _commands(page: str) -> list[list[str]]:
    """Arguments of every line `farmwatch …` in the page's blocks of commands; lines that end in `\\` go on."""
    found = []
    for language, block in _FENCE.findall((ROOT / page).read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines() if language in _SHELL else ():
            if line.startswith("farmwatch "):
                words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
                words.whitespace_split = True
                mine = list(itertools.takewhile(lambda word: word[0] not in "|&;<>" if word else True, words))
                found.append(["/dev/stdin" if word == "-" else word for word in mine[1:]])
    return found


@pytest.mark.parametrize("arguments", [*_commands("README.md"), *_commands("docs/sources.md")], ids=" ".join)
def test_a_command_line_is_understood(arguments: list[str]) -> None:
    """It names a command and options that there are, and its settings exist."""
    command, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert callable(command)
    common = bound.arguments.get("common")
    from_flags(Config, list(common.set) if common is not None else [])


def test_both_pages_have_command_lines() -> None:
    """So that the test above cannot pass by reading nothing."""
    assert len(_commands("README.md")) > 5
    assert len(_commands("docs/sources.md")) == 4


def test_every_source_is_told() -> None:
    """Each has a section with its table, and what it needs is named."""
    page = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in page for name in (*BUILT_IN, "json_http"))
    assert f"`{SearchSettings().brave.key_env}`" in page or SearchSettings().brave.key_env in page
