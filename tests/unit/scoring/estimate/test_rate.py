"""The rate: Lang-Reiczigel's interval, its coverage, and its remarks, also without sites."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scoring.errors import BadParameters
from scoring.estimate.error_counts import CanaryCounts, ErrorCounts
from scoring.estimate.intervals import Known, fits, lang_reiczigel, wilson
from scoring.estimate.remarks import RemarkKind
from scoring.rates.site_rates import SiteRate, site_rate
from tests.support.remarks import facts, kinds

GOOD = ErrorCounts(llm_sites=40, llm_found=39, human_sites=76, human_cleared=75)


@st.composite
def error_counts(draw: st.DrawFn) -> ErrorCounts:
    """Error counts of a verdict that is better than chance."""
    n1, n0 = draw(st.integers(5, 300)), draw(st.integers(5, 300))
    counts = ErrorCounts(n1, draw(st.integers(n1 // 3, n1)), n0, draw(st.integers(n0 // 3, n0)))
    assume(not counts.unusable)
    return counts


def estimate(
    llm: int, classifiable: int, errors: ErrorCounts | None, confidence: float = 0.95, undecided: int = 0
) -> SiteRate:
    """The rate of so many sites."""
    verdicts = Counter(llm=llm, undecided=undecided, human=classifiable - llm - undecided)
    return site_rate(verdicts, errors, confidence)


def known_of(errors: ErrorCounts) -> Known:
    """The counts as real numbers."""
    return Known(*map(float, msgspec.structs.astuple(errors)))


def bounds(rate: SiteRate) -> tuple[float, float, float]:
    """low, rate and high of an existing rate."""
    assert rate.low is not None and rate.rate is not None and rate.high is not None
    return rate.low, rate.rate, rate.high


def test_the_formula_by_hand() -> None:
    """For x = 10 of n = 100, Se 39/40 and Sp 75/76 at 95%, each term of the formula agrees."""
    z = 1.959963984540054
    n, p = 100 + z * z, (10 + z * z / 2) / (100 + z * z)
    se, sp, n1, n0 = 40 / 42, 76 / 78, 42, 78
    point = (p + sp - 1) / (se + sp - 1)
    shift = 2 * z * z * (point * se * (1 - se) / n1 - (1 - point) * sp * (1 - sp) / n0)
    variance = p * (1 - p) / n + point**2 * se * (1 - se) / n1 + (1 - point) ** 2 * sp * (1 - sp) / n0
    half = z * math.sqrt(variance) / (se + sp - 1)
    found = estimate(10, 100, GOOD)
    assert np.allclose(bounds(found), (point + shift - half, point, point + shift + half))
    assert found.method == "corrected"


@given(st.integers(0, 500), st.integers(0, 500), st.none() | error_counts(), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_lies_in_0_1_and_holds_the_rate(
    x: int, more: int, errors: ErrorCounts | None, confidence: float
) -> None:
    """For any counts 0 <= low <= rate <= high <= 1."""
    assume(x + more > 0)
    low, rate, high = bounds(estimate(x, x + more, errors, confidence))
    assert 0 <= low <= rate <= high <= 1


@given(st.integers(1, 120), st.none() | error_counts())
def test_more_llm_sites_never_lower_the_rate(n: int, errors: ErrorCounts | None) -> None:
    """The rate never falls as x grows."""
    rates = [bounds(estimate(x, n, errors))[1] for x in range(n + 1)]
    assert all(a <= b + 1e-12 for a, b in pairwise(rates))


@given(st.integers(0, 60), st.integers(1, 60))
def test_more_sites_narrow_the_uncorrected_interval(x: int, more: int) -> None:
    """Ten times the sites at the same share give a narrower interval."""
    n = x + more
    few, many = bounds(estimate(x, n, None)), bounds(estimate(10 * x, 10 * n, None))
    assert many[2] - many[0] < few[2] - few[0]


def test_no_sites_give_no_rate() -> None:
    """Without sites there is no rate, whatever the errors."""
    for errors in (None, GOOD, ErrorCounts(6, 6, 6, 6)):
        found = estimate(0, 0, errors)
        assert (found.rate, found.low, found.high, found.remarks[0].kind) == (None, None, None, RemarkKind.NO_RATE)


def test_without_error_counts_it_says_uncorrected() -> None:
    """Without error counts, it is the plain share in Wilson's interval."""
    found = estimate(3, 60, None)
    assert found.rate == 0.05
    assert np.allclose(bounds(found), (0.01299, 0.05, 0.14828), atol=1e-4)
    assert found.method == "uncorrected"
    assert found.remarks[0].facts["corrected"] is False


