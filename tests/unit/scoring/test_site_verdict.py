"""The sequential test: Wald's bounds, order, minimum pages, and error rates by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import BadParameters
from scoring.site_verdict import LITE_NGRAM_PARAMS, SiteTest, SprtParams, params_for

FLAGS = st.lists(st.booleans(), max_size=60)
DEFAULT = SiteTest(SprtParams())
LITE = SiteTest(LITE_NGRAM_PARAMS)


def test_four_flags_decide_llm_and_five_clear_pages_human() -> None:
    """With the defaults 4 flags in a row reach ln(980) = 6.89, 5 clear pages reach ln(.02/.999) = -3.91."""
    llm = DEFAULT.decide([True] * 10)
    assert (llm.verdict, llm.pages_used, llm.flagged, llm.pages) == ("llm", 4, 4, 10)
    assert math.isclose(llm.llr, 4 * math.log(6.5))
    human = DEFAULT.decide([False] * 10)
    assert (human.verdict, human.pages_used) == ("human", 5)
    assert math.isclose(human.llr, 5 * math.log(0.35 / 0.9))


def test_built_in_detector_wants_eight_pages() -> None:
    """With the built-in detector's parameters no verdict falls before page 8, and 7 flags do not classify."""
    assert LITE.decide([True] * 7).verdict == "unclassifiable"
    assert LITE.decide([True] * 8).verdict == "llm"
    assert LITE.decide([False] * 20).pages_used == 8


def test_a_bound_that_was_left_again_does_not_decide() -> None:
    """Before min_pages a crossing does not count: the sum at min_pages does."""
    early = SiteTest(SprtParams(min_pages=10))
    flags = [False] * 5 + [True] * 5
    assert DEFAULT.decide(flags).verdict == "human"
    assert early.decide(flags).verdict == "undecided"


def test_mixed_flags_stay_undecided() -> None:
    """Pages that end between the bounds leave the site undecided, with every page used."""
    found = DEFAULT.decide([True, False, False] * 2)
    assert (found.verdict, found.pages_used) == ("undecided", 6)


@pytest.mark.parametrize("flags", [[], [True], [True] * 3])
def test_too_few_scores_are_unclassifiable(flags: list[bool]) -> None:
    """Fewer usable scores than min_articles: unclassifiable, whatever they say."""
    found = DEFAULT.decide(flags)
    assert (found.verdict, found.pages_used, found.pages) == ("unclassifiable", len(flags), len(flags))


@given(FLAGS, FLAGS)
def test_later_pages_never_change_a_decision(flags: list[bool], more: list[bool]) -> None:
    """Once decided, more flags change nothing but the number of pages there were."""
    first, second = DEFAULT.decide(flags), DEFAULT.decide(flags + more)
    if first.verdict in ("llm", "human"):
        assert (second.verdict, second.pages_used, second.llr) == (first.verdict, first.pages_used, first.llr)


@given(FLAGS)
def test_a_verdict_agrees_with_its_ratio(flags: list[bool]) -> None:
    """Each verdict lies on its side of the bounds, and its ratio follows from its counts."""
    for test in (DEFAULT, LITE):
        found = test.decide(flags)
        clear = found.pages_used - found.flagged
        assert math.isclose(found.llr, found.flagged * test.flag_step + clear * test.clear_step, abs_tol=1e-9)
        assert (found.verdict == "llm") <= (found.llr >= test.upper)
        assert (found.verdict == "human") <= (found.llr <= test.lower)
        assert (found.verdict == "undecided") <= (test.lower < found.llr < test.upper)
        assert test.evidence(found)


def test_clip_bounds_what_one_page_says() -> None:
    """With a p0 near 0 a flag would say 6.5 nats; clipped it says 3, so one or two flags do not decide."""
    sharp = SprtParams(p0=0.001, p1=0.65, min_articles=1)
    assert SiteTest(sharp).flag_step == 3.0
    assert SiteTest(sharp).decide([True, True]).verdict == "undecided"
    wide = SiteTest(SprtParams(p0=0.001, p1=0.65, min_articles=1, clip=10.0))
    assert wide.decide([True, True]).verdict == "llm"


@pytest.mark.parametrize("params", [SprtParams(), LITE_NGRAM_PARAMS])
def test_error_rates_hold_by_simulation(params: SprtParams) -> None:
    """On independent pages at p0 and p1 wrong verdicts stay within Wald's bounds of alpha and beta."""
    rng = np.random.default_rng(20261121)
    test = SiteTest(params)
    sites = 3000
    human = [test.decide(row).verdict for row in (rng.random((sites, 60)) < params.p0).tolist()]
    llm = [test.decide(row).verdict for row in (rng.random((sites, 60)) < params.p1).tolist()]
    assert human.count("llm") <= 3 + 3 * math.sqrt(3) + 1  # expected at most 3 of 3,000
    assert llm.count("human") / sites <= params.beta / (1 - params.alpha) + 3 * math.sqrt(params.beta / sites)
    assert human.count("human") > 0.97 * sites
    assert llm.count("llm") > 0.95 * sites


@pytest.mark.parametrize(
    "wrong",
    [
        {"p0": 0.7, "p1": 0.6},
        {"p0": 0.0},
        {"p1": 1.0},
        {"alpha": 0.0},
        {"beta": 0.6},
        {"clip": 0.0},
        {"min_pages": 0},
        {"min_articles": 0},
        {"p0": math.nan},
    ],
)
def test_parameters_that_make_no_test_are_refused(wrong: dict[str, float]) -> None:
    """Parameters without a test raise BadParameters."""
    with pytest.raises(BadParameters):
        SprtParams(**wrong)  # type: ignore[arg-type]


def test_parameters_belong_to_the_detector() -> None:
    """The built-in detector's identity gets its own parameters, any other the defaults."""
    assert params_for("lite-ngram/0a1b2c3d/p0.95") == LITE_NGRAM_PARAMS
    assert params_for("lite-ngram") == LITE_NGRAM_PARAMS
    assert params_for("binoculars/falcon-7b/0.9015") == SprtParams()


def test_real_scores_as_measured(shared: object) -> None:
    """On 69 real sites scored by Binoculars, in file order, every LLM site is found and no human site is flagged."""
    import csv
    from pathlib import Path

    assert isinstance(shared, Path)
    flags: dict[tuple[str, str], list[bool]] = {}
    with (shared / "data/scores/page_scores.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            site = flags.setdefault((row["site"], row["generated"]), [])
            site.append(float(row["binoculars"]) < 0.9015310749276843)
    verdicts = {key: DEFAULT.decide(site).verdict for key, site in flags.items()}
    assert len(verdicts) == 69
    assert [verdict for (_, generated), verdict in verdicts.items() if generated == "1"].count("human") == 0
    assert [verdict for (_, generated), verdict in verdicts.items() if generated == "0"].count("llm") <= 1
