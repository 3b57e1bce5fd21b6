"""The method `sprt`: Wald's bounds, closing and corrections, and error rates by simulation."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scoring.errors import BadParameters, NoSiteTest
from scoring.interface import PageScore
from scoring.sites.sprt import (
    LITE_CAREFUL_PARAMS,
    LITE_NGRAM_PARAMS,
    LOW_FPR_PARAMS,
    SiteTest,
    SprtParams,
    fewest_pages,
    params_for,
)
from tests.support.real_sites import CAREFUL_WORLD, LITE_WORLDS, beta_binomial, of_flags, run_sites

FLAGS = st.lists(st.booleans(), max_size=60)
DEFAULT = SiteTest(SprtParams())
LITE = SiteTest(LITE_NGRAM_PARAMS)
PAIR = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512"


@pytest.mark.parametrize(
    ("flags", "verdict", "sentence"),
    [
        ([], "unclassifiable", "0 usable scores, at least 5 are needed"),
        ([True], "unclassifiable", "1 usable score, at least 5 are needed"),
        ([True] * 3, "unclassifiable", "3 usable scores, at least 5 are needed"),
        ([True] * 10, "llm", "6 of the first 6 of 10 scored articles are flagged; {} +7.07, at or above 6.89"),
        (
            [None, *[False] * 6],
            "human",
            "0 of the first 5 of 6 scored articles are flagged; {} -4.13, at or below -3.91",
        ),
        (
            [True, False, False] * 2,
            "undecided",
            "2 of the first 6 of 6 scored articles are flagged; {} -0.95, between -3.91 and 6.89: not decided",
        ),
    ],
)
def test_a_verdict_and_its_sentence(flags: list[bool | None], verdict: str, sentence: str) -> None:
    """Six flags reach ln(980) = 6.89, five clear pages ln(.02/.999) = -3.91; a page without a flag is skipped."""
    found = DEFAULT.decide([PageScore(flag, 0.5) for flag in flags])
    assert found.verdict == verdict
    assert DEFAULT.evidence(found) == sentence.format("log-likelihood ratio")


def test_a_bound_that_was_left_again_does_not_decide() -> None:
    """A crossing before min_pages does not count; the sum at min_pages does."""
    pages = of_flags([False] * 5 + [True] * 5)
    assert DEFAULT.decide(pages).verdict == "human"
    assert SiteTest(SprtParams(min_pages=10)).decide(pages).verdict == "undecided"


@pytest.mark.parametrize(("pages", "a"), [(2, 0.1), (3, 1 / 28), (4, 1 / 82)])
def test_a_sum_that_meets_a_bound_decides(pages: int, a: float) -> None:
    """With p1 = 3 p0 the bound is a multiple of ln 3: rounding of logarithms does not change the verdict."""
    params = SprtParams(p0=0.2, p1=0.6, alpha=a, beta=a, min_articles=1)
    assert fewest_pages(params).llm == pages
    found = [SiteTest(params).decide(of_flags([True] * number)) for number in (pages - 1, pages)]
    assert [verdict.verdict for verdict in found] == ["undecided", "llm"]


def timed(flags: list[bool], start: int = 1) -> list[PageScore]:
    """Pages fetched one after the other from `start` (ms)."""
    return [PageScore(flag, None, start + place) for place, flag in enumerate(flags)]


@given(FLAGS, FLAGS)
def test_pages_after_the_closing_never_change_a_decision(flags: list[bool], more: list[bool]) -> None:
    """A page fetched more than close_after_ms after the deciding page changes nothing."""
    test = SiteTest(SprtParams(), close_after_ms=1000)
    first = test.decide(timed(flags))
    second = test.decide(timed(flags) + timed(more, start=2000))
    if first.verdict in ("llm", "human"):
        assert second == msgspec.structs.replace(first, closed=bool(more))


@given(FLAGS, FLAGS)
def test_before_the_closing_only_the_other_bound_changes_a_decision(flags: list[bool], more: list[bool]) -> None:
    """Before the closing, more pages keep a decision or reverse it; the earlier verdict stays beside a reversed one."""
    first, second = DEFAULT.decide(timed(flags)), DEFAULT.decide(timed(flags + more))
    if first.verdict not in ("llm", "human"):
        return
    assert second.verdict in ("llm", "human")
    assert second.decided_at == first.decided_at > 0
    if second.verdict == first.verdict and second.pages_used == first.pages_used:
        assert (second.llr, second.flagged, second.before) == (first.llr, first.flagged, first.before)
    else:
        assert second.pages_used > first.pages_used and second.before in ("llm", "human")


def test_a_correction_says_what_it_corrects() -> None:
    """A site called human after 5 clear pages and then always flagged becomes llm at the upper bound."""
    found = DEFAULT.decide(timed([False] * 5 + [True] * 15))
    assert (found.verdict, found.pages_used, found.before, found.before_pages) == ("llm", 15, "human", 5)
    assert found.decided_at == 5
    assert DEFAULT.evidence(found).endswith("+7.65, at or above 6.89; corrected: human after the first 5")


def test_a_site_closes_with_the_page_that_decides_where_nothing_may_correct_it() -> None:
    """With close_after_ms = 0 the first decision is final; without one, or with unknown times, a site never closes."""
    flags = [False] * 5 + [True] * 15
    at_once = SiteTest(SprtParams(), close_after_ms=0)
    found = at_once.decide(timed(flags))
    assert (found.verdict, found.pages_used, found.pages) == ("human", 5, 5)
    assert DEFAULT.decide(timed(flags)).verdict == at_once.decide(of_flags(flags)).verdict == "llm"


@given(FLAGS, st.sampled_from([DEFAULT, LITE]))
def test_a_verdict_agrees_with_its_ratio(flags: list[bool], test: SiteTest) -> None:
    """Each verdict lies on its side of the bounds, and its ratio follows from its counts."""
    found = test.decide(of_flags(flags))
    clear = found.pages_used - found.flagged
    flagged_step, clear_step = test.steps
    assert math.isclose(found.llr, found.flagged * flagged_step + clear * clear_step, abs_tol=1e-9)
    lower, upper = test.bounds
    assert (found.verdict == "llm") <= (found.llr >= upper)
    assert (found.verdict == "human") <= (found.llr <= lower)
    assert (found.verdict == "undecided") <= (lower < found.llr < upper)


RATES = st.floats(0.001, 0.999)


@given(RATES, RATES, st.floats(0.1, 10.0))
@example(0.30, 0.98, 3.0)  # the clear step alone would be clipped
@example(0.02, 0.70, 3.0)  # and here the flag's step
def test_a_page_that_is_clipped_keeps_to_the_condition_on_the_errors(one: float, other: float, clip: float) -> None:
    """exp(step) of a human page and exp(-step) of an LLM page have a mean of at most 1, and no step exceeds clip."""
    assume(abs(one - other) > 1e-6)
    p0, p1 = sorted((one, other))
    flag, clear = SiteTest(SprtParams(p0=p0, p1=p1, clip=clip)).steps
    assert p0 * math.exp(flag) + (1 - p0) * math.exp(clear) <= 1 + 1e-9
    assert p1 * math.exp(-flag) + (1 - p1) * math.exp(-clear) <= 1 + 1e-9
    assert -clip * (1 + 1e-12) <= clear < 0 < flag <= clip * (1 + 1e-12)
    if math.log(p1 / p0) <= clip and math.log((1 - p0) / (1 - p1)) <= clip:
        assert (flag, clear) == (math.log(p1 / p0), math.log((1 - p1) / (1 - p0)))


@pytest.mark.slow
@pytest.mark.parametrize("params", [SprtParams(), LITE_NGRAM_PARAMS])
def test_error_rates_hold_by_simulation(params: SprtParams) -> None:
    """On independent pages at p0 and p1, wrong verdicts stay within alpha and beta, corrections included."""
    rng = np.random.default_rng(20261121)
    test = SiteTest(params)
    sites = 1000
    human = [test.decide(of_flags(row)).verdict for row in (rng.random((sites, 150)) < params.p0).tolist()]
    llm = [test.decide(of_flags(row)).verdict for row in (rng.random((sites, 150)) < params.p1).tolist()]
    assert human.count("llm") <= 1 + 3 * math.sqrt(1) + 1  # expected at most 1 of 1,000
    assert llm.count("human") / sites <= params.beta / (1 - params.alpha) + 3 * math.sqrt(params.beta / sites)
    assert human.count("human") > 0.97 * sites
    assert llm.count("llm") > 0.95 * sites


@pytest.mark.slow
@pytest.mark.parametrize("budget", [20, 40])
@pytest.mark.parametrize("close_after_ms", [0, None])
@pytest.mark.parametrize(
    ("params", "world"), [(LITE_NGRAM_PARAMS, LITE_WORLDS[0][1:]), (LITE_CAREFUL_PARAMS, CAREFUL_WORLD)]
)
def test_the_built_in_detector_s_errors_hold_where_sites_scatter(
    params: SprtParams, world: tuple[tuple[float, float], tuple[float, float]], budget: int, close_after_ms: int | None
) -> None:
    """Where sites scatter more than those measured, and their pages correlate, errors are within alpha and beta.

    4 of 4,000 human sites are expected at alpha, and three standard errors are allowed beyond that.
    """
    sites, test, (human, llm) = 4_000, SiteTest(params, close_after_ms), world
    alpha = params.alpha * sites
    assert run_sites(test, beta_binomial(*human, budget), sites).verdicts["llm"] <= alpha + 3 * math.sqrt(alpha)
    assert run_sites(test, beta_binomial(*llm, budget), sites).share("human") <= params.beta


@pytest.mark.parametrize(
    "wrong",
    [
        {"p0": 0.7, "p1": 0.6},
        {"p0": 0.0},
        {"p1": 1.0},
        {"alpha": 0.0},
        {"beta": 0.6},
        {"clip": 0.0},
        {"clip": math.inf},
        {"min_pages": 0},
        {"min_articles": 0},
        {"p0": math.nan},
    ],
)
def test_parameters_that_make_no_test_are_refused(wrong: dict[str, Any]) -> None:
    """Parameters without a valid test raise BadParameters."""
    with pytest.raises(BadParameters):
        SprtParams(**wrong)


def test_parameters_belong_to_the_detector() -> None:
    """lite-ngram has its own parameters, Binoculars those of its published threshold, others the defaults."""
    assert params_for("lite-ngram/0a1b2c3d/careful") == LITE_CAREFUL_PARAMS
    assert params_for("lite-ngram/0a1b2c3d/p0.95") == params_for("lite-ngram") == LITE_NGRAM_PARAMS
    assert params_for(f"{PAIR}/accuracy") == params_for("binoculars") == params_for("mine/1") == SprtParams()
    assert params_for(f"{PAIR}/low-fpr") == LOW_FPR_PARAMS


@pytest.mark.parametrize(
    "detector",
    [
        "fast-detectgpt",
        "fast-detectgpt/a+b@0a1b2c3d/float32/512/x-1",
        "binoculars/a+b@0a1b2c3d/float32/512/mine-1",
        "binoculars/a+b@0a1b2c3d/bfloat16/512/accuracy",
        PAIR.replace("bfloat16", "float32") + "/accuracy",
        PAIR.replace("/512", "/64") + "/accuracy",
        PAIR.replace("bfloat16", "float32"),
        "lite-ngram/0a1b2c3d/mine-01234567",
    ],
)
def test_an_unmeasured_detector_judges_no_sites(detector: str) -> None:
    """Without measured numbers there is no test."""
    with pytest.raises(NoSiteTest) as refused:
        params_for(detector)
    assert refused.value.facts["detector"] == detector
