"""Calibration: the threshold holds on new texts, its errors have honest intervals, and too little data is refused."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.calibration.labelled_scores import LabelledScores, ScoredLabel, gather, separation
from scoring.calibration.report import CalibrationReport, share_text, summary
from scoring.calibration.threshold import (
    calibrate,
    choose_threshold,
    measure,
    measure_sites,
    needed_human_texts,
    refuse_too_few,
    threshold_interval,
)
from scoring.errors import BadParameters, CalibrationRefused, PooledDetectors
from scoring.sites.sprt import SprtParams
from scoring.thresholds.threshold_set import ThresholdSet, published_for
from tests.support.paths import ROOT

BINOCULARS = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512"
HIGHER = "fast-detectgpt/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512"
NORMAL = NormalDist()


def scores(
    human: np.ndarray | list[float],
    llm: np.ndarray | list[float] = (),  # type: ignore[assignment]
    *,
    detector: str = HIGHER,
    sites: list[str] | None = None,
    words: list[int] | None = None,
    genres: list[str] | None = None,
) -> LabelledScores:
    """Columns of human scores, then of LLM scores."""
    value = np.concatenate([np.asarray(human, float), np.asarray(llm, float)])
    count = len(value)
    return LabelledScores(
        detector=detector,
        number="score",
        llm_below=detector.startswith("binoculars"),
        value=value,
        llm=np.arange(count) >= len(human),
        words=np.array(words or [-1] * count, np.intp),
        sites=sites or [""] * count,
        genres=genres or [""] * count,
    )


def normal(human: int, llm: int, apart: float = 2.0, seed: int = 0, **more: object) -> LabelledScores:
    """Two normal laws with means `apart`."""
    rng = np.random.default_rng(seed)
    return scores(rng.normal(0, 1, human), rng.normal(apart, 1, llm), **more)  # type: ignore[arg-type]


# the threshold


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=200),
    st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.3, 0.5]),
    st.booleans(),
)
def test_no_more_human_texts_are_flagged_than_allowed(found: list[int], fpr: float, below: bool) -> None:
    """For any scores, ties included, and both directions: the observed share is at most the requested one.

    The threshold is the loosest one: at the next score, more than floor(fpr (n + 1)) - 1 would be flagged.
    """
    made = scores([float(value) for value in found], detector=BINOCULARS if below else HIGHER)
    threshold = choose_threshold(made, fpr)
    turned = [-value if below else value for value in found]
    edge = -threshold if below else threshold
    flagged = sum(value > edge for value in turned)
    assert flagged <= fpr * len(found)
    allowed = max(0, math.floor(fpr * (len(found) + 1) + 1e-9) - 1)
    assert flagged <= allowed < sum(value >= edge for value in turned)


def test_the_direction_is_the_detectors() -> None:
    """Mirrored scores give the mirrored threshold and the same flags."""
    up = normal(400, 200)
    down = scores(-up.value[~up.llm], -up.value[up.llm], detector=BINOCULARS)
    chosen_up, report_up = calibrate(up, "up", 0.02)
    chosen_down, report_down = calibrate(down, "down", 0.02)
    assert chosen_down.threshold == -chosen_up.threshold and chosen_down.llm_below and not chosen_up.llm_below
    assert report_up.all.sensitivity == report_down.all.sensitivity
    assert (report_up.threshold_low, report_up.threshold_high) == (
        -report_down.threshold_high,
        -report_down.threshold_low,
    )
    assert chosen_up.curve is not None and chosen_down.curve is not None
    assert chosen_down.curve.slope == pytest.approx(-chosen_up.curve.slope)


@pytest.mark.parametrize(("texts", "fpr"), [(299, 0.01), (500, 0.01), (600, 0.05)])
def test_the_promise_holds_on_texts_to_come(texts: int, fpr: float) -> None:
    """In 300 calibrations on normal scores, the promised rate holds for the known true rate.

    On average at most the requested share is flagged. In >= 94% the interval contains the true share, and the
    threshold's own interval the true quantile.
    """
    rng = np.random.default_rng(texts)
    rounds, true_rates, covered, threshold_covered = 300, [], 0, 0
    quantile = NORMAL.inv_cdf(1 - fpr)
    for _ in range(rounds):
        made = scores(rng.normal(0, 1, texts))
        threshold = choose_threshold(made, fpr)
        true_rates.append(1 - NORMAL.cdf(threshold))
        found = measure(made, at(threshold), "all").false_positives
        assert found.low is not None and found.high is not None
        covered += found.low <= true_rates[-1] <= found.high
        low, high = threshold_interval(made, threshold)
        threshold_covered += low <= quantile <= high
    assert np.mean(true_rates) <= fpr * 1.03
    assert covered / rounds >= 0.94 and threshold_covered / rounds >= 0.92


def at(threshold: float, *, below: bool = False) -> ThresholdSet:
    """A set with only a threshold."""
    return ThresholdSet(name="x", detector=HIGHER, threshold=threshold, llm_below=below)


# separation


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    """It equals the definition with ties counted half, also for a detector with low LLM scores."""
    rng = np.random.default_rng(3)
    human, llm = rng.integers(0, 8, 60).astype(float), rng.integers(3, 11, 40).astype(float)
    pairs = np.mean([(m > h) + 0.5 * (m == h) for h in human for m in llm])
    assert separation(scores(human, llm)).value == pytest.approx(pairs)
    assert separation(scores(-human, -llm, detector=BINOCULARS)).value == pytest.approx(pairs)


def test_auroc_interval_covers_and_knows_sites() -> None:
    """400 draws of two normal laws: the interval contains the true area in >= 93%; equal pages of a site widen it."""
    rng, rounds = np.random.default_rng(5), 400
    true = NORMAL.cdf(1.0 / math.sqrt(2))
    found = [separation(scores(rng.normal(0, 1, 60), rng.normal(1, 1, 40))) for _ in range(rounds)]
    assert sum(one.low <= true <= one.high for one in found) / rounds >= 0.93
    value = np.repeat(rng.normal(0, 1, 12), 10)
    sites = [f"s{number}" for number in np.repeat(np.arange(12), 10)]
    alone, by_site = (separation(scores(value[:60], value[60:] + 0.5, sites=kept)) for kept in (None, sites))
    assert by_site.high - by_site.low > 2 * (alone.high - alone.low)


def test_perfect_separation_is_not_certainty() -> None:
    """No overlap in 30 and 20 texts: AUROC 1, and an interval that still begins below 1."""
    found = separation(scores(np.zeros(30), np.ones(20)))
    assert found.value == 1.0 and 0.8 < found.low < 0.9 and found.high == 1.0


# refusals


THREE_SITES = [f"h{number % 3}" for number in range(1000)] + [f"l{number % 40}" for number in range(200)]
WILD = np.concatenate([np.random.default_rng(0).normal(0, 1, 400), np.full(6, 1e4)])


@pytest.mark.parametrize(
    ("made", "fpr", "said"),
    [
        (normal(298, 60), 0.01, "298 human texts, 299 are needed; 60 LLM texts, 100 are needed.*A higher rate needs"),
        (normal(1000, 200, sites=THREE_SITES), 0.01, "3 sites with human texts, 10 are needed"),
        (normal(400, 200, apart=0.0), 0.01, r"does not tell these texts apart.*above \.5\. Check the labels"),
        (normal(400, 200, apart=-2.0), 0.01, "are the labels swapped"),
        (scores(WILD, np.random.default_rng(1).normal(0.6, 1, 300)), 0.05, "wrong way"),
    ],
    ids=["texts", "sites", "chance", "swapped labels", "wild scores"],
)
def test_texts_that_give_no_threshold_are_refused(made: LabelledScores, fpr: float, said: str) -> None:
    """Texts that give no threshold are refused.

    Too few texts or sites (with the needed numbers), inseparable labels, a curve against the threshold's side.
    """
    with pytest.raises(CalibrationRefused, match=said):
        calibrate(made, "x", fpr)


def test_the_needed_texts_follow_the_rule_of_three() -> None:
    """At least 299 human texts are needed for 1%."""
    assert [needed_human_texts(fpr) for fpr in (0.001, 0.01, 0.05, 0.1)] == [2995, 299, 59, 29]
    refuse_too_few(normal(299, 100), 0.01)


@pytest.mark.parametrize("fpr", [0.0, -0.1, 0.51, math.nan])
def test_a_rate_that_makes_no_sense_is_refused(fpr: float) -> None:
    """A false-positive rate lies above 0 and not above one half."""
    with pytest.raises(BadParameters):
        calibrate(normal(400, 200), "x", fpr)


def test_two_detectors_are_refused_with_both_names() -> None:
    """Scores of two detectors are never pooled for one threshold; those of two thresholds of one detector may be."""
    rows = [ScoredLabel(f"{HIGHER}/a", bool(number % 2), float(number)) for number in range(10)]
    with pytest.raises(PooledDetectors) as refused:
        gather([*rows, ScoredLabel(f"{BINOCULARS}/b", True, 0.5)])
    assert HIGHER in str(refused.value) and BINOCULARS in str(refused.value)
    assert gather([*rows, ScoredLabel(f"{HIGHER}/uncalibrated", True, 0.5)]).detector == HIGHER


def test_one_label_or_only_abstentions_are_refused() -> None:
    """Without a scored text of each label calibration is refused, with the number of abstentions."""
    with pytest.raises(CalibrationRefused, match="label llm"):
        gather([ScoredLabel(f"{HIGHER}/a", False, 1.0)] * 5)
    with pytest.raises(CalibrationRefused, match="human and none with llm among 5; the detector abstained on 5"):
        gather([ScoredLabel(f"{HIGHER}/a", False, None)] * 5)


def test_abstentions_are_counted_by_label_and_not_measured() -> None:
    """An abstention is not a human verdict: it counts in no share, and is reported."""
    rows = [ScoredLabel(f"{HIGHER}/a", llm, number) for llm in (True, False) for number in (1.0, None, 0.0)]
    made = gather([*rows, ScoredLabel(f"{HIGHER}/a", True, None)])
    assert (made.abstained_human, made.abstained_llm, len(made.value)) == (1, 2, 4)


def test_a_foreign_detector_tells_its_direction_by_its_scores() -> None:
    """For a foreign detector, llm is the side of most LLM texts."""
    rows = [ScoredLabel("other/1/none", llm, float(not llm)) for llm in (True, False)] * 5
    assert gather(rows).llm_below
    assert not gather([row._replace(llm=not row.llm) for row in rows]).llm_below


# the report


def calibrated(by_site: bool = True) -> CalibrationReport:
    """A report on 1,200 human texts of 30 sites and 600 LLM texts of 20, in two genres and three lengths."""
    of = [f"h{number % 30}" for number in range(1200)] + [f"l{number % 20}" for number in range(600)]
    made = normal(
        1200,
        600,
        apart=3.0,
        sites=of if by_site else None,
        words=[(80, 200, 900)[number % 3] for number in range(1800)],
        genres=[("news", "blog")[number % 2] for number in range(1800)],
    )
    return calibrate(made, "mine", 0.02)[1]


def test_slices_add_up_to_the_whole() -> None:
    """Slices by length and genre partition the texts.

    Counts sum to the total, and specificity is 1 - false positives.
    """
    report = calibrated()
    for parts in (report.lengths, report.genres):
        assert sum(part.false_positives.count for part in parts) == report.all.false_positives.count
        assert sum(part.sensitivity.count for part in parts) == report.all.sensitivity.count
        assert sum(part.sensitivity.total for part in parts) == 600
    assert [part.name for part in report.lengths] == ["0-149 words", "150-299 words", "700+ words"]
    whole = report.all
    assert whole.specificity.count == whole.false_positives.total - whole.false_positives.count
    assert whole.specificity.low == pytest.approx(1 - (whole.false_positives.high or 0))


def test_slices_by_genre() -> None:
    """Twenty genres have a row each, the others share one; a slice without texts of a label is marked."""
    genres = [f"g{number % 33}" for number in range(600)]
    genres[0] = ""
    names = [part.name for part in calibrate(normal(400, 200, genres=genres), "x", 0.05)[1].genres]
    assert len(names) == 22 and names[-2:] == ["13 more", "(none)"]
    first = calibrate(normal(400, 200, genres=["a"] * 400 + ["b"] * 200), "x", 0.05)[1].genres[0]
    assert share_text(first.sensitivity) == "no texts" and first.auroc is None


# the site test


def test_site_test_lies_between_most_sites() -> None:
    """At least nine of ten human sites have a share of at most p0; nine of ten LLM sites have at least p1."""
    made = normal(
        3000, 1500, sites=[f"h{number % 30}" for number in range(3000)] + [f"l{number % 15}" for number in range(1500)]
    )
    params, told = measure_sites(made, 1.5)
    assert params is not None and "30 human sites" in told and "15 LLM sites" in told
    flagged = made.value > 1.5
    shares = {
        site: np.mean([flag for flag, own in zip(flagged, made.sites, strict=True) if own == site])
        for site in set(made.sites)
    }
    assert sum(shares[f"h{number}"] <= params.p0 + 5e-4 for number in range(30)) >= 27
    assert sum(shares[f"l{number}"] >= params.p1 - 5e-4 for number in range(15)) >= 13
    assert (params.alpha, params.beta) == (SprtParams().alpha, SprtParams().beta)


def test_without_enough_sites_there_is_no_site_test() -> None:
    """No sites, too few, or a threshold that does not separate the kinds: None, and a reason."""
    assert measure_sites(normal(300, 100), 1.0)[0] is None
    few = normal(300, 100, sites=[f"h{number % 50}" for number in range(300)] + ["l"] * 100)
    assert measure_sites(few, 1.0) == (None, measure_sites(few, 1.0)[1]) and "1 LLM sites" in measure_sites(few, 1.0)[1]
    single = normal(300, 100, sites=[f"s{number}" for number in range(400)])
    assert "0 human and 0 LLM sites with 5 texts or more" in measure_sites(single, 1.0)[1]
    many = normal(300, 100, sites=[f"s{number % 20}" for number in range(400)])
    params, told = measure_sites(many, 9.0)
    assert params is None and "too near" in told


def test_a_test_that_can_never_say_llm_is_not_written() -> None:
    """A site test that needs more flagged pages in a row than are read is not written: None, with the numbers.

    Here nine of ten human sites are flagged on up to 80% of their pages: llm would need 34 flagged pages, and 20 are
    read.
    """
    flagged = {f"h{number}": 40 for number in range(12)} | {f"l{number}": 49 for number in range(12)}
    value, sites = [], []
    for site, count in flagged.items():
        value += [2.0] * count + [0.0] * (50 - count)
        sites += [site] * 50
    made = scores(value[:600], value[600:], sites=sites)
    params, told = measure_sites(made, 1.0)
    assert params is None
    assert "at most 80.0% of their pages" in told and "at least 98.0%" in told
    assert "needs 34 pages to say llm and 2 to say human, and 20 of a site are read (tally.enough_articles)" in told
    assert "take a lower false-positive rate" in told


# real pages


@pytest.fixture(scope="module")
def pages(shared: Path) -> LabelledScores:
    """Binoculars of 4,035 real pages of 69 sites."""
    with (shared / "data" / "scores" / "page_scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return gather(
        [
            ScoredLabel(
                f"{BINOCULARS}/uncalibrated",
                row["generated"] == "1",
                float(row["binoculars"]),
                int(row["words"]),
                row["site"],
            )
            for row in rows
        ]
    )


@pytest.mark.data
def test_published_thresholds_on_real_pages(pages: LabelledScores) -> None:
    """Exact counts at both published thresholds, on all pages and on those of 200 words or more."""
    low, accuracy = sorted(published_for(BINOCULARS), key=lambda found: found.threshold)
    long = pages.where(pages.words >= 200)
    counts = {
        (name, chosen.name): (found.false_positives.count, found.sensitivity.count)
        for name, part in (("all", pages), ("long", long))
        for chosen in (low, accuracy)
        for found in [measure(part, chosen, "")]
    }
    assert (int((~pages.llm).sum()), int(pages.llm.sum())) == (3412, 623)
    assert (int((~long.llm).sum()), int(long.llm.sum())) == (1833, 436)
    assert counts == {
        ("all", "low-fpr"): (65, 269),  # 1.9%, 43%
        ("all", "accuracy"): (165, 489),  # 4.8%, 78%
        ("long", "low-fpr"): (8, 189),  # .44%, 43%
        ("long", "accuracy"): (35, 355),  # 1.9%, 81%
    }


@pytest.mark.data
def test_calibration_on_real_pages(pages: LabelledScores) -> None:
    """At a rate of 4.67% the threshold is within .004 of the published .9015, and finds 76-78% of LLM pages.

    The interval by site contains the target and is several times as wide as the one by page; the site test is near
    the defaults, .20 and .65.
    """
    chosen, report = calibrate(pages, "pages", 0.0467)
    assert chosen.threshold == pytest.approx(0.9015, abs=0.004) and chosen.llm_below
    assert report.threshold_low < 0.9015 < report.threshold_high
    assert report.all.sensitivity.share == pytest.approx(0.77, abs=0.01)
    found = report.all.false_positives
    assert found.share is not None and found.low is not None and found.high is not None
    assert found.share <= 0.0467 and found.low < 0.02 and found.high > 0.09
    assert report.all.auroc is not None and report.all.auroc.value == pytest.approx(0.964, abs=0.001)
    assert chosen.site_test is not None
    assert chosen.site_test.p0 == pytest.approx(0.20, abs=0.03) and chosen.site_test.p1 == pytest.approx(0.63, abs=0.04)
    assert chosen.site_test.min_articles == 6  # six clear pages or flags can decide, five cannot
    assert report.reliability.calibration_error < 0.05 and report.reliability.brier < 0.08


DOCS = ROOT / "docs" / "explanation" / "calibration.md"


def test_the_page_says_how_many_are_needed() -> None:
    """The table of needed human texts in docs/explanation/calibration.md agrees with the code."""
    told = {
        float(cells[1].strip().strip("`")): (int(cells[2].strip().replace(",", "")), cells[3].strip())
        for line in DOCS.read_text().splitlines()
        if (cells := line.split("|")) and line.startswith("| .")
    }
    assert len(told) == 6
    for fpr, (needed, intervals) in told.items():
        assert needed == needed_human_texts(fpr)
        if intervals:
            limits = []
            for texts in (300, 1000, 3000):  # distinct results for this many texts: 14 of 300 for .05
                made = scores(np.arange(texts, dtype=float))
                found = measure(made, at(choose_threshold(made, fpr)), "").false_positives
                assert found.low is not None and found.high is not None
                limits.append((found.low, found.high))
            assert intervals == ", ".join(f"{100 * low:.1f}-{100 * high:.1f}%" for low, high in limits)


@pytest.mark.data
def test_the_pages_example_is_what_comes_out(pages: LabelledScores) -> None:
    """The example in docs/explanation/calibration.md agrees with a calibration of the same pages."""
    report = calibrate(pages.where(pages.words >= 100), "pages", 0.05)[1]
    page = DOCS.read_text()
    for sentence in summary(report):
        assert sentence in page
    for part in (report.all, *report.published, *report.lengths):
        row = [
            f"{found.total:,} | {found.count} | {found.share:.2%} | {found.low:.2%} to {found.high:.2%}"
            for found in (part.false_positives, part.sensitivity)
        ]
        assert " | ".join(row) in page
