"""Rates over site rows: always with denominators, and without pooling different instruments."""

from __future__ import annotations

from datetime import date
from typing import Any, get_args

import pytest

from farmwatch.commands.answers.rate import RateSplit
from farmwatch.share.cut_options import read_days, read_ranks
from farmwatch.share.words import line_fields
from scoring.estimate.remarks import RemarkKind
from scoring.rates.cuts import Cut
from scoring.rates.groups import SPLITS
from scoring.rates.results import RESULT_SPLITS
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import EstimateLine, rate_of
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.schema.records import SiteState
from stream.text.user_errors import UsageError
from tests.support.remarks import facts

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
    """sites = llm + human + undecided + unclassifiable; undecided sites are classifiable."""
    (line,) = rate_lines(ROWS)
    assert (line.sites, line.classifiable, line.unclassifiable) == (4, 3, 1)
    assert (line.llm, line.human, line.undecided) == (1, 1, 1)
    assert line.judged_share == 1 / 3
    assert (line.ruleset, line.digest, line.detector) == ("default", "d1", "x/1")


def test_the_unclassifiable_are_split_by_what_they_lack() -> None:
    """Remark and fields distinguish sites without a page from sites with too few scored articles, also in groups."""
    rows = [*ROWS, _row("e", "unclassifiable", pages=9, sources=["file"])]
    (line,) = rate_lines(rows)
    wanted = {"unclassifiable": 2, "sites": 5, "without_pages": 1}
    assert facts(line.judged_remarks, RemarkKind.UNCLASSIFIABLE) == wanted
    assert line.without_pages == 1
    by_source = rate_lines(rows, RateQuery(by="source"))
    assert {line.group: line.without_pages for line in by_source} == {"file": 1, "searx": 0}


def test_detectors_and_rulesets_are_never_pooled() -> None:
    """Sites of another detector or ruleset digest have their own line."""
    rows = [*ROWS, _row("e", "llm", detector="y/1"), _row("f", "llm", digest="d2")]
    lines = {(line.digest, line.detector): line for line in rate_lines(rows)}
    assert set(lines) == {("d1", "x/1"), ("d1", "y/1"), ("d2", "x/1")}
    assert lines["d1", "x/1"].sites == 4
    assert lines["d1", "y/1"].llm == lines["d2", "x/1"].llm == 1


def test_site_methods_are_never_pooled() -> None:
    """Verdicts of another site test, or with other numbers, have their own line and their own canaries."""
    new: dict[str, Any] = {"method_digest": "0123abcd"}
    rows = [*ROWS, _row("e", "llm", **new), _row("f", "llm", method="deciles", method_digest="9f")]
    rows += [_row("new", "unclassifiable", ruleset="", digest="", **new), *_canaries(18, 19, **new)]
    lines = {(line.site_method, line.site_method_digest): line for line in rate_lines(rows, RateQuery(now_ms=10**12))}
    assert {versions: (line.sites, line.judged_method) for versions, line in lines.items()} == {
        ("sprt", ""): (5, "uncorrected"),
        ("sprt", "0123abcd"): (2, "corrected by canaries"),
        ("deciles", "9f"): (2, "uncorrected"),
    }


def test_a_site_without_a_verdict_yet_counts_as_unclassifiable() -> None:
    """A site known only by hits has no ruleset or method: it counts in the denominator of sites."""
    for more in ({}, {"method": "deciles", "method_digest": "0a"}):
        rows = [*ROWS, _row("new", "unclassifiable", ruleset="", digest="", **more)]
        (line,) = rate_lines(rows)
        assert (line.sites, line.unclassifiable, rate_of(rows).sites) == (5, 2, 5)


def test_a_site_counts_in_each_of_its_groups() -> None:
    """By source, a site that two sources found counts in both."""
    lines = {line.group: line for line in rate_lines(ROWS, RateQuery(by="source"))}
    assert {group: line.sites for group, line in lines.items()} == {"file": 3, "searx": 2}
    assert lines["searx"].judged_share == 0.5