def test_few_sites_say_so() -> None:
    """For few sites, a remark says that the interval would show no change; for hardly any, there is no share."""
    found = estimate(1, 29, None)
    assert kinds(found.remarks) == [RemarkKind.RATE, RemarkKind.FEW_SITES, RemarkKind.UNCLASSIFIABLE]
    assert RemarkKind.FEW_SITES not in kinds(estimate(1, 30, None).remarks)
    for errors in (None, GOOD):
        headlines = [estimate(0, n, errors).remarks[0].kind for n in range(1, 6)]
        assert headlines == [RemarkKind.FEW_FOR_A_RATE] * 4 + [RemarkKind.RATE]


@pytest.mark.parametrize("errors", [None, GOOD])
def test_a_remark_bounds_the_rate_by_the_undecided(errors: ErrorCounts | None) -> None:
    """Undecided sites count as not llm; a remark has the rate if they were llm."""
    found, if_llm = estimate(6, 15, errors, undecided=1), estimate(7, 15, errors)
    assert facts(found.remarks, RemarkKind.UNDECIDED) == {"undecided": 1, "at_most": if_llm.rate}
    assert found.rate == estimate(6, 15, errors).rate


@pytest.mark.parametrize(
    ("llm", "n", "errors", "kind", "bound"),
    [
        (0, 1000, CanaryCounts(20, 18, 20, 18), RemarkKind.BELOW_FALSE_ALARMS, 0.136),
        (1000, 1000, CanaryCounts(20, 15, 20, 20), RemarkKind.ABOVE_FOUND, 0.727),
        (400, 5000, ErrorCounts(300, 290, 300, 250), RemarkKind.BELOW_FALSE_ALARMS, 0.169),
    ],
)
def test_counts_that_do_not_fit_the_errors_are_never_known_perfectly(
    llm: int, n: int, errors: ErrorCounts, kind: RemarkKind, bound: float
) -> None:
    """An interval outside [0, 1] does not become a point: it contains the plain one, with a remark."""
    found, plain = estimate(llm, n, errors), estimate(llm, n, None)
    assert found.rate in (0.0, 1.0)
    assert bounds(found)[0] <= bounds(plain)[0] and bounds(found)[2] >= bounds(plain)[2]
    assert bounds(found)[0] < bounds(found)[2]
    assert facts(found.remarks, kind) == {"called": llm / n, "bound": pytest.approx(bound, abs=5e-4)}


@given(st.integers(0, 500), st.integers(0, 500), error_counts())
def test_the_corrected_interval_holds_that_of_the_formula(x: int, more: int, errors: ErrorCounts) -> None:
    """The corrected interval contains the formula's, so coverage never falls; if the counts fit, they are equal."""
    assume(x + more > 0)
    known = known_of(errors)
    low, _, high = bounds(estimate(x, x + more, errors))
    formula = lang_reiczigel(x, x + more, known, Z95)
    assert low <= formula.low + 1e-12 and formula.high <= high + 1e-12
    if fits(x, x + more, known, Z95):
        assert (low, high) == pytest.approx((formula.low, formula.high))
    else:
        assert low < high


def test_undecided_sites_are_in_the_interval() -> None:
    """The uncorrected interval covers the case that all undecided sites are llm; measured errors already count them."""
    found, none, all_llm = estimate(6, 15, None, undecided=4), estimate(6, 15, None), estimate(10, 15, None)
    assert (found.rate, found.low, found.high) == (none.rate, none.low, all_llm.high)
    errors = ErrorCounts(llm_sites=40, llm_found=30, human_sites=40, human_cleared=39)
    assert estimate(6, 15, errors, undecided=4).high == estimate(6, 15, errors).high


def test_impossible_counts_are_refused() -> None:
    """Impossible counts of errors, and a confidence of 1 are refused."""
    with pytest.raises(BadParameters):
        estimate(1, 10, None, confidence=1.0)
    with pytest.raises(BadParameters):
        ErrorCounts(3, 4, 5, 5)


RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
Z95 = 1.959963984540054


def binomial(n: int, p: float) -> npt.NDArray[np.float64]:
    """P(X = x) for x = 0..n, by logarithms of factorials."""
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    x = np.arange(n + 1)
    likely: npt.NDArray[np.float64] = np.exp(
        factorial[n] - factorial[x] - factorial[n - x] + x * math.log(p) + (n - x) * math.log1p(-p)
    )
    return likely


