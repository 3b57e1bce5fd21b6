"""MEASURE extracts in the process of the test: its worker processes have their own tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.pages.extraction_here import extract_here


@pytest.fixture(autouse=True, scope="module")
def _extract_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        yield
