"""The fit of an additive model: what it finds, what it never sees, what it refuses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lab.articles import additive
from lab.articles.additive import BINS, FOLDS, UNKNOWN, Floats, fit, fold_of, out_of_fold
from scoring.calibration.labelled_scores import auroc
from scoring.errors import TooFewLabels
from scoring.statistics.logistic import logistic

NAMES = ("step", "valley", "noise")


@pytest.fixture(autouse=True)
def short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer and larger steps show what is claimed here, in less time."""
    monkeypatch.setattr(additive, "FITS", 1)
    monkeypatch.setattr(additive, "STUMPS", 100)
    monkeypatch.setattr(additive, "RATE", 0.15)


def made(pages: int = 1500) -> tuple[Floats, list[str]]:
    """Pages whose logit of an article is a step of one input plus a valley of another."""
    rng = np.random.default_rng(1)
    matrix = rng.random((pages, 3))
    logit = np.where(matrix[:, 0] > 0.5, 2.0, -2.0) + np.where(abs(matrix[:, 1] - 0.5) < 0.25, -1.5, 1.5)
    is_article = rng.random(pages) < 1 / (1 + np.exp(-logit))
    return matrix, ["article" if is_one else "other" for is_one in is_article]


def test_a_known_additive_function_is_recovered() -> None:
    """Steps have the signs and most of the size of the true ones, 4 and 3; an input without influence has little."""
    matrix, kinds = made()
    model = fit(matrix, NAMES, kinds, np.ones(len(matrix)))
    points = np.array([[0.2, 0.5, 0.5], [0.8, 0.5, 0.5], [0.2, 0.1, 0.5], [0.2, 0.9, 0.5], [0.2, 0.5, 0.1]])
    base, step, left, right, noise = model.logits(points, NAMES)[:, 0]
    assert 2 < step - base < 5
    assert 1.5 < left - base < 4 and 1.5 < right - base < 4
    assert abs(noise - base) < 0.6
    effects = {name: abs(part[:, 0]).mean() for name, part in model.parts(matrix, NAMES).items()}
    assert effects["step"] > effects["valley"] > 3 * effects.get("noise", 0)


def test_the_mean_of_each_step_function_is_zero() -> None:
    """So a step says how a page differs from the usual one; rounding leaves less than a thousandth."""
    matrix, kinds = made(400)
    weights = np.linspace(0.1, 1, 400)
    model = fit(matrix, NAMES, kinds, weights)
    for name, table in model.steps.items():
        places = np.searchsorted(table.at, matrix[:, NAMES.index(name)])
        means = weights @ np.array(table.values)[places] / weights.sum()
        assert abs(means).max() < 1e-3


def test_unknown_is_a_value_of_its_own() -> None:
    """Pages with an unknown value may be articles where those with low and with high values are not."""
    values = np.tile([UNKNOWN, 0.0, 0.0001, 5.0], 50)[:, None]
    kinds = ["article" if value == UNKNOWN else "other" for value in values[:, 0]]
    model = fit(values, ("x",), kinds, np.ones(200))
    unknown, zero, low, high = model.logits(values[:4], ("x",))[:, 0]
    assert unknown > 2 and max(zero, low, high) < -2


@pytest.mark.parametrize("distinct", [1, 2, BINS - 1, BINS, BINS + 1, 5000])
def test_any_number_of_values_fits_into_the_bins(distinct: int) -> None:
    """Edges rise, and there are fewer than BINS, also with unknown values."""
    values = np.concatenate([np.arange(distinct, dtype=float) ** 2, [UNKNOWN]])
    edges = additive._edges(values)
    assert len(edges) < BINS and all(low < high for low, high in pairwise(edges))
    assert np.searchsorted(edges, UNKNOWN) == 0 < np.searchsorted(edges, 0.0)


