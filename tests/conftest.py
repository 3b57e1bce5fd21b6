"""Shared fixtures: where the labelled test data lies, and skips with a reason where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA_ENV = "FARMWATCH_TEST_DATA"


def data_root() -> Path:
    """The folder with `data/` and `golden/`: FARMWATCH_TEST_DATA, or else `shared` beside the checkout."""
    return Path(os.environ.get(DATA_ENV, Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The labelled test data; skips where it is absent, fails where FARMWATCH_REQUIRE_DATA is set (as in CI)."""
    root = data_root()
    if not (root / "data").is_dir():
        if os.environ.get("FARMWATCH_REQUIRE_DATA"):
            pytest.fail(f"test data is required here and missing: {root} (set {DATA_ENV})")
        pytest.skip(f"test data is not here: {root} (set {DATA_ENV})")
    return root