DECEMBER_31 = (date(2025, 12, 31) - date(1970, 1, 1)).days
DATED = [
    _row(
        "a", "llm", days=[DECEMBER_31, DECEMBER_31 + 1], sources=["file"], best_rank=2, queries=["health-1", "health-3"]
    ),
    _row("b", "human", days=[DECEMBER_31 + 1], sources=["searx"], best_rank=8, queries=["law-1", "health-2"]),
    _row("c", "unclassifiable", days=[DECEMBER_31 + 5], sources=["file"], best_rank=40, queries=["law-2"]),
    _row("d", "human", sources=["file"], queries=["news"]),
]
GROUPS = RateSettings(groups={"health": ["health-*"], "law": ["law-?"]})


def test_a_site_counts_in_each_window_that_returned_it() -> None:
    """A site counts in each day, ISO week and month (UTC) of its hits, in order; a row without days is kept."""
    found = {
        window: [(line.group, line.llm, line.human, line.sites) for line in rate_lines(DATED, RateQuery(by=window))]
        for window in ("day", "week", "month")
    }
    assert found["day"] == [
        ("2025-12-31", 1, 0, 1),
        ("2026-01-01", 1, 1, 2),
        ("2026-01-05", 0, 0, 1),
        ("unknown", 0, 1, 1),
    ]
    assert found["week"] == [("2026-W01", 1, 1, 2), ("2026-W02", 0, 0, 1), ("unknown", 0, 1, 1)]
    assert found["month"] == [("2025-12", 1, 0, 1), ("2026-01", 1, 1, 3), ("unknown", 0, 1, 1)]


def test_since_and_until_cut_sites_and_windows() -> None:
    """Only hits from `since` to `until`, both included, count for sites and windows; other cuts go with windows too."""
    cut = Cut(since=date(2026, 1, 1), until=date(2026, 1, 1))
    assert [(line.group, line.sites) for line in rate_lines(DATED, RateQuery(by="day", cut=cut))] == [("2026-01-01", 2)]
    lines = rate_lines(DATED, RateQuery(by="week", cut=Cut(source="file")))
    assert [(line.group, line.sites) for line in lines] == [("2026-W01", 1), ("2026-W02", 1), ("unknown", 1)]
    assert rate_lines(DATED, RateQuery(cut=Cut(until=date(2025, 12, 31))))[0].sites == 1
    assert rate_lines(DATED, RateQuery(cut=Cut(since=date(1960, 1, 1))))[0].sites == 3


def _groups(by: str, rows: list[SiteState], cut: Cut | None = None) -> list[tuple[str, int, int]]:
    query = RateQuery(by=by, cut=cut or Cut())
    return [(line.group, line.llm, line.sites) for line in rate_lines(rows, query)]


def test_sites_are_split_by_what_they_earn_by_and_by_their_software() -> None:
    """Monetised as for farms: a page tells nothing, nor do two networks on one each; two systems count in both."""
    rows = [
        _row("a", "llm", pages=9, signals={"ads:adsense": 2, "ads:adsense:1234567890": 2, "cms:wordpress": 9}),
        _row("b", "human", pages=9, articles=9, signals={"affiliate:amazon": 9, "cms:shopify": 1, "cms:wordpress": 1}),
        _row("c", "llm", pages=9, signals={"ads:adsense": 1, "ads:taboola": 1, "analytics:google": 9}),
        _row("d", "llm", pages=1, signals={"ads:adsense": 1}),
        _row("e", "unclassifiable"),
        _row("f", "human", pages=9, signals={"analytics:google": 9}),
    ]
    assert _groups("monetised", rows) == [("no", 0, 1), ("unknown", 2, 3), ("yes", 1, 2)]
    assert _groups("cms", rows) == [("shopify", 0, 1), ("unknown", 2, 4), ("wordpress", 1, 2)]