def test_a_group_is_in_one_fold_and_all_folds_are_used() -> None:
    """The fold of a group depends on the set of groups, not on the order or number of its pages."""
    groups = [f"site-{number % 20}" for number in range(100)]
    folds = fold_of(groups)
    by_group = {group: {int(fold) for of, fold in zip(groups, folds, strict=True) if of == group} for group in groups}
    assert all(len(found) == 1 for found in by_group.values()) and set(folds.tolist()) == set(range(FOLDS))
    assert fold_of(groups[::-1]).tolist() == folds[::-1].tolist()


def test_out_of_fold_predictions_know_nothing_of_the_group() -> None:
    """Where only the site tells the kind, a model that saw the site is right, and out-of-fold predictions are not."""
    rng = np.random.default_rng(2)
    site = np.repeat(np.arange(24), 20)
    is_article = (rng.permutation(24) < 12)[site]
    matrix = site[:, None].astype(float)
    kinds = ["article" if is_one else "other" for is_one in is_article]
    weights, names = np.ones(len(site)), ("site",)
    seen = fit(matrix, names, kinds, weights).logits(matrix, names)[:, 0]
    advanced: list[int] = []
    unseen = out_of_fold(matrix, names, kinds, weights, [str(number) for number in site], advanced.append)[:, 0]
    inside, outside = auroc(seen[~is_article], seen[is_article]), auroc(unseen[~is_article], unseen[is_article])
    assert inside is not None and outside is not None and inside > 0.9 > 0.7 > outside
    assert sum(advanced) == FOLDS


def test_a_kind_that_is_missing_in_a_part_has_finite_logits() -> None:
    """A kind with one page is never in the training of its own fold; its column stays."""
    matrix, kinds = made(200)
    kinds[7] = "rare"
    found = out_of_fold(matrix, NAMES, kinds, np.ones(200), [str(number) for number in range(200)])
    assert found.shape == (200, 3) and np.isfinite(found).all()


def test_the_last_bits_of_a_number_change_no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three inputs part the pages alike, with other bins: the same one is taken where a sum differs in its last bit."""
    monkeypatch.setattr(additive, "INPUT_SHARE", 1)
    rng = np.random.default_rng(1)
    half = rng.integers(0, 2, 400).astype(float)
    matrix = np.column_stack([half * 3 + rng.integers(0, 3, 400), half, half * 2, rng.random(400)])
    kinds = ["article" if is_one else "other" for is_one in rng.random(400) < np.where(half > 0, 0.8, 0.2)]
    weights, names = rng.random(400), ("bins", "half", "twice", "noise")
    found = fit(matrix, names, kinds, weights)

    def inexact(logit: Floats) -> Floats:
        return np.asarray(logistic(logit) * (1 + rng.choice([-(2.0**-52), 0, 2.0**-52], logit.shape)))

    monkeypatch.setattr(additive, "logistic", inexact)
    assert fit(matrix, names, kinds, weights) == found


def test_a_weight_of_nearly_nothing_teaches_nothing() -> None:
    """Pages of weight .001 with the opposite label leave the model's order as it is."""
    matrix, kinds = made(600)
    wrong = ["other" if kind == "article" else "article" for kind in kinds]
    weights = np.repeat([1.0, 0.001], 600)
    found = fit(np.vstack([matrix, matrix]), NAMES, [*kinds, *wrong], weights).logits(matrix, NAMES)[:, 0]
    is_article = np.array([kind == "article" for kind in kinds])
    area = auroc(found[~is_article], found[is_article])
    assert area is not None and area > 0.85


def test_pages_of_one_kind_and_pages_of_few_sites_are_refused() -> None:
    """There is nothing to tell apart, or nothing to test on."""
    matrix, kinds = made(20)
    with pytest.raises(TooFewLabels, match="all of one kind"):
        fit(matrix, NAMES, ["article"] * 20, np.ones(20))
    with pytest.raises(TooFewLabels, match="pages of 7 domains are too few"):
        out_of_fold(matrix, NAMES, kinds, np.ones(20), [str(number % 7) for number in range(20)])
