"""The reference pages agree with the code."""

from __future__ import annotations

import inspect

import pytest

from farmwatch.commands.cli import app
from farmwatch.config.config import Config
from farmwatch.config.layers import settings_of
from farmwatch.labels.labelled_pages import LabelledPage
from filters.rules.catalogue import RULES
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from stream.processing.metrics import SPECS
from tests.support.paths import DOCS
from tests.tools import ruleset_tables
from tests.tools.generated import document, section
from tests.tools.reference import COMMAND, commands, meaning_of, pages, sections

RULES_PAGE = (DOCS / "reference" / "rules.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", pages())
def test_a_page_is_as_the_code_makes_it(name: str) -> None:
    """If this fails, a setting, metric or command has changed: run `python -m tests.tools.reference docs`."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name]


@pytest.mark.parametrize("name", sections())
def test_a_section_is_as_the_code_makes_it(name: str) -> None:
    """If this fails, a rule, topic or reason has changed: run `python -m tests.tools.reference docs`."""
    assert section((DOCS / name).read_text(encoding="utf-8"), COMMAND) == sections()[name]


def test_every_setting_metric_and_command_is_documented() -> None:
    """The pages have each setting with its meaning, each metric and each command, by full name."""
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
    """Every command and option has a meaning; errors and pages never call a positional argument an option."""
    for name, command in commands(app).items():
        assert command.default_command is not None and command.default_command.__doc__, name
        kinds = {parameter.kind for parameter in inspect.signature(command.default_command).parameters.values()}
        assert inspect.Parameter.POSITIONAL_OR_KEYWORD not in kinds, name
        for argument in command.assemble_argument_collection():
            assert argument.parameter.help or argument.parameter.show is False or "*" in argument.names, argument.names


def test_every_rule_and_every_shipped_ruleset_is_described() -> None:
    """Each rule has a row with its measure and its condition; each ruleset has a description."""
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in section(RULES_PAGE, COMMAND).partition("\n\n")[0].splitlines()
    ]
    described = {row[0].strip("| `"): row for row in rows[2:]}
    assert set(described) == set(RULES)
    assert all(row[1] and row[2] and row[3] for row in described.values())
    for name in shipped_rulesets():
        assert f"\n| `{name}` | " in RULES_PAGE


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.xdist_group("labelled")
def test_the_tables_are_those_of_a_fresh_evaluation(labelled: list[LabelledPage]) -> None:
    """The tables are those of this code; if not, `python -m tests.tools.ruleset_tables docs` renews them."""
    assert section(RULES_PAGE, ruleset_tables.COMMAND) == document(ruleset_tables.shipped(labelled))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.xdist_group("labelled")
def test_default_is_what_the_labels_favour(labelled: list[LabelledPage]) -> None:
    """Out of fold, `default` reaches the goals on the labelled pages, and keeps fewer pages that a detector flags."""
    judged = ruleset_tables.Judged(labelled)
    default = load_ruleset("default")
    before, now = judged.kept(ruleset_tables.without_model(default)), judged.kept(default)
    found, without = judged.errors(now), judged.errors(before)
    assert (found.f1.value or 0) >= 0.87 > (without.f1.value or 1)
    assert (found.recall.value or 0) >= 0.92
    assert (found.others_kept.value or 1) <= 0.2
