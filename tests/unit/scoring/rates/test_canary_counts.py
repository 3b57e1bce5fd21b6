"""Canary sites: names and counts. Each content counts once, in its newest round, for one detector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import PooledDetectors
from scoring.estimate.error_counts import CanaryCounts
from scoring.rates.canary import CanaryName, canary_name, is_canary, is_label, truth_of
from scoring.rates.canary_counts import canary_summary
from scoring.rates.site_rates import rate_of
from scoring.sites.sprt import SiteTest, SprtParams
from stream.schema.records import SiteState
from tests.support.real_sites import of_flags

FINISHED = {"pages": 10, "articles": 8, "scored": 7, "abstained": 1, "flagged": 3, "detector": "x/1"}


def row(truth: str, content: int, verdict: str, number: int = 5, label: str = "", **more: Any) -> SiteState:
    """The row of a canary site of ten pages, of which eight are articles; a label for each content unless given."""
    site = CanaryName(label or f"label{content}", f"{content:016x}", 10, number, truth).site
    fields = {**FINISHED, "updated_at": number, **more}
    return SiteState(id=site, site=site, verdict=verdict, **fields)


def canary_counts(rows: Iterable[SiteState], since_ms: int = 0) -> CanaryCounts:
    """The errors of the site verdict on these canaries."""
    return canary_summary(rows, since_ms).counts


def test_errors_are_counted_as_the_rate_counts() -> None:
    """Among classifiable sites, LLM ones called llm are found.

    Human ones not called llm, even undecided, are cleared.
    """
    rows = [
        row("llm", 1, "llm"),
        row("llm", 2, "undecided"),
        row("llm", 3, "unclassifiable"),
        row("human", 4, "human"),
        row("human", 5, "undecided"),
        row("human", 6, "llm"),
        row("human", 7, "unclassifiable"),
        SiteState(id="real.example", site="real.example", verdict="llm", detector="x/1"),
    ]
    assert canary_counts(rows) == CanaryCounts(llm_sites=2, llm_found=1, human_sites=3, human_cleared=2)
    assert canary_summary(rows).sites["human"] == {"human": 1, "undecided": 1, "llm": 1, "unclassifiable": 1}


def test_rounds_of_one_content_are_one_site() -> None:
    """The newest complete round counts; a round in progress does not replace it."""
    rows = [row("human", 1, "llm", 5), row("human", 1, "human", 6), row("human", 1, "unclassifiable", 7, pages=9)]
    assert canary_counts(rows) == CanaryCounts(0, 0, 1, 1)
    assert canary_counts(reversed(rows)) == CanaryCounts(0, 0, 1, 1)
    assert canary_counts([*rows, row("human", 2, "llm", 5)]) == CanaryCounts(0, 0, 2, 1)


def test_an_edited_label_is_still_one_site() -> None:
    """A text edited every day is one site, and exchanged labels add no site."""
    daily = [row("llm", day, "llm" if day < 30 else "human", day, label="novels") for day in range(1, 31)]
    assert canary_counts(daily) == CanaryCounts(1, 0, 0, 0)
    assert canary_counts([*daily, row("human", 1, "human", label="novels")]) == CanaryCounts(1, 0, 1, 1)
    traded = [row("llm", 1, "llm", 6, "a"), row("llm", 2, "llm", 6, "b"), row("llm", 2, "human", 5, "a")]
    assert canary_counts(traded) == CanaryCounts(2, 2, 0, 0)
    assert canary_counts([row("llm", 1, "llm", 5, "a"), row("llm", 1, "human", 6, "b")]) == CanaryCounts(1, 0, 0, 0)


@pytest.mark.parametrize(
    "unfinished", [{"pages": 9}, {"scored": 6}, {"pages": 0, "articles": 0, "scored": 0, "abstained": 0}]
)
def test_a_round_under_way_gives_way_to_the_one_before(unfinished: dict[str, Any]) -> None:
    """While the newest round lacks pages or scores, the last round counts; without one, only the verdict counts."""
    newest = row("llm", 1, "undecided", 7, **unfinished)
    found = canary_summary([row("llm", 1, "llm", 6), newest])
    assert found.counts == CanaryCounts(1, 1, 0, 0)
    assert found.pages["llm"].sent == 10
    assert canary_counts([newest]) == CanaryCounts(1, 0, 0, 0)
    assert set(canary_summary([newest]).shares()) == {"site_tpr"}


def test_a_breakdown_is_seen_with_the_next_round() -> None:
    """If all pages of the newest round are dropped, it has no verdict, and the kept shares fall at once."""
    dropped: dict[str, Any] = {"articles": 0, "scored": 0, "abstained": 0, "flagged": 0}
    rows = [row("llm", 1, "llm", 5), row("human", 2, "human", 5)]
    rows += [row("llm", 1, "unclassifiable", 6, **dropped), row("human", 2, "unclassifiable", 6, **dropped)]
    found = canary_summary(rows)
    assert found.counts == CanaryCounts(0, 0, 0, 0)
    assert {name: share.point for name, share in found.shares().items()} == {"kept_human": 0.0, "kept_llm": 0.0}


def test_a_round_that_never_ended_is_over_when_the_next_one_comes() -> None:
    """A stage that loses a page of every round, or a dead SCORE, shows after one round at most."""
    stuck: dict[str, Any] = {"scored": 0, "abstained": 0, "flagged": 0}
    rows = [row("llm", 1, "llm", 5), *(row("llm", 1, "unclassifiable", number, **stuck) for number in (6, 7))]
    found = canary_summary(rows)
    assert found.counts.llm_sites == 0
    assert (found.pages["llm"].kept, found.pages["llm"].scored) == (8, 0)


def test_old_rounds_do_not_count() -> None:
    """Rounds older than the counted period are left out, but the time of the last one is known."""
    rows = [row("llm", 1, "llm", 5), row("llm", 2, "llm", 9)]
    assert canary_counts(rows, since_ms=6) == CanaryCounts(1, 1, 0, 0)
    assert canary_summary(rows, since_ms=10).last_at == 9


def test_canaries_of_two_detectors_are_not_pooled() -> None:
    """Rows of two detectors are refused with both names; rows of real sites do not count."""
    with pytest.raises(PooledDetectors, match="site methods cannot be counted together: sprt 01 and sprt 02"):
        canary_counts(row("llm", n, "llm", method_digest=f"0{n}", ruleset="r") for n in (1, 2))
    with pytest.raises(PooledDetectors, match="x/1 and y/2"):
        canary_counts([row("llm", 1, "llm"), row("llm", 2, "llm", detector="y/2")])
    assert canary_counts([row("llm", 1, "llm"), SiteState(id="a", site="a", detector="y/2")]).llm_sites == 1


def test_shares_of_sites_and_pages() -> None:
    """FPR and TPR of sites and pages, and the shares that the ruleset keeps, lie in their intervals."""
    found = canary_summary([row("human", 1, "llm"), row("human", 2, "human"), row("llm", 3, "llm")]).shares()
    assert {name: share.point for name, share in found.items()} == {
        "site_fpr": 0.5,
        "page_fpr": 3 / 7,
        "kept_human": 0.8,
        "site_tpr": 1.0,
        "page_tpr": 3 / 7,
        "kept_llm": 0.8,
    }
    assert all(share.low <= share.point <= share.high for share in found.values())


def test_pages_of_a_site_are_not_independent() -> None:
    """Two sites of each kind give hardly any information about a share."""
    pages: dict[str, Any] = {"pages": 1000, "articles": 1000, "scored": 1000, "abstained": 0}
    rows = [row("human", 1, "llm", flagged=1000, **pages), row("human", 2, "human", flagged=0, **pages)]
    share = canary_summary(rows).shares()["page_fpr"]
    assert share.point == 0.5
    assert share.low < 0.05 and share.high > 0.95


def test_nothing_to_divide_by_is_left_out() -> None:
    """Without canaries there are no shares; with unclassifiable sites only, there is no share of sites."""
    assert canary_summary([]).shares() == {}
    assert set(canary_summary([row("human", 1, "unclassifiable", scored=0, abstained=8)]).shares()) == {"kept_human"}


@pytest.mark.parametrize(
    ("site", "truth"),
    [
        ("news.r19000.human.canary.invalid", "human"),
        ("x.llm.canary.invalid", "llm"),
        ("example.org", None),
        ("human.canary.invalid", None),
        (".llm.canary.invalid", None),
        ("canary.invalid", None),
        ("x.robot.canary.invalid", None),
        ("x.llm.canary.invalid.example.org", None),
        ("x.llm.canary.example", None),
        ("xllm.canary.invalid", None),
        ("", None),
    ],
)
def test_the_truth_stands_in_the_name(site: str, truth: str | None) -> None:
    """The truth is the label before `canary.invalid`; real sites, other labels and other endings have none."""
    assert truth_of(site) == truth
    assert is_canary(site) == (truth is not None)


@given(
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True),
    st.integers(0, 2**64 - 1),
    st.integers(1, 999_999),
    st.integers(0, 10**12 - 1),
    st.sampled_from(["human", "llm"]),
)
def test_a_name_reads_back(label: str, digest: int, pages: int, number: int, truth: str) -> None:
    """A canary's name holds all its parts, is a canary's, and is a host name."""
    name = CanaryName(label, f"{digest:016x}", pages, number, truth)
    assert is_label(label)
    assert canary_name(name.site) == name
    assert is_canary(name.site) and truth_of(name.site) == truth
    assert len(name.site) <= 253 and all(0 < len(part) <= 63 for part in name.site.split("."))


@pytest.mark.parametrize("text", ["", "A", "a.b", "-a", "a-", "ä", "a b", "a" * 41, "a\n"])
def test_what_is_no_label_is_refused(text: str) -> None:
    """A label that cannot be part of a host name is refused."""
    assert not is_label(text)


LONG: dict[str, Any] = {"pages": 20, "articles": 20, "scored": 20, "abstained": 0, "updated_at": 5, "detector": "x/1"}


def measured(name: str, truth: str, share: float, articles: int, rng: np.random.Generator) -> SiteState:
    """A site with this many articles and flagged ones; scoring ends with the verdict."""
    found = SiteTest(SprtParams()).decide(of_flags((rng.random(articles) < share).tolist()))
    used = found.pages_used if found.verdict in ("llm", "human") else articles
    site = CanaryName("c" + name, f"{int(name):016x}", 20, 5, truth).site if truth else f"{name}.example"
    fields = {**LONG, "articles": used, "scored": used, "verdict": found.verdict, "pages_used": found.pages_used}
    return SiteState(id=site, site=site, **fields)


def test_canaries_are_as_long_as_the_sites() -> None:
    """If sites have fewer articles than canaries, the errors are those of canaries with as many articles as a site."""
    covered, biases = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lengths = np.minimum(rng.geometric(0.25, 600), 20)
        llm = rng.random(600) < 0.3
        sites = [
            measured(str(number), "", 0.8 if is_llm else 0.045, int(length), rng)
            for number, (length, is_llm) in enumerate(zip(lengths, llm, strict=True))
        ]
        canaries = [
            measured(str(number), "human" if number < 40 else "llm", 0.045 if number < 40 else 0.8, 20, rng)
            for number in range(80)
        ]
        summary = canary_summary(canaries)
        found = rate_of(sites, summary.counts_as_long_as(sites))
        assert found.rate is not None and found.low is not None and found.high is not None
        covered += found.low <= llm.mean() <= found.high
        biases.append(found.rate - llm.mean())
    assert covered >= 18
    assert abs(np.mean(biases)) < 0.05
    as_they_are = rate_of(sites, summary.counts).rate
    assert as_they_are is not None and as_they_are < llm.mean() - 0.1


def test_without_sites_canaries_count_as_they_are() -> None:
    """Without a classified site, canaries count at full length."""
    summary = canary_summary([row("llm", 1, "llm", pages_used=7), row("human", 2, "human", pages_used=5)])
    assert summary.counts_as_long_as([]) == summary.counts
    short = SiteState(id="s", site="s.example", verdict="undecided", articles=5, scored=5, detector="x/1")
    assert summary.counts_as_long_as([short]).llm_found == 0
    assert summary.counts_as_long_as([msgspec.structs.replace(short, scored=7)]).llm_found == 1
