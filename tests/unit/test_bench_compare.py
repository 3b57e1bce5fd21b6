"""A bench in two checkouts is told by the medians of its numbers."""

from __future__ import annotations

from tests.bench.compare import compared


def test_numbers_are_medians_with_their_ratio() -> None:
    """Lines with the same words are one figure; equal numbers are told once; a line that is new has no ratio."""
    before = ["12 pages, 2 ms\nrate .5, 3,000/s\ngone 1", "12 pages, 4 ms\nrate .5, 1,000/s\ngone 1"]
    after = ["12 pages, 1 ms\nrate .5, 4,000/s\nnew 3", "12 pages, 2 ms\nrate .5, 4,000/s\nnew 5"]
    assert compared(before, after) == ["12 pages, 3 -> 1.5 (0.50) ms", "rate 0.5, 2000 -> 4000 (2.00)/s", "new 4"]


def test_equal_lines_are_told_apart_by_their_order() -> None:
    """The second of two lines with the same words is compared with the second."""
    assert compared(["a 1\na 2"], ["a 1\na 4"]) == ["a 1", "a 2 -> 4 (2.00)"]