def test_sites_are_split_by_the_size_of_their_operator() -> None:
    """In the order of sizes; a cut leaves the size of an operator, and canaries are no sites of one."""
    shared = {"analytics:google:123456": 3}
    many = [_row(f"p{number}.big.org", "human", sources=["file"] * (number < 3)) for number in range(12)]
    rows = [
        *(_row(f"s{number}.com", "llm", signals=shared, sources=["file"]) for number in range(4)),
        *many,
        _row("a.net", "llm"),
        _row("b.d.net", "llm", sources=["file"]),
        _row("c.d.net", "human"),
        *_canaries(3, 3),
    ]
    assert _groups("operator-size", rows) == [
        ("1 site", 1, 1),
        ("2-3 sites", 1, 2),
        ("4-10 sites", 4, 4),
        ("11+ sites", 0, 12),
    ]
    assert _groups("operator-size", rows, Cut(source="file")) == [
        ("2-3 sites", 1, 1),
        ("4-10 sites", 4, 4),
        ("11+ sites", 0, 3),
    ]


def test_queries_are_grouped_by_patterns() -> None:
    """The first pattern that matches a query id gives its group; a site counts once per group, the rest is `other`."""
    lines = {
        line.group: (line.llm, line.sites) for line in rate_lines(DATED, RateQuery(by="query-group", settings=GROUPS))
    }
    assert lines == {"health": (1, 2), "law": (0, 2), "other": (0, 1)}


@pytest.mark.parametrize(
    ("cut", "sites"),
    [
        (Cut(source="file"), "acd"),
        (Cut(group="health"), "ab"),
        (Cut(group="other"), "d"),
        (Cut(ranks=(1, 10)), "ab"),
        (Cut(source="file", ranks=(3, 50)), "c"),
        (Cut(source="none"), ""),
    ],
)
def test_cuts_leave_the_sites_that_were_asked_for(cut: Cut, sites: str) -> None:
    """A cut by source, group or rank keeps exactly those sites; cuts can be combined."""
    assert "".join(row.site for row in cut.of(DATED, GROUPS.groups)) == sites


@pytest.mark.parametrize("text", ["0", "5-3", "x", "1-", "-1", "1-2-3"])
def test_what_is_no_range_of_ranks_is_refused(text: str) -> None:
    """An invalid range of ranks is refused with the format of a range."""
    with pytest.raises(UsageError, match="such as 1-10"):
        read_ranks(text)


def test_ranks_and_days_are_read() -> None:
    """A range, one rank, a day or nothing is read; a cut may end on a future day but not begin on one."""
    assert (read_ranks("1-10"), read_ranks("7"), read_ranks("")) == ((1, 10), (7, 7), None)
    now_ms = 1_767_571_200_000
    assert read_days("2026-01-05", "", now_ms) == (date(2026, 1, 5), None)
    assert read_days("", "2026-12-31", now_ms) == (None, date(2026, 12, 31))
    with pytest.raises(UsageError):
        read_days("2026-12-31", "", now_ms)


def _canaries(llm_found: int, human_cleared: int, of_each: int = 20, **more: Any) -> list[SiteState]:
    rows = []
    for number in range(of_each):
        for truth, good in (("llm", llm_found), ("human", human_cleared)):
            verdict = truth if number < good else {"llm": "undecided", "human": "llm"}[truth]
            site = f"x{number}.{number:016x}.10.5.{truth}.canary.invalid"
            rows.append(_row(site, verdict, updated_at=10**12, **more))
    return rows


