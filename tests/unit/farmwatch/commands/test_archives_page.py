"""docs/archives.md says what the commands and the settings say."""

from __future__ import annotations

import inspect
import re
import shlex

import pytest

from crawler.fetch.jobs import RequestKind
from crawler.warc import pages as warc_in
from crawler.warc.exchange import RECORD_TYPES
from farmwatch.commands.cli import app
from farmwatch.config.config import Config
from farmwatch.config.layers import settings_of
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "archives.md").read_text(encoding="utf-8")
COMMANDS = [
    line.rpartition("| ")[2] for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("farmwatch")])
def test_the_command_lines_are_understood(line: str) -> None:
    """Each parses as it stands, with no option that the program does not have."""
    arguments = ["/dev/stdin" if word == "-" else word for word in shlex.split(line)[1:]]
    command, _, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert callable(command)


def test_settings_and_records_are_named_as_they_are() -> None:
    """Every setting of archives has its row, every setting named exists, and every type of record is told."""
    settings = settings_of(Config)
    named = set(re.findall(r"`(crawl\.\w+)", PAGE))
    assert named <= set(settings)
    assert {path for path in settings if path.startswith("crawl.warc_")} <= named
    assert all(f"| `{record}` |" in PAGE for record in RECORD_TYPES)
    assert all(f"`{kind.value}`" in PAGE for kind in RequestKind)


def test_every_reason_of_the_reader_is_told() -> None:
    """Whatever `farmwatch import` may count stands in the table."""
    reasons = re.findall(r"""_NoPage\("(\w+)"|Skipped\([^)]*?, "(\w+)"\)""", inspect.getsource(warc_in))
    told = {name for found in reasons for name in found if name}
    assert {"revisit", "known", "unusable_url"} <= told
    assert all(f"`{name}`" in PAGE for name in told)
