"""The contract suite runs against every log: `world` is one of them, fresh for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.worlds import KINDS, World

LOGS = ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=LOGS)
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], World]]:
    """A maker of fresh logs of one kind, each with topics, groups and files of its own; closes them."""
    made: list[World] = []

    def make() -> World:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(KINDS[request.param](folder))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_log: Callable[[], World]) -> World:
    return make_log()
