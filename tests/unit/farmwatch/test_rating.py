"""Rates over site rows: denominators always, nothing pooled that must not be."""

from __future__ import annotations

from typing import Any

import msgspec

from farmwatch.rating import SPLITS, rate_lines
from farmwatch.watching import By
from scoring.pipes import EstimateLine
from scoring.rate import ErrorCounts
from stream.records import SiteState

_BASE: dict[str, Any] = {"ruleset": "default", "digest": "d1", "detector": "x/1"}


def _row(site: str, verdict: str, **more: Any) -> SiteState:
    return SiteState(id=site, site=site, verdict=verdict, **{**_BASE, **more})


ROWS = [
    _row("a", "llm", sources=["file", "searx"], queries=["q1"], best_rank=1),
    _row("b", "human", sources=["file"], queries=["q1", "q2"], best_rank=5),
    _row("c", "undecided", sources=["searx"], best_rank=2),
    _row("d", "unclassifiable", sources=["file"], best_rank=0),
]


def test_every_site_is_in_one_denominator() -> None:
    """sites = llm + human + undecided + unclassifiable; the undecided are classifiable; the text names all."""
    (line,) = rate_lines(ROWS)
    assert (line.sites, line.classifiable, line.unclassifiable) == (4, 3, 1)
    assert (line.llm, line.human, line.undecided) == (1, 1, 1)
    assert line.rate == 1 / 3
    assert "1 of 3 classifiable" in line.text
    assert "1 of 4 sites unclassifiable" in line.text
    assert (line.ruleset, line.digest, line.detector) == ("default", "d1", "x/1")


def test_the_unclassifiable_are_split_by_what_they_lack() -> None:
    """Without a page so far, or with too few articles: the text and the fields tell them apart, in groups too."""
    rows = [*ROWS, _row("e", "unclassifiable", pages=9, sources=["file"])]
    (line,) = rate_lines(rows)
    assert "2 of 5 sites unclassifiable (1 without a page so far, 1 with too few articles)" in line.text
    assert line.without_pages == 1
    assert {line.group: line.without_pages for line in rate_lines(rows, "source")} == {"file": 1, "searx": 0}


def test_open_sites_are_told_of_the_whole_only() -> None:
    """The crawl's open sites belong to no group; where none is open nothing is said."""
    (line,) = rate_lines(ROWS, open_sites=3)
    assert line.text.endswith("; 3 sites still open in the crawl")
    assert line.open_sites == 3
    for other in (*rate_lines(ROWS, open_sites=0), *rate_lines(ROWS), *rate_lines(ROWS, "source", open_sites=3)):
        assert "still open" not in other.text


def test_detectors_and_rulesets_are_never_pooled() -> None:
    """Sites of another detector or ruleset digest have a line of their own."""
    rows = [*ROWS, _row("e", "llm", detector="y/1"), _row("f", "llm", digest="d2")]
    lines = {(line.digest, line.detector): line for line in rate_lines(rows)}
    assert set(lines) == {("d1", "x/1"), ("d1", "y/1"), ("d2", "x/1")}
    assert lines["d1", "x/1"].sites == 4
    assert lines["d1", "y/1"].llm == lines["d2", "x/1"].llm == 1


def test_a_site_without_a_verdict_yet_counts_as_unclassifiable() -> None:
    """A site known by its hits only has no ruleset; it stays in the denominator of sites."""
    (line,) = rate_lines([*ROWS, _row("new", "unclassifiable", ruleset="", digest="")])
    assert (line.sites, line.unclassifiable) == (5, 2)


def test_a_site_counts_in_each_of_its_groups() -> None:
    """By source a site that two sources found is in both."""
    lines = {line.group: line for line in rate_lines(ROWS, "source")}
    assert {group: line.sites for group, line in lines.items()} == {"file": 3, "searx": 2}
    assert lines["searx"].rate == 0.5


def test_a_site_counts_on_the_day_of_its_latest_row() -> None:
    """By day (UTC), in order; a row without a time is not lost; every line has its denominators."""
    rows = [
        _row("a", "llm", updated_at=1_767_225_599_999),
        _row("b", "human", updated_at=1_767_225_600_000),
        _row("c", "unclassifiable", updated_at=1_767_225_600_001),
        _row("d", "human"),
    ]
    lines = rate_lines(rows, "day")
    assert [(line.group, line.llm, line.human, line.sites) for line in lines] == [
        ("2025-12-31", 1, 0, 1),
        ("2026-01-01", 0, 1, 2),
        ("unknown", 0, 1, 1),
    ]
    assert all("classifiable" in line.text for line in lines)


def test_every_split_of_the_command_is_known_here() -> None:
    """`rate --by` offers what rates can be split by, no more and no less."""
    assert {by.value for by in By} == set(SPLITS)
    assert all(sum(line.sites for line in rate_lines(ROWS, split)) >= len(ROWS) for split in SPLITS)


def test_sites_without_a_query_or_rank_are_not_lost() -> None:
    """What has no query is in the group `unknown`, and so is what has no rank."""
    queries = {line.group: line.sites for line in rate_lines(ROWS, "query")}
    assert queries == {"q1": 2, "q2": 1, "unknown": 2}
    assert sum(line.sites for line in rate_lines(ROWS, "rank")) == len(ROWS)


def test_without_rows_there_is_no_rate_and_a_line_that_says_so() -> None:
    """An empty log gives null, not 0%."""
    (line,) = rate_lines([])
    assert line.rate is None
    assert line.low is None
    assert "no rate" in line.text


def test_error_counts_correct_the_rate() -> None:
    """With the errors of the site verdict the method says corrected."""
    (line,) = rate_lines(ROWS, errors=ErrorCounts(llm_sites=50, llm_found=49, human_sites=50, human_cleared=50))
    assert line.method == "corrected"


def test_rate_prints_what_estimate_prints() -> None:
    """`rate --json` has all fields of `estimate` with the same names."""
    names = [field.name for field in msgspec.structs.fields(EstimateLine)]
    (line,) = rate_lines(ROWS)
    assert list(msgspec.to_builtins(line))[: len(names)] == names
