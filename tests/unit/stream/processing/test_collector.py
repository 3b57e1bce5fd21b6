"""How often Python's cyclic collector runs where a loop does."""

from __future__ import annotations

import gc

import pytest

from stream.processing.loop import collect_rarely


@pytest.mark.parametrize(("set_by_user", "then"), [(700, 10_000), (10_000, 10_000), (50_000, 50_000), (0, 0)])
def test_only_a_collector_that_runs_often_is_slowed(set_by_user: int, then: int) -> None:
    """Python's own number is raised; a user who has set a higher one, or switched the collector off, is obeyed."""
    before = gc.get_threshold()
    try:
        gc.set_threshold(set_by_user, 11, 12)
        collect_rarely()
        assert gc.get_threshold() == (then, 11, 12)
    finally:
        gc.set_threshold(*before)
