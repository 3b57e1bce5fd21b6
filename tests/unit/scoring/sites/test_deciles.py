"""The method `deciles`: features, numbers, training and messages."""

from __future__ import annotations

import json
import math
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.sites.training import LabelledSite, learn
from scoring.errors import BadSiteNumbers, NoDeciles
from scoring.interface import PageScore
from scoring.sites.deciles import PLACES, DecileNumbers, DecileTest, HeldOutErrors, deciles, load_deciles, read_numbers

FALCON = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
SHIPPED = resources.files("scoring.data").joinpath("deciles-binoculars.json").read_bytes()
SCORES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


MEDIAN = DecileNumbers(  # its margin is the negated median of the scores
    format="deciles-1",
    detector="fake",
    weights=[0.0] * 4 + [-1.0] + [0.0] * 4,
    centres=[0.0] * 9,
    scales=[1.0] * 9,
    offset=0.0,
    human_sites=1,
    llm_sites=1,
    pages=30,
    left_out=HeldOutErrors(1, 0, 1, 0),
)


def pages(scores: list[float], start: int = 1) -> list[PageScore]:
    """Pages fetched one ms after the other, flagged below 0."""
    return [PageScore(score < 0, score, place) for place, score in enumerate(scores, start)]


@given(SCORES)
def test_deciles_are_those_of_numpy(scores: list[float]) -> None:
    """For any scores in any order, the nine quantiles equal numpy's, with linear interpolation."""
    assert np.allclose(deciles(scores), np.quantile(scores, PLACES), rtol=1e-9, atol=1e-6)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=15, max_size=30))
def test_any_finite_scores_have_a_margin(scores: list[float]) -> None:
    """Scores far outside the training data give a finite margin and one of two verdicts."""
    found = DecileTest(load_deciles(FALCON)).decide(pages(scores))
    assert found.verdict in ("llm", "human") and math.isfinite(found.llr)


def test_it_says_nothing_before_15_scores() -> None:
    """Fourteen scores are unclassifiable; fifteen are judged by the sign of the margin."""
    test = DecileTest(MEDIAN)
    few = test.decide(pages([-1.0] * 14))
    assert (few.verdict, few.pages, few.decided_at) == ("unclassifiable", 14, 0)
    assert test.evidence(few) == "14 usable scores, at least 15 are needed"
    found = test.decide(pages([-1.0] * 15))
    assert (found.verdict, found.llr, found.pages_used, found.flagged, found.decided_at) == ("llm", 1.0, 15, 15, 15)
    assert found.method == "deciles"
    assert test.evidence(found) == "deciles of 15 scored articles; margin +1.00, above 0"
    assert test.decide(pages([1.0] * 15)).verdict == "human"
    assert test.decide(pages([0.0] * 15)).verdict == "human"


def test_later_pages_correct_until_the_site_closes() -> None:
    """Pages after the 15th change the deciles until the site closes, and the sentence says what changed."""
    site = pages([-1.0] * 15) + pages([1.0] * 20, start=1000)
    test = DecileTest(MEDIAN)
    found = test.decide(site)
    assert (found.verdict, found.before, found.before_pages, found.decided_at) == ("human", "llm", 15, 15)
    assert "corrected: llm after the first 15" in test.evidence(found)
    closed = DecileTest(MEDIAN, close_after_ms=500).decide(site)
    assert (closed.verdict, closed.pages, closed.before) == ("llm", 15, "")


def test_the_shipped_numbers_belong_to_falcon() -> None:
    """The shipped numbers load for Falcon at any threshold, separate clear sites, and are refused for others."""
    shipped = load_deciles(FALCON)
    assert (shipped.human_sites, shipped.llm_sites, shipped.left_out.human_wrong) == (45, 22, 0)
    test = DecileTest(shipped)
    assert test.decide(pages([0.86] * 15)).verdict == "llm"
    assert test.decide(pages([0.99] * 15)).verdict == "human"
    for detector, reason in (
        ("lite-ngram/0a1b2c3d/p0.95", "for binoculars/falcon"),
        (FALCON.replace("bfloat16", "float32"), "in bfloat16, not in float32"),
        (FALCON.replace("/512/", "/64/"), "512 tokens of a text, not on 64"),
    ):
        with pytest.raises(NoDeciles, match=reason) as refused:
            load_deciles(detector)
        assert refused.value.facts["detector"] == detector


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "deciles-2"}, "format"),
        ({"weights": [1.0] * 8}, "length >= 9.*weights"),
        ({"scales": [1.0] * 8 + [0.0]}, "scales"),
        ({"offset": None}, "offset"),
        ({"centres": "no"}, "centres"),
        ({"detector": ""}, "detector"),
        ({"more": 1}, "more"),
    ],
)
def test_a_broken_file_is_refused(change: dict[str, Any], said: str) -> None:
    """A wrong format, shape, scale, kind or field is one typed error that names the file and the fault."""
    data = json.dumps(json.loads(SHIPPED) | change).encode()
    with pytest.raises(BadSiteNumbers, match=f"numbers.json.*{said}"):
        read_numbers(data, "numbers.json")