@pytest.mark.parametrize("rate", RATES)
def test_the_uncorrected_interval_covers_exactly(rate: float) -> None:
    """Summed over every x, coverage at 95% is never below .949, for n from 1 to 120 and some up to 3,000."""
    for n in (*range(1, 121), 177, 300, 1000, 1854, 3000):
        likely = binomial(n, rate)
        covered = sum(
            likely[x]
            for x in range(n + 1)
            if likely[x] > 1e-12 and wilson(x, n, Z95).low <= rate <= wilson(x, n, Z95).high
        )
        assert covered >= 0.949, n


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize(
    ("se", "sp", "n1", "n0"), [(0.975, 0.98, 40, 76), (0.9, 0.95, 100, 100), (0.8, 0.999, 300, 300)]
)
def test_the_corrected_interval_covers(n: int, se: float, sp: float, n1: int, n0: int) -> None:
    """With Se and Sp measured anew each time, coverage is at least .94 for every rate from .01 to .5."""
    rng = np.random.default_rng(17)
    rounds = 3000
    for rate in RATES:
        drawn = zip(
            rng.binomial(n, rate * se + (1 - rate) * (1 - sp), rounds).tolist(),
            rng.binomial(n1, se, rounds).tolist(),
            rng.binomial(n0, sp, rounds).tolist(),
            strict=True,
        )
        found = [lang_reiczigel(x, n, Known(n1, a, n0, b), Z95) for x, a, b in drawn]
        assert np.mean([interval.low <= rate <= interval.high for interval in found]) >= 0.94, rate


@pytest.mark.parametrize(
    ("n", "n1", "n0", "coverage"), [(20, 20, 300, 0.9313), (20, 300, 20, 0.9313), (50, 100, 100, 0.9381)]
)
def test_where_the_corrected_interval_covers_less(n: int, n1: int, n0: int, coverage: float) -> None:
    """The docs' cases of low coverage: few sites, or a verdict nearly without errors.

    In each of them the interval is wider than 10% to either side.
    """
    se = sp = 0.999
    of_x, of_a, of_b = binomial(n, 0.5), binomial(n1, se), binomial(n0, sp)
    total = 0.0
    for a in np.flatnonzero(of_a > 1e-7).tolist():
        for b in np.flatnonzero(of_b > 1e-7).tolist():
            found = [lang_reiczigel(x, n, Known(n1, a, n0, b), Z95) for x in range(n + 1)]
            held = sum(of_x[x] for x, interval in enumerate(found) if interval.low <= 0.5 <= interval.high)
            total += of_a[a] * of_b[b] * held
    assert total == pytest.approx(coverage, abs=5e-5)
    low, _, high = bounds(estimate(n // 2, n, ErrorCounts(n1, n1, n0, n0)))
    assert high - low > 0.2


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (ErrorCounts(20, 0, 22, 22), "no better than chance (0 of 20 LLM and 0 of 22 human ones called llm)"),
        (ErrorCounts(20, 20, 22, 0), "no better than chance"),
        (ErrorCounts(20, 4, 20, 4), "no better than chance"),
        (ErrorCounts(20, 1, 22, 22), "do not show the site verdict to be better than chance (1 of 20 LLM"),
        (ErrorCounts(20, 11, 20, 11), "do not show"),
        (ErrorCounts(1, 1, 0, 0), "too few sites of known truth: at least 5 of each are needed"),
        (ErrorCounts(0, 0, 50, 50), "too few"),
        (ErrorCounts(4, 4, 50, 50), "too few"),
    ],
)
def test_a_useless_verdict_corrects_nothing(counts: ErrorCounts, said: str) -> None:
    """Error counts at chance, not clearly above it, or of hardly any site are refused."""
    with pytest.raises(BadParameters) as caught:
        estimate(21, 68, counts)
    assert said in str(caught.value)


def test_the_bound_of_youdens_index_by_hand() -> None:
    """Newcombe's method 11 for 56 of 70 against 48 of 80 gives the published lower bound .0428."""
    assert ErrorCounts(70, 56, 80, 32).youden_low == pytest.approx(0.0428, abs=1e-4)


@given(error_counts())
def test_what_corrects_is_beyond_chance_smoothed_or_not(errors: ErrorCounts) -> None:
    """Accepted counts give a divisor above 0, both as counted and as smoothed by the formula."""
    n1, n0 = errors.llm_sites, errors.human_sites
    assert errors.llm_found / n1 + errors.human_cleared / n0 > 1
    assert (errors.llm_found + 1) / (n1 + 2) + (errors.human_cleared + 1) / (n0 + 2) > 1
