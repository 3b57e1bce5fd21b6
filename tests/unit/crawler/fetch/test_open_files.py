"""The limit of open files is raised to what the connections take."""

from __future__ import annotations

import resource

import pytest

from crawler.fetch.connections import room_for


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "set_to", "enough"),
    [
        (4096, 4096, 1000, None, True),
        (256, 4096, 1000, 1256, True),
        (256, resource.RLIM_INFINITY, 1000, 1256, True),
        (256, 1024, 1000, 1024, False),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 1000, None, True),
    ],
)
def test_the_limit_is_raised_as_far_as_it_goes(
    soft: int, hard: int, wanted: int, set_to: int | None, enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The soft limit grows to what is wanted, never beyond the hard one; what is too low is told."""
    done: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: done.append(limits))
    assert room_for(wanted) is enough
    assert done == ([] if set_to is None else [(set_to, hard)])
