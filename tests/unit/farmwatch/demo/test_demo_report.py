"""The text output of the demo: the rate with interval, denominators, versions and warning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_row

from crawler.frontier.rows import Totals
from farmwatch.audit.report import AuditReport
from farmwatch.demo.demo import progress_printer, run_demo
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
        truth={"a": "llm", "b": "llm", "c": "human", "d": "llm", "e": "llm"},
        expected={**_VERDICTS, "d": "llm"},
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


def test_the_rate_is_printed_with_its_context(capsys: pytest.CaptureFixture[str]) -> None:
    """The output has share, interval, denominators, counts, versions, warning, and the number of right verdicts."""
    print_result(_result())
    printed = capsys.readouterr().out
    for part in (
        "Share of LLM sites: no share yet: no site has a scored article",
        "By site verdicts alone: 50.0% (9.2% to 98.7%), 2 llm of 4 classifiable",
        "3 of the 3 decided sites are right; of all, 4 of 5 as expected",
        "ruleset default d1, detector x/1",
        "Warning: indicative only",
        "says nothing about the real web",
    ):
        assert part in printed


def test_the_truth_counts_sites_without_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """A site's author is known even if it has too few articles for a verdict."""
    result = _result()
    print_result(replace(result, rows=[replace_row(row, articles=3, scored=3) for row in result.rows[1:]]))
    assert "in truth 3 of 4; 0 of 4 not judged" in capsys.readouterr().out


def test_progress_before_the_first_site_is_a_start(capsys: pytest.CaptureFixture[str]) -> None:
    """No zeros are shown while the processes start."""
    progress_printer(Totals, every_s=0.0)({"crawl": 79})
    assert capsys.readouterr().err.endswith(" s: starting\n")


def test_progress_names_pages_sites_and_the_stages_that_are_behind(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress shows counts in a reader's words; for waiting records it names only the stage."""
    on_progress = progress_printer(lambda: Totals(sites=17, active=8, fetched=227), every_s=0.0)
    on_progress({"crawl": 0, "measure": 250})
    on_progress({"crawl": 0, "measure": 0})
    behind, done = capsys.readouterr().err.splitlines()
    assert behind.endswith("227 pages fetched, 8 of 17 sites open; records wait for MEASURE")
    assert done.endswith("8 of 17 sites open")


def test_commands_for_the_kept_log_are_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They name the kept configuration."""
    print_result(_result(tmp_path))
    printed = capsys.readouterr().out
    assert f" console --config {tmp_path / 'farmwatch.toml'}" in printed
    assert f" sites --config {tmp_path / 'farmwatch.toml'}" in printed
    assert f" replay --config {tmp_path / 'farmwatch.toml'} --ruleset notes --name notes " in printed


def test_the_printed_commands_start_this_farmwatch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After `make demo`, farmwatch is not on the PATH: the commands have the path that was called."""
    program = tmp_path / "farmwatch"
    program.touch(0o755)
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    for folder, shown in ((tmp_path / "elsewhere", str(program)), (tmp_path, "farmwatch")):
        monkeypatch.setenv("PATH", str(folder))
        print_result(_result())
        assert f"\n  {shown} demo --serve " in capsys.readouterr().out
    print_result(replace(_result(), is_served=True))
    assert "--serve" not in capsys.readouterr().out


def test_the_columns_are_explained_and_the_warning_is_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of 80 columns no line is longer, and no site, truth or verdict is cut."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    print_result(replace(_result(), warning="indicative only, " * 20))
    printed = capsys.readouterr().out
    assert "used: scored pages" in " ".join(printed.split())
    table, _, rest = printed.partition("Share of")
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("unclassifiable") == 1
    assert all(len(line) <= 80 for line in rest.splitlines() if "indicative" in line)


@pytest.mark.parametrize("name", ["file", "file/under"])
def test_a_folder_that_cannot_be_kept_is_a_usage_error(tmp_path: Path, name: str) -> None:
    """If --keep names a file or a path below one, the message names the option."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--keep"):
        run_demo(tmp_path / name, as_json=False)
