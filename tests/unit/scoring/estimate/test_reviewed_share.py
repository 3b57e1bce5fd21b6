"""The share from labelled sites: prediction-powered inference, checked by simulation and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.estimate.intervals import Interval
from scoring.estimate.reviewed_share import FEWEST_LABELS, reviewed_share
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

DRAWS = 400 if LONG else 120


def by_labels(likely: dict[str, float], labels: dict[str, bool]) -> Interval | None:
    """The share from probabilities of all sites and labels of some."""
    f = np.array(list(likely.values()))
    found = reviewed_share(f, np.array([labels.get(site, np.nan) for site in likely], float))
    return found and found.interval


def web(rng: np.random.Generator, sites: int, share: float, blind: float) -> tuple[dict[str, float], dict[str, bool]]:
    """Probabilities and truths of sites; this share of the LLM sites looks human."""
    is_llm = rng.random(sites) < share
    seen = is_llm & (rng.random(sites) >= blind)
    likely = np.clip(np.where(seen, 0.9, 0.05) + rng.normal(0, 0.05, sites), 0, 1)
    names = [f"s{n}" for n in range(sites)]
    return dict(zip(names, likely.tolist(), strict=True)), dict(zip(names, is_llm.tolist(), strict=True))


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("blind", [0.0, 0.6], ids=["right", "blind to most"])
def test_the_interval_covers_the_truth_whatever_the_detector_sees(share: float, blind: float) -> None:
    """With 100 labels of 800 sites, the interval covers in at least 92% of 120 draws, without bias.

    At 95%, it does so with a probability of .92; at 85%, of .01. FARMWATCH_LONG: in 94% of 400.
    """
    rng = np.random.default_rng(1)
    covered, errors = 0, []
    for _ in range(DRAWS):
        likely, truth = web(rng, 800, share, blind)
        labelled = {site: truth[site] for site in rng.choice(list(truth), 100, replace=False).tolist()}
        found = by_labels(likely, labelled)
        assert found is not None
        true = sum(truth.values()) / 800
        covered += found.low <= true <= found.high
        errors.append(found.point - true)
    assert covered >= (0.94 if LONG else 0.92) * DRAWS
    assert abs(np.mean(errors)) < 0.01


def test_good_probabilities_make_it_narrow_and_bad_ones_do_no_harm() -> None:
    """Right probabilities narrow the interval of labels alone; noise leaves it about the same."""
    rng = np.random.default_rng(2)
    likely, truth = web(rng, 2000, 0.3, 0.0)
    labelled = {site: truth[site] for site in rng.choice(list(truth), 100, replace=False).tolist()}
    noise = dict(zip(likely, rng.random(2000).tolist(), strict=True))
    good, bad, alone = (by_labels(f, labelled) for f in (likely, noise, dict.fromkeys(likely, 0.5)))
    assert good is not None and bad is not None and alone is not None
    widths = [found.high - found.low for found in (good, bad, alone)]
    assert widths[0] < 0.6 * widths[2] and widths[1] < 1.1 * widths[2]
    assert alone.point == pytest.approx(sum(labelled.values()) / 100)


def test_few_labels_give_no_share() -> None:
    """With fewer than FEWEST_LABELS labels there is no share; labels of other sites do not count."""
    likely = {f"s{n}": 0.5 for n in range(100)}
    labels = {f"s{n}": True for n in range(FEWEST_LABELS - 1)}
    assert by_labels(likely, labels) is None
    assert by_labels(likely, labels | {"elsewhere": True}) is None
    assert by_labels(likely, labels | {"s99": True}) is not None


def test_the_estimate_is_the_formula() -> None:
    """Power, estimate and bounds in [0, 1] equal the formula (Angelopoulos and others 2023)."""
    rng = np.random.default_rng(3)
    likely, truth = web(rng, 500, 0.2, 0.2)
    chosen = sorted(truth)[:60]
    found = by_labels(likely, {site: truth[site] for site in chosen})
    f, y = np.array([likely[site] for site in chosen]), np.array([truth[site] for site in chosen], float)
    every = np.array(list(likely.values()))
    others = np.array([likely[site] for site in truth if site not in chosen])
    power = np.cov(f, y)[0, 1] / ((1 + 60 / 440) * every.var(ddof=1))
    assert found is not None and 0 < power < 1
    assert found.point == pytest.approx(power * others.mean() + (y - power * f).mean())
    assert 0 <= found.low < found.point < found.high <= 1
