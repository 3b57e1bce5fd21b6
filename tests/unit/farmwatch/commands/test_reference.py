"""The reference pages say what the code does."""

from __future__ import annotations

import inspect

import pytest

from farmwatch.commands.cli import app
from farmwatch.commands.reference import COMMAND, commands, meaning_of, pages, sections
from farmwatch.config.config import Config
from farmwatch.config.layers import settings_of
from farmwatch.terminal.generated import section
from stream.processing.metrics import SPECS
from tests.support.paths import DOCS


@pytest.mark.parametrize("name", pages())
def test_a_page_is_as_the_code_makes_it(name: str) -> None:
    """A setting, metric or command that changed without its page fails here: run farmwatch.commands.reference."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name]


@pytest.mark.parametrize("name", sections())
def test_a_section_is_as_the_code_makes_it(name: str) -> None:
    """A rule, topic or reason that changed without its row fails here: run farmwatch.commands.reference."""
    assert section((DOCS / name).read_text(encoding="utf-8"), COMMAND) == sections()[name]


def test_every_setting_metric_and_command_is_documented() -> None:
    """Each is found on its page by its full name."""
    made = pages()
    for path, setting in settings_of(Config).items():
        assert f"| `{path}` |" in made["reference/configuration.md"]
        assert setting.env in made["reference/configuration.md"]
    for spec in SPECS:
        assert f"| `farmwatch_{spec.name}" in made["reference/metrics.md"]
    for command in commands(app):
        assert f"## farmwatch {command}\n" in made["reference/cli.md"]


def test_every_command_has_a_description_and_every_option_a_meaning() -> None:
    """No row of the pages is left without words."""
    for name, page in pages().items():
        for line in page.splitlines():
            if line.startswith("| "):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                assert cells[-1] or name == "reference/configuration.md", line
    assert all(command.default_command.__doc__ for command in commands(app).values() if command.default_command)


def test_what_is_given_by_place_is_no_option() -> None:
    """Arguments have one name, that of the usage line: errors and pages never call them options."""
    for name, command in commands(app).items():
        assert command.default_command is not None
        kinds = {parameter.kind for parameter in inspect.signature(command.default_command).parameters.values()}
        assert inspect.Parameter.POSITIONAL_OR_KEYWORD not in kinds, name


def test_every_setting_has_a_meaning() -> None:
    """By a comment, a docstring, or a name that says its unit."""
    for path, setting in settings_of(Config).items():
        assert meaning_of(setting.owner, path.rpartition(".")[2]).strip(), path
