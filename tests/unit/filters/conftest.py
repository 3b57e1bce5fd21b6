"""Fixtures of the filters' tests: pages with prose, keyed state without a log, and worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from stream.log.sql_state import MemoryState
from stream.processing.state import KeyedState
from tests.support.waiting import wait_until

SENTENCE = "The river rose slowly during the night and the people of the village moved their boats to higher ground. "


@pytest.fixture(scope="session")
def new_state() -> Callable[[], KeyedState]:
    """Makes a keyed state without a key."""
    return lambda: KeyedState(MemoryState())


@pytest.fixture(scope="session")
def article() -> str:
    """HTML with a title and four long paragraphs of English."""
    paragraphs = "".join(f"<p>{number}. {SENTENCE * 5}</p>" for number in range(4))
    return f"<html><body><article><h1>The river</h1>{paragraphs}</article></body></html>"


@pytest.fixture(scope="session")
def pool() -> Iterator[ExtractionPool]:
    """Two worker processes, shared by the tests that do not change their settings."""
    shared_pool = ExtractionPool(MeasureSettings(workers=2))
    wait_until(shared_pool.ready, "a worker process", 60)
    yield shared_pool
    shared_pool.close()
