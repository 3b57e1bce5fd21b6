"""How often Python's cyclic collector runs where a loop does."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from stream.processing.loop import collect_rarely


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Leave the collector of the tests' process as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("set_by_user", "then"), [(700, 10_000), (10_000, 10_000), (50_000, 50_000), (0, 0)])
def test_only_a_collector_that_runs_often_is_slowed(set_by_user: int, then: int) -> None:
    """Python's own number is raised; a user who has set a higher one, or switched the collector off, is obeyed."""
    gc.set_threshold(set_by_user, 11, 12)
    collect_rarely()
    assert gc.get_threshold()[0] == then


def test_cycles_are_still_collected() -> None:
    """Garbage in cycles does not pile up: of a hundred thousand lists that hold themselves, few are left."""
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100_000):
        knot: list[object] = []
        knot.append(knot)
    assert len(gc.get_objects()) - before < 20_000
