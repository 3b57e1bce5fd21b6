"""What the demo prints for people: the rate never without interval, denominators, versions and warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from farmwatch.audit import AuditReport
from farmwatch.demo.report import DemoResult, print_result
from stream.records import SiteState

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
        errors=None,
        confidence=0.95,
        kept=kept,
    )


def test_the_rate_is_printed_with_everything_that_belongs_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Share, interval, both denominators, all four counts, versions, the warning, and how many were right."""
    print_result(_result())
    printed = capsys.readouterr().out
    for part in (
        "Rate: 50.0% (95% interval ",
        "2 of 4 classifiable sites",
        "1 of 5 sites unclassifiable",
        "5 sites = 2 llm + 1 human + 1 undecided + 1 unclassifiable",
        "4 of 5 sites right, 3 of the 3 decided ones",
        "ruleset default d1, detector x/1",
        "Mind: indicative only",
        "nothing about the real web",
    ):
        assert part in printed


def test_what_was_kept_can_be_looked_into(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The commands that are advised name the configuration that was kept."""
    print_result(_result(tmp_path))
    assert f"farmwatch sites --config {tmp_path / 'farmwatch.toml'}" in capsys.readouterr().out