def test_canaries_never_count_and_correct_the_rate() -> None:
    """Canary sites are in no denominator, group or window; 20 of each truth correct the rate, and a remark says so."""
    rows = [*ROWS, *_canaries(18, 19)]
    for by in ("", *SPLITS):
        for with_them, without in zip(
            rate_lines(rows, RateQuery(by=by, now_ms=10**12)), rate_lines(ROWS, RateQuery(by=by)), strict=True
        ):
            assert (with_them.group, with_them.sites, with_them.llm) == (without.group, without.sites, without.llm)
            if with_them.classifiable:
                assert (with_them.judged_method, without.judged_method) == ("corrected by canaries", "uncorrected")
                correction = with_them.canary_remark
                assert correction is not None and correction.kind == RemarkKind.CORRECTED
                counts = {"llm_sites": 20, "llm_found": 18, "human_sites": 20, "called": 1}
                assert counts.items() <= dict(correction.facts).items()
                assert (correction in with_them.judged_remarks) == (not by)


@pytest.mark.parametrize(
    ("canaries", "now_ms", "kind"),
    [
        (_canaries(10, 10, of_each=19), 10**12, RemarkKind.FEW_CANARIES),
        (_canaries(10, 12), 10**12, RemarkKind.NOT_CORRECTED),
        (_canaries(0, 20), 10**12, RemarkKind.NOT_CORRECTED),
        (_canaries(4, 4), 10**12, RemarkKind.NOT_CORRECTED),
        (_canaries(18, 19), 10**12 + 31 * 86_400_000, None),
        (_canaries(18, 19, detector="y/1"), 10**12, None),
        (_canaries(18, 19, digest="d2"), 10**12, None),
    ],
    ids=["few", "not shown", "never llm", "chance", "old", "other detector", "other ruleset"],
)
def test_canaries_that_cannot_correct_do_not(canaries: list[SiteState], now_ms: int, kind: RemarkKind | None) -> None:
    """Canaries that are too few, old, no better than chance, or of another detector or ruleset leave it uncorrected.

    A remark has the reason.
    """
    found = {(line.detector, line.digest): line for line in rate_lines([*ROWS, *canaries], RateQuery(now_ms=now_ms))}
    line = found["x/1", "d1"]
    assert line.judged_method == "uncorrected"
    assert (line.canary_remark and line.canary_remark.kind) == kind


def test_mixed_sites_are_told() -> None:
    """Sites with two clear groups of scores are counted beside their verdicts."""
    rows = [*ROWS, _row("m", "llm", mixed=True, sources=["file"])]
    assert rate_lines(rows)[0].mixed == 1
    assert {line.group: line.mixed for line in rate_lines(rows, RateQuery(by="source"))} == {"file": 1, "searx": 0}


def test_every_split_of_the_command_is_known_here() -> None:
    """`rate --by` offers exactly the known splits."""
    assert set(get_args(RateSplit)) == set(RESULT_SPLITS)
    assert all(sum(line.sites for line in rate_lines(ROWS, RateQuery(by=split))) >= len(ROWS) for split in SPLITS)


def test_sites_without_a_query_are_not_lost() -> None:
    """They are in the group `unknown`."""
    queries = {line.group: line.sites for line in rate_lines(ROWS, RateQuery(by="query"))}
    assert queries == {"q1": 2, "q2": 1, "unknown": 2}


def test_without_rows_there_is_no_rate_and_a_line_that_says_so() -> None:
    """An empty log gives null, not 0%, and a line that says so."""
    (line,) = rate_lines([])
    assert line.judged_share is None
    assert line.low is None
    assert line.judged_remarks[0].kind == RemarkKind.NO_RATE


def test_rate_prints_what_estimate_prints() -> None:
    """`rate --json` has all fields of `estimate` with the same names, and remarks as text."""
    (line,) = rate_lines(ROWS)
    estimate = line_fields(EstimateLine(**{name: getattr(line, name) for name in EstimateLine.__struct_fields__}))
    assert estimate.items() <= line_fields(line).items()
    assert estimate["text"].startswith("no share yet") and "1 of 4 sites unclassifiable" in estimate["judged_text"]
