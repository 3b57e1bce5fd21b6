"""Shares with missing or bad input: one sentence for each kind, and the claims that remain."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from scoring.estimate.definitions import OF_RESULTS
from scoring.estimate.fit import CellCounts, KnownSites
from scoring.estimate.remarks import RemarkKind
from scoring.estimate.reviewed_share import Review
from scoring.rates.direct_share import DirectShare, by_review, direct_share
from scoring.rates.split_rates import RateQuery, rate_lines
from tests.support.remarks import facts, kinds
from tests.support.site_rows import cell_rows, results_of

HUMAN, LLM = (0.5, 11.0), (19.0, 5.0)  # betas of the flagged share
Beta = tuple[float, float]


def drawn(rng: np.random.Generator, sites: int, beta: Beta, pages: int = 0) -> Counter[tuple[int, int]]:
    """Sites of a kind with `pages` pages each, or a random number of pages."""
    cells: Counter[tuple[int, int]] = Counter()
    for _ in range(sites):
        n = pages or min(int(rng.geometric(0.25)), 20)
        cells[n, int(rng.binomial(n, rng.beta(*beta)))] += 1
    return cells


def share_of(cells: CellCounts, human: CellCounts, llm: CellCounts) -> DirectShare:
    """The share with these known sites."""
    return direct_share(cells, KnownSites(human, llm))[0]


def test_what_is_missing_is_named() -> None:
    """Known sites of one kind or none, or sites of one article each, give a remark."""
    rng = np.random.default_rng(1)
    short = drawn(rng, 70, LLM, 1) + drawn(rng, 230, HUMAN, 1)
    human, llm = drawn(rng, 40, HUMAN, 9), drawn(rng, 40, LLM, 9)
    for known, missing in ((({}, {}), "human or LLM"), ((human, {}), "LLM"), (({}, llm), "human")):
        found = share_of(short, *known)
        assert facts(found.remarks, RemarkKind.NONE_KNOWN) == {"kinds": missing}
        if not any(known):
            assert (found.share, found.method) == (None, "too wide")
            assert RemarkKind.ONE_ARTICLE_EACH in kinds(found.remarks)
    sure = share_of(short, human, llm)
    assert sure.share is not None and RemarkKind.NONE_KNOWN not in kinds(sure.remarks)


@pytest.mark.parametrize(("human", "llm"), [((5.0, 5.0), (5.0, 5.0)), (LLM, HUMAN)], ids=["at chance", "inverted"])
def test_flags_that_fit_no_known_site_give_no_share(human: Beta, llm: Beta) -> None:
    """If known sites of both kinds are flagged alike, there is no share, in total or of a group; labels give one."""
    rng = np.random.default_rng(2)
    cells = drawn(rng, 420, human) + drawn(rng, 180, llm)
    known = KnownSites(drawn(rng, 40, human, 9), drawn(rng, 40, llm, 9))
    found, fit = direct_share(cells, known)
    assert (found.share, found.low, found.high, found.method) == (None, 0.0, 1.0, "kinds not told apart")
    alike = [RemarkKind.KINDS_NOT_TOLD_APART, RemarkKind.FLAGGED_ALIKE, RemarkKind.OTHER_DETECTOR]
    assert kinds(found.remarks) == alike and found.remarks[0].facts["sites"] == 600
    assert direct_share(cells, whole=fit)[0].method == "kinds not told apart"
    assert fit is not None
    rows = cell_rows(cells.elements())
    labels = {row.site: float(row.site[1:-4] < "3") for row in rows[::5]}
    reviewed = by_review(found, fit, rows, Review({"": labels}, len(labels), 0, 1), 0.95)
    assert reviewed.method == "ppi" and reviewed.share == pytest.approx(np.mean(list(labels.values())), abs=0.05)


@pytest.mark.slow
def test_a_web_without_llm_sites_gets_no_number_where_no_site_is_known() -> None:
    """Without known sites, a web without LLM sites gets no share; with known sites its share is small."""
    rng = np.random.default_rng(7)
    cells = drawn(rng, 300, HUMAN)
    found = share_of(cells, {}, {})
    assert found.share is None or found.share <= 0.05
    with_known = share_of(cells, drawn(rng, 40, HUMAN, 9), drawn(rng, 40, LLM, 9))
    assert with_known.low == pytest.approx(0, abs=0.01) and (with_known.share or 0) < 0.05


def test_a_detector_without_a_threshold_flags_nothing() -> None:
    """Without a threshold, the sentence names the threshold and not missing scores."""
    rows = cell_rows([(0, 0)] * 50, detector="x/uncalibrated", pages=9, articles=9, abstained=9)
    (line,) = rate_lines(rows)
    assert kinds(line.remarks) == [RemarkKind.NO_SHARE, RemarkKind.NO_THRESHOLD, RemarkKind.SET_A_THRESHOLD]
    assert line.not_judged == {"no threshold": 50}


def test_labels_of_one_kind_that_contradict_the_flags_are_named() -> None:
    """If labels of one kind contradict the flags, the share is below a bound, never 0.0%, and the text says so."""
    rng = np.random.default_rng(3)
    cells = drawn(rng, 180, LLM) + drawn(rng, 420, HUMAN)
    rows = cell_rows(cells.elements())
    for says in (0.0, 1.0):
        review = Review({"": {row.site: says for row in rows[::10]}}, 60, 0, 86_400_000)
        (line,) = rate_lines(rows, RateQuery(review=review))
        assert line.method == "ppi" and line.share == says
        assert kinds(line.remarks)[:2] == [RemarkKind.SHARE, RemarkKind.CONTRADICTION]
        assert (line.look_low or 0) < (line.low or 0) or (line.look_high or 1) > (line.high or 1)
    old = Review({}, 0, 0, 1, too_old=60)
    few, too_old = rate_lines(rows, RateQuery(review=old))[0].remarks[1:3]
    assert (few.facts["needed"], too_old.facts["labels"]) == (20, 60)


def test_a_review_too_wide_to_lead_says_that_its_labels_contradict() -> None:
    """If most labels of a part of the draw contradict the flags, a remark says so, and the share is by flags."""
    rows = cell_rows([(9, 8)] * 16 + [(9, 0)] * 16)
    labels = {row.site: float(row.flagged == 0) for row in rows[6:26]}
    (line,) = rate_lines(rows, RateQuery(review=Review({"": labels}, 60, 0, 86_400_000)))
    assert (line.method, line.labelled) == ("direct", 20)
    assert kinds(line.remarks)[1:3] == [RemarkKind.REVIEWED_SHARE, RemarkKind.CONTRADICTION]


def test_labels_count_for_domains_and_results() -> None:
    """If flags miss most LLM sites, labels correct each definition with its weights."""
    rng = np.random.default_rng(4)
    rows, labels = [], {}
    for n in range(400):
        is_llm = rng.random() < 0.3
        k = int(rng.binomial(9, rng.beta(*(LLM if is_llm and rng.random() < 0.3 else HUMAN))))
        rows += cell_rows([(9, k)], f"s{n}.com", hits=9 if is_llm else 3, best_rank=1)
        if n < 100:
            labels[f"s{n}.com"] = float(is_llm)
    true = np.mean(list(labels.values()))
    of_results = true * 9 / (true * 9 + (1 - true) * 3)
    shares = {"sites": true, "domains": true, "results": of_results, "ranked-results": of_results}
    for definition, expected in shares.items():
        results = results_of(rows) if definition in OF_RESULTS else None
        review = Review({"": labels}, 100, 0, 86_400_000)
        (line,) = rate_lines(rows, RateQuery(review=review, definition=definition, results=results))
        assert line.method == "ppi" and line.share == pytest.approx(expected, abs=0.05)
