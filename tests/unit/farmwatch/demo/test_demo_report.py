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
from stream.text.user_errors import Exit, UsageError
from tests.support.front_door import Ran
from tests.support.golden import check_words

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


def test_the_words_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """Sites, share with interval and denominators, truth, versions, warning; progress; commands for a kept log."""
    kept = _result(Path("/kept"))
    scored = replace(kept, rows=[replace_row(row, articles=3, scored=3) for row in kept.rows[1:]])
    progress_printer(Totals, every_s=0.0)({"crawl": 79})
    on_progress = progress_printer(lambda: Totals(sites=17, active=8, fetched=227), every_s=0.0)
    on_progress({"crawl": 0, "measure": 250})
    on_progress({"crawl": 0, "measure": 0})
    for result in (_result(), scored, replace(kept, is_served=True)):
        print_result(result)
    check_words("demo", Ran(Exit.OK, *capsys.readouterr()))


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


def test_settings_in_variables_are_said_to_be_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo has its own settings: a variable that sets another is named on stderr, before anything runs."""
    monkeypatch.setenv("FARMWATCH_CRAWL_WARC_FOLDER", str(tmp_path / "warc"))
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        run_demo(tmp_path / "file", as_json=False)
    assert "FARMWATCH_CRAWL_WARC_FOLDER: ignored" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["file", "file/under"])
def test_a_folder_that_cannot_be_kept_is_a_usage_error(tmp_path: Path, name: str) -> None:
    """If --keep names a file or a path below one, the message names the option."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--keep"):
        run_demo(tmp_path / name, as_json=False)
