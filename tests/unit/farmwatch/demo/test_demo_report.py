"""What the demo prints for people: the rate never without interval, denominators, versions and warning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from farmwatch.audit.report import AuditReport
from farmwatch.demo.demo import run_demo
from farmwatch.demo.report import DemoResult, print_result
from scoring.rates.settings import RateSettings
from stream.schema.records import SiteState
from stream.text.user_errors import UsageError

_VERDICTS = {"a": "llm", "b": "llm", "c": "human", "d": "undecided", "e": "unclassifiable"}


def _result(kept: Path | None = None) -> DemoResult:
    rows = [
        SiteState(id=site, site=site, verdict=verdict, ruleset="default", digest="d1", detector="x/1")
        for site, verdict in _VERDICTS.items()
    ]
    return DemoResult(
        rows=rows,
        truth={**_VERDICTS, "d": "llm"},
        report=AuditReport({}),
        pages=9,
        seconds=3.0,
        detector="x/1",
        warning="indicative only",
        ruleset="default",
        digest="d1",
        rate=RateSettings(),
        kept=kept,
    )


def test_the_rate_is_printed_with_everything_that_belongs_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Share, interval, both denominators, all four counts, versions, the warning, and how many were right."""
    print_result(_result())
    printed = capsys.readouterr().out
    for part in (
        "Share of LLM sites: no share yet: no site has a scored article",
        "By site verdicts alone: 50.0% (9.2% to 98.7%, uncorrected); 2 llm, 1 human, 1 undecided, 1 unclassifiable",
        "3 of the 3 decided sites are right; of all, 4 of 5",
        "ruleset default d1, detector x/1",
        "Warning: indicative only",
        "says nothing about the real web",
    ):
        assert part in printed


def test_what_was_kept_can_be_looked_into(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The commands that are advised name the configuration that was kept."""
    print_result(_result(tmp_path))
    printed = capsys.readouterr().out
    assert f" sites --config {tmp_path / 'farmwatch.toml'}" in printed
    assert f" replay --config {tmp_path / 'farmwatch.toml'} --ruleset notes --name notes " in printed


def test_the_columns_are_explained_and_the_warning_is_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of 80 columns no line is longer, and every site, truth and verdict is whole."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("farmwatch.terminal.messages._console", lambda: Console(width=80, color_system=None))
    monkeypatch.setenv("COLUMNS", "80")
    print_result(replace(_result(), warning="indicative only, " * 20))
    printed = capsys.readouterr().out
    assert "used: scored pages" in " ".join(printed.split())
    table, _, rest = printed.partition("Share of")
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("unclassifiable") == 2
    assert all(len(line) <= 80 for line in rest.splitlines() if "indicative" in line)


@pytest.mark.parametrize("name", ["file", "file/under"])
def test_a_folder_that_cannot_be_kept_is_a_usage_error(tmp_path: Path, name: str) -> None:
    """--keep at or under a file: one line that names it, and no web is made."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--keep"):
        run_demo(tmp_path / name, as_json=False)
