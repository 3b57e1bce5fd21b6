"""The reference pages say what the code does."""

from __future__ import annotations

import inspect

import pytest

from farmwatch.commands.cli import app
from farmwatch.config.config import Config
from farmwatch.config.layers import settings_of
from stream.processing.metrics import SPECS
from tests.support.paths import DOCS
from tests.tools.generated import section
from tests.tools.reference import COMMAND, commands, meaning_of, pages, sections


@pytest.mark.parametrize("name", pages())
def test_a_page_is_as_the_code_makes_it(name: str) -> None:
    """A setting, metric or command that changed without its page fails: run `python -m tests.tools.reference docs`."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name]


@pytest.mark.parametrize("name", sections())
def test_a_section_is_as_the_code_makes_it(name: str) -> None:
    """A rule, topic or reason that changed without its row fails: run `python -m tests.tools.reference docs`."""
    assert section((DOCS / name).read_text(encoding="utf-8"), COMMAND) == sections()[name]


def test_every_setting_metric_and_command_is_documented() -> None:
    """Each is found on its page by its full name, a setting with its meaning."""
    made = pages()
    for path, setting in settings_of(Config).items():
        assert f"| `{path}` |" in made["reference/configuration.md"]
        assert meaning_of(setting.owner, path.rpartition(".")[2]).strip(), path
        assert setting.env in made["reference/configuration.md"]
    for spec in SPECS:
        assert f"| `farmwatch_{spec.name}" in made["reference/metrics.md"]
    for command in commands(app):
        assert f"# farmwatch {command}\n" in made["reference/cli.md"]


def test_every_command_and_option_has_a_meaning_and_every_argument_one_name() -> None:
    """What is given by place is no option: errors and pages never call it one."""
    for name, command in commands(app).items():
        assert command.default_command is not None and command.default_command.__doc__, name
        kinds = {parameter.kind for parameter in inspect.signature(command.default_command).parameters.values()}
        assert inspect.Parameter.POSITIONAL_OR_KEYWORD not in kinds, name
        for argument in command.assemble_argument_collection():
            assert argument.parameter.help or argument.parameter.show is False or "*" in argument.names, argument.names
