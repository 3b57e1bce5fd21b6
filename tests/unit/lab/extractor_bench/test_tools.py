"""Each tool that is installed finds the text of a plain page, and stands hostile input."""

from __future__ import annotations

import pytest

from filters.measure.extractors import EXTRACTORS
from filters.settings import MeasureSettings
from lab.extractor_bench.runs import settings_of
from lab.extractor_bench.tools import ALL, MEASURED, TOOLS, chosen

SENTENCE = "The river rose slowly during the night, and nobody in the small village was asleep at all. "
PAGE = f"<html><head><title>A</title></head><body><article>{f'<p>{SENTENCE * 4}</p>' * 5}</article></body></html>"


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.version is not None])
def test_a_tool_finds_the_text(name: str) -> None:
    """Its adapter calls the installed version as that wants to be called."""
    run = TOOLS[name].load(settings_of(name, MeasureSettings()))
    assert SENTENCE.strip() in " ".join((run(PAGE) or "").split())


def test_all_extractors_of_measure_are_tools() -> None:
    """A new extractor is compared without a line here."""
    assert {name.removeprefix(MEASURED) for name in TOOLS if name.startswith(MEASURED)} == set(EXTRACTORS)


def test_slow_tools_run_where_they_are_asked_for() -> None:
    """By their names or with all tools; a name given twice counts once."""
    assert set(TOOLS) - set(chosen([])) == {"goose3", "newspaper4k", "bs4"} and chosen([ALL]) == list(TOOLS)
    assert chosen(["goose3", "bte", "goose3"]) == ["goose3", "bte"]
