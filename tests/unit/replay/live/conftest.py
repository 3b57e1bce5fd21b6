"""A fresh log for each test of cutovers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs.cutover_world import CutoverWorld, cutover_world


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A log with its topics, embedded unless the test names another kind."""
    with cutover_world(getattr(request, "param", "embedded"), tmp_path, monkeypatch) as made:
        yield made
