"""The paths of the checkout, its documents and the labelled test data."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DATA_ENV = "FARMWATCH_TEST_DATA"


def data_root() -> Path:
    """The folder with `data/` and `golden/`: FARMWATCH_TEST_DATA, or else `shared` next to the checkout."""
    return Path(os.environ.get(DATA_ENV, ROOT.parent / "shared"))
