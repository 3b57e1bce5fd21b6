"""The reference pages say what the code does."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from farmwatch.commands.cli import app
from farmwatch.commands.reference import COMMAND, commands, meaning_of, pages, sections
from farmwatch.config.config import Config
from farmwatch.config.layers import allowed_values, settings_of, shown_value
from farmwatch.terminal.generated import section
from filters.extraction.extractor import EXTRACTORS
from scoring.sites.gaussian import GaussianParams
from scoring.sites.sprt import SprtParams
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


def test_the_keys_of_a_table_are_documented() -> None:
    """Of a setting that is a table or nothing each key stands below it, with its default and what it means."""
    page = pages()["reference/configuration.md"]
    assert "`{p0 = 0.3, p1 = 0.6}`" in page
    for setting, kind in (("tally.sprt", SprtParams), ("tally.gaussian", GaussianParams)):
        for field in msgspec.structs.fields(kind):
            assert f"| `{setting}`: key `{field.name}` | `{field.default}` | " in page
    assert "share of an LLM site's pages that are flagged" in page


def test_the_few_values_of_a_setting_are_on_its_page() -> None:
    """Each value that may be set stands in the setting's row, and each extractor with what installs it."""
    lines = pages()["reference/configuration.md"].splitlines()
    rows = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    few = {path: allowed_values(setting.type) for path, setting in settings_of(Config).items()}
    assert few["measure.tokenizer"] == ("whitespace", "words")
    for path, values in few.items():
        assert all(f"`{shown_value(value)}`" in rows[path] for value in values), path
    assert 'One of `""`, `bfloat16`, `float32`.' in rows["score.pair.dtype"]
    assert all(f"`{name}`" in rows["measure.extractor"] for name in EXTRACTORS)
    assert "farmwatch[resiliparse]" in rows["measure.extractor"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("rate.series_s", "; at least 60 |"),
        ("canary.every_s", "; at least 600 |"),
        ("rate.confidence", "; more than 0 and less than 1 |"),
        ("log.partitions", "; at least 1 and at most 4,096 |"),
        ("score.batch_texts", "At least 0 and at most 100,000."),
        ("tally.mixed_articles", "At least 1."),
    ],
)
def test_the_bounds_of_a_number_are_on_its_page(path: str, said: str) -> None:
    """As its type has them, so that nobody finds them out by an error."""
    row = next(line for line in pages()["reference/configuration.md"].splitlines() if line.startswith(f"| `{path}` |"))
    assert said in row


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
