"""The words of commands that read a log, on that of a finished run. The other tests of these commands assert values."""

from __future__ import annotations

import pytest

from tests.support.front_door import SITE, Runner
from tests.support.golden import check_words

pytestmark = pytest.mark.usefixtures("no_weights")

RUNS: dict[str, list[list[str]]] = {  # command -> arguments of its runs
    "audit": [[]],
    "frontier": [[], ["--site", SITE]],
    "rate": [[], ["--by", "source"], ["--history"]],
    "runs": [[], ["show", "live"]],
    "sites": [[], ["--verdict", "llm"], ["--limit", "1"]],
    "templates": [["groups"]],
}


@pytest.mark.parametrize("command", RUNS)
def test_the_words_of_a_command(farmwatch: Runner, finished: str, command: str) -> None:
    """The outputs are those of its golden file."""
    check_words(command, *(farmwatch(command, *arguments, "--log", finished) for arguments in RUNS[command]))
