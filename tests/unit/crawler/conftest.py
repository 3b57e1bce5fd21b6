"""The web on loopback that tests of the crawler share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.loopback import Web


@pytest.fixture
def loopback() -> Iterator[Web]:
    """A web on loopback, empty at first."""
    with Web() as served:
        yield served
