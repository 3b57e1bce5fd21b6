"""A stand-in for MEASURE's worker processes: extraction in this process, once for each page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from filters.measuring import Measured, RawPage, measure_raw
from filters.settings import MeasureSettings


class ExtractionHere:
    """What MEASURE needs of an `ExtractionPool`. Nothing bounds a page's time: for pages of the tests' own."""

    def __init__(self, settings: MeasureSettings) -> None:
        """`settings` as of the pool."""
        self._settings = settings

    def map(self, pages: Sequence[RawPage]) -> list[Measured]:
        """Measure pages, one after the other."""
        return [_measured(page, self._settings) for page in pages]

    def ready(self) -> bool:
        """There is nothing to wait for."""
        return True

    def close(self) -> None:
        """There is nothing to end."""


def extract_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every MEASURE stage of this test extract in this process."""
    monkeypatch.setattr("filters.measure_stage.ExtractionPool", ExtractionHere)


@cache
def _measured(page: RawPage, settings: MeasureSettings) -> Measured:
    return measure_raw(page, settings)
