"""The extra `train`, which brings scikit-learn and torch."""

from __future__ import annotations

from importlib.util import find_spec

from stream.text.user_errors import MissingExtra


def require_sklearn() -> None:
    """Raises MissingExtra without scikit-learn, before any input is read."""
    if find_spec("sklearn") is None:
        raise MissingExtra("training needs scikit-learn", extra="train")
