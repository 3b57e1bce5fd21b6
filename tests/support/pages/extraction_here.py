"""Replaces MEASURE's worker processes: extraction in this process, once per page in a session of tests.

Settings that differ only in limits measure the tests' pages alike and share the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pytest
import xxhash

from filters.measure.page_measures import PageMeasures, RawPage, measure_raw
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings


class ExtractionHere:
    """The part of `ExtractionPool` that MEASURE uses, without a time limit, for the tests' own pages."""

    def __init__(self, settings: MeasureSettings) -> None:
        self._settings = settings

    def map(self, pages: Sequence[RawPage]) -> list[PageMeasures]:
        return [_measured(page, self._settings) for page in pages]

    def ready(self) -> bool:
        """Does nothing."""
        return True

    def close(self) -> None:
        """Does nothing."""


def extract_here(monkeypatch: pytest.MonkeyPatch, user: str = "filters.stages.measure") -> None:
    """Let every MEASURE stage of this test, or another user of worker processes, extract in this process."""
    monkeypatch.setattr(f"{user}.ExtractionPool", ExtractionHere)


@pytest.fixture(autouse=True, scope="module")
def extracted_here() -> Iterator[None]:
    """For the conftest.py of a folder, all of whose MEASURE stages extract in the process of the test."""
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        yield


def remember_extraction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extract in worker processes and cache the results."""
    monkeypatch.setattr("filters.stages.measure.ExtractionPool", _RememberingPool)


class _RememberingPool(ExtractionPool):
    def map(self, pages: Sequence[RawPage]) -> list[PageMeasures]:
        found = super().map(pages)
        _known.update({_key(page, self._settings): one for page, one in zip(pages, found, strict=True)})
        return found


_Key = tuple[str, str, bytes, MeasureSettings]
_known: dict[_Key, PageMeasures] = {}
_LIMITS = MeasureSettings()


def _measured(page: RawPage, settings: MeasureSettings) -> PageMeasures:
    key = _key(page, settings)
    if key not in _known:
        _known[key] = measure_raw(page, settings)
    return _known[key]


def _key(page: RawPage, settings: MeasureSettings) -> _Key:
    alike = msgspec.structs.replace(
        settings, max_elements=_LIMITS.max_elements, time_limit_s=_LIMITS.time_limit_s, workers=_LIMITS.workers
    )
    return page.url, page.encoding, xxhash.xxh3_128_digest(page.body), alike
