"""The networks of whole numbers: they learn what a sum of inputs does not tell, and heed weights and samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from filters.extraction.learned.inputs import MOST
from filters.extraction.learned.model import HIDDEN_UNITS, INPUT_UNITS, WEIGHT_UNITS
from lab.extractor import networks
from lab.extractor.networks import fit_network

pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.usefixtures("needs_torch")]
ROWS = 400


@pytest.fixture(autouse=True)
def long_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows need more epochs."""
    monkeypatch.setattr(networks, "EPOCHS", 60)
    monkeypatch.setattr(networks, "BATCH", 64)


def logits(layers: Any, rows: np.ndarray) -> np.ndarray:
    """Logits by the rounded numbers, in units of 1."""
    values, unit = rows.astype(np.int64), INPUT_UNITS
    for place, (weights, bias) in enumerate(layers):
        sums = values @ weights.astype(np.int64) + bias
        if place == len(layers) - 1:
            return np.asarray(sums[:, 0] / (unit * WEIGHT_UNITS))
        values = np.clip(sums * HIDDEN_UNITS // (unit * WEIGHT_UNITS), 0, MOST)
        unit = HIDDEN_UNITS
    raise AssertionError


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Rows that belong to a class if exactly one of two inputs is high; a third one tells nothing."""
    rng = np.random.default_rng(0)
    high = rng.integers(0, 2, (ROWS, 2))
    rows = np.column_stack([high * 40 + rng.integers(0, 9, (ROWS, 2)), rng.integers(0, 127, ROWS)])
    return rows.astype(np.uint8), (high.sum(axis=1) == 1).astype(np.float32)


def test_either_or_is_learned() -> None:
    """The rounded numbers tell nearly all rows; a seed gives the same numbers again."""
    rows, labels = examples()
    ones = np.ones(len(rows), np.float32)
    found = fit_network(rows, labels, ones, ones, seed=1)
    assert ((logits(found, rows) > 0) == (labels > 0)).mean() > 0.95
    again = fit_network(rows, labels, ones, ones, seed=1)
    assert all((one[0] == other[0]).all() for one, other in zip(found, again, strict=True))


def test_rows_without_weight_and_rows_never_taken_change_little() -> None:
    """Wrong labels of half of the rows change little if they weigh nothing or are not sampled."""
    rows, labels = examples()
    is_wrong = np.arange(len(rows)) % 2 == 0
    given = np.where(is_wrong, 1 - labels, labels).astype(np.float32)
    right = (~is_wrong).astype(np.float32)
    ones = np.ones(len(rows), np.float32)
    for weights, taken in ((right, ones), (ones, right)):
        found = fit_network(rows, given, weights, taken, seed=1)
        assert ((logits(found, rows) > 0) == (labels > 0)).mean() > 0.9
