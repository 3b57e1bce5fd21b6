"""Commands that read records report a bad one in one line, and otherwise print the same output."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.config.config import load
from farmwatch.doctor.check_result import CheckResult, CheckState
from farmwatch.doctor.checks import examine
from stream.log.contract import Message, Output
from stream.log.errors import BadRecord
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import RatePoint, SiteState, encode
from stream.schema.topics import CONTROL, DEAD_LETTERS, FEATURES, HITS, PAGES, RATES, SCORES, SITES, VERDICTS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, REFUSED_URL, SITE, URL, Runner
from tests.support.runs.two_runs import RULESETS as OF_RUN
from tests.support.runs.two_runs import A, B, begin, page, put_features, put_run

NO_UTF8 = encode(SiteState(id="s", site="s", ruleset="xx")).replace(b"xx", b"\xff\xfe")


def spoil(url: str, *topics: str, key: str = SITE) -> None:
    """Put an invalid record and one damaged on disk into each partition of these topics."""
    with closing(open_log(url)) as log:
        for topic in topics:
            for partition in range(log.topics()[topic]):
                for value in (NO_UTF8, b"damaged on the disk"):
                    log.append([Output(topic, partition, key.encode(), value)])
    database = sqlite3.connect(Path(url.removeprefix("sqlite:")) / "log.sqlite")
    changed = (b"Damaged on the disk", b"damaged on the disk")
    database.execute("UPDATE records SET value = ? WHERE value = ?", changed)
    database.commit()
    database.close()


@pytest.mark.parametrize(
    ("command", "topics"),
    [
        (("rate",), {SITES: 4}),
        (("rate", "--json"), {SITES: 4}),
        (("sites",), {SITES: 4}),
        (("rate", "--history", "--from", "2026-01-01"), {RATES: 2}),
        (("page", URL), {FEATURES: 2, VERDICTS: 2, SCORES: 2}),
        (("page", REFUSED_URL), {FEATURES: 2, PAGES: 2}),
        (("crawl", "--dry-run"), {HITS: 4}),
    ],
    ids=lambda value: "-".join(value)[:24] if isinstance(value, tuple) else "",
)
def test_a_command_goes_on_over_bad_records(
    farmwatch: Runner, finished: str, no_weights: None, command: tuple[str, ...], topics: dict[str, int]
) -> None:
    """Output and exit code are the same; stderr has one line per topic, with the place of the first bad record."""
    with closing(open_log(finished)) as log:
        point = RatePoint(id="p", site="", at=1_780_000_000_000, rate=0.25, llm=1, human=3)
        log.append([Output(RATES, 0, b"p", encode(point))])
    before = farmwatch(*command, "--log", finished)
    spoil(finished, *topics)
    ran = farmwatch(*command, "--log", finished)
    assert (ran.code, ran.out) == (before.code, before.out)
    told = [line for line in ran.err.splitlines() if line not in before.err.splitlines()]
    if before.code != Exit.OK:  # its own last line, which is the same
        assert before.err.splitlines()[-1] == ran.err.splitlines()[-1]
    assert len(told) == len(topics), told
    for line, (topic, count) in zip(told, topics.items(), strict=True):
        assert line.startswith(f"{count} records of {topic} could not be read: the first is partition ")
        assert line.endswith("; see `farmwatch doctor`")
        assert "Traceback" not in ran.err


def test_a_comparison_goes_on_over_bad_records(farmwatch: Runner, tmp_path: Path, no_weights: None) -> None:
    """Unreadable verdicts, rows and features are left out and reported."""
    url = f"sqlite:{tmp_path / 'log'}"
    pages = [page(1, 70), page(2)]
    with closing(open_log(url)) as log:
        begin(log)
        put_features(log, pages)
        for name in (A, B):
            put_run(log, name, OF_RUN[name], pages, {"a.example": "llm"})
    before = farmwatch("compare", A, B, "--log", url)
    spoil(url, FEATURES, f"verdicts.{A}", f"sites.{B}", key="b.example")
    ran = farmwatch("compare", A, B, "--log", url)
    assert (ran.code, ran.out) == (Exit.OK, before.out)
    assert f"4 records of verdicts.{A} could not be read" in ran.err
    assert f"4 records of sites.{B} could not be read" in ran.err


def test_a_bad_row_of_control_is_one_line(farmwatch: Runner, finished: str) -> None:
    """A bad row of `control` is not skipped, because it may name the live run: place and remedy, exit code 3."""
    with closing(open_log(finished)) as log:
        log.append([Output(CONTROL, 0, b"search/brave", b"\xc1"), Output(CONTROL, 0, b"run/x", NO_UTF8)])
    for command in (("runs",), ("rate",), ("sites",)):
        ran = farmwatch(*command, "--log", finished)
        assert ran.code == Exit.UNAVAILABLE
        assert "topic control, offset 1, run: " in ran.err
        assert "restore the log from a backup" in ran.err
        assert "Traceback" not in ran.err


def findings(url: str, *checks: str) -> list[CheckResult]:
    """The findings of these checks."""
    config = load(None, [f"log.url={url}", f"log.partitions={PARTITIONS}"], environment={}).config
    return [finding for finding in examine(config) if finding.check in checks]


def test_the_doctor_tells_of_dead_letters(finished: str) -> None:
    """Dead letters are listed by stage and error, with the origin of the newest; damaged ones are counted too."""
    assert findings(finished, "dead letters") == [CheckResult(CheckState.OK, "none is open", check="dead letters")]
    with closing(open_log(finished)) as log:
        for offset, stage, error in (
            (4, "measure", BadRecord("segment x is damaged at byte 7")),
            (5, "measure", BadRecord("segment x is damaged at byte 9")),
            (6, "tally", ValueError("it is none")),
        ):
            letter = dead_letter(Message(PAGES, 1, offset, b"k", b"", {}, 0), stage, error, 1)
            log.append([letter])
    (found,) = findings(finished, "dead letters")
    assert found.state is CheckState.WARN
    assert found.found.startswith("measure BadRecord 2; tally ValueError 1; the newest, ")
    assert found.found.endswith("Z, is pages partition 1 offset 6: ValueError: it is none")
    assert "`farmwatch log dead retry`" in found.mend
    spoil(finished, DEAD_LETTERS)
    (found,) = findings(finished, "dead letters")
    assert f"{2 * PARTITIONS} records of dead-letters could not be read" in found.found


def test_the_doctor_tells_of_segments_that_are_gone(finished: str) -> None:
    """Missing segments are a FAIL with their files and number of records, because a stage waits for them."""
    assert [finding.state for finding in findings(finished, "segments")] == [CheckState.OK]
    with closing(open_log(finished)) as log:
        log.append([Output(PAGES, 0, b"k", b"x" * 5000), Output(PAGES, 0, b"k", b"y" * 5000)])
    (file,) = [
        file
        for file in (Path(finished.removeprefix("sqlite:")) / "segments").iterdir()
        if file.stat().st_size == 10_000
    ]
    file.unlink()
    (found,) = findings(finished, "segments")
    assert found.state is CheckState.FAIL
    assert found.found == f"2 records cannot be read, their files are gone: {file}"
