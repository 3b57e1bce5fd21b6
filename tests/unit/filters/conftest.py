"""Fixtures of the filters' tests: pages with prose in them, keyed state over nothing, and worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from stream.processing.state import KeyedState

SENTENCE = "The river rose slowly during the night and the people of the village moved their boats to higher ground. "


class Nothing:
    """Committed state without a key."""

    # the protocol describes its methods

    def get(self, key: bytes) -> bytes | None:
        return None

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> list[tuple[bytes, bytes]]:
        return []

    def due(self, now_ms: int, limit: int) -> list[tuple[bytes, bytes, int]]:
        return []

    def next_due(self) -> int | None:
        return None


@pytest.fixture(scope="session")
def new_state() -> Callable[[], KeyedState]:
    """Makes a keyed state without a key."""
    return lambda: KeyedState(Nothing())


@pytest.fixture(scope="session")
def article() -> str:
    """HTML with a title and four long paragraphs of English."""
    paragraphs = "".join(f"<p>{number}. {SENTENCE * 5}</p>" for number in range(4))
    return f"<html><body><article><h1>The river</h1>{paragraphs}</article></body></html>"


@pytest.fixture(scope="session")
def pool() -> Iterator[ExtractionPool]:
    """Two worker processes, ready, shared by the tests that break none of their settings."""
    shared_pool = ExtractionPool(MeasureSettings(workers=2))
    deadline = time.monotonic() + 60
    while not shared_pool.ready() and time.monotonic() < deadline:
        time.sleep(0.02)
    yield shared_pool
    shared_pool.close()