@given(st.integers(0, len(SHIPPED) - 3), st.binary(max_size=4).filter(lambda tail: b"}" not in tail))
def test_a_damaged_file_never_raises_another_error(cut: int, tail: bytes) -> None:
    """A file cut anywhere, with any bytes appended that leave it invalid, is BadSiteNumbers."""
    with pytest.raises(BadSiteNumbers):
        read_numbers(SHIPPED[:cut] + tail, "numbers.json")


@pytest.mark.parametrize("literal", [b"NaN", b"1e999", b"-1e999"])
def test_numbers_that_are_not_finite_are_refused(literal: bytes) -> None:
    """Every spelling of infinity or not-a-number is refused."""
    data = SHIPPED.replace(json.dumps(json.loads(SHIPPED)["offset"]).encode(), literal)
    assert data != SHIPPED
    with pytest.raises(BadSiteNumbers):
        read_numbers(data, "numbers.json")


def test_what_is_no_file_of_numbers_is_refused_unread(tmp_path: Path) -> None:
    """A missing file, a folder, a pipe without a writer, and a gigabyte are refused."""
    pipe, vast = tmp_path / "pipe", tmp_path / "vast.json"
    os.mkfifo(pipe)
    with vast.open("wb") as file:
        file.truncate(1 << 30)  # a sparse file
    for path in (tmp_path / "absent.json", tmp_path, pipe, vast):
        with pytest.raises(BadSiteNumbers, match=f"{path.name} (is no regular file|cannot be read)"):
            load_deciles(FALCON, path)


def simulated_sites(gap: float, sites: int = 8) -> list[LabelledSite]:
    """Sites of 20 pages; scores of LLM sites are `gap` lower."""
    rng = np.random.default_rng(7)
    return [
        LabelledSite(f"{'llm' if llm else 'human'}-{place}", llm, rng.normal(1 - gap * llm, 0.05, 20).tolist())
        for llm in (False, True)
        for place in range(sites)
    ]


def test_training_tells_sites_apart_that_it_has_not_seen() -> None:
    """With separate kinds, no left-out site is wrong; with one distribution, many are."""
    pytest.importorskip("sklearn")
    apart = learn([*simulated_sites(0.4), LabelledSite("small", True, [0.6] * 14)], "fake/w@1/x")
    assert (apart.deciles.left_out, apart.wrong, apart.too_small) == (HeldOutErrors(8, 0, 8, 0), [], 1)
    assert apart.deciles.detector == "fake/w"
    assert apart.deciles.margin([0.6] * 15) > 0 > apart.deciles.margin([1.0] * 15)
    alike = learn(simulated_sites(0.0), "fake")
    assert len(alike.wrong) >= 4
    assert (apart.human_draws_wrong, apart.llm_draws_wrong) == (0, 0)
    assert 0.2 < alike.human_draws_wrong + alike.llm_draws_wrong < 2


def test_training_does_not_depend_on_last_digits() -> None:
    """Scores that differ by one in 10^12 give the same numbers, and so the same digest of the method.

    Rounding makes a difference improbable, not impossible: these scores lie away from its boundaries.
    """
    pytest.importorskip("sklearn")
    sites = simulated_sites(0.1)
    rng = np.random.default_rng(1)
    disturbed = [
        site._replace(scores=[score * (1 + rng.uniform(-1e-12, 1e-12)) for score in site.scores]) for site in sites
    ]
    assert learn(disturbed, "fake") == learn(sites, "fake") == learn(sites, "fake")
