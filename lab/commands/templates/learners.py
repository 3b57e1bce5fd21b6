"""The learners of the methods, from `scoring`."""

from __future__ import annotations

from lab.templates.learning import LEARNED, Learner, Method


def learner_of(method: Method) -> Learner | None:
    """The learner of a method; None if it needs none. Raises MissingExtra."""
    if method not in LEARNED:
        return None
    from lab.templates.nodes import check_installed, nearest_neighbours, random_forest

    check_installed()
    return random_forest if method is Method.T006 else nearest_neighbours
