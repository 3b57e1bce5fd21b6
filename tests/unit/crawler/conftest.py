"""The web and the nameserver on loopback that tests of the crawler share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.web.loopback import Web
from tests.support.web.loopback_dns import LoopbackDns


@pytest.fixture
def loopback() -> Iterator[Web]:
    """A web on loopback, empty at first."""
    with Web() as served:
        yield served


@pytest.fixture
def dns() -> Iterator[LoopbackDns]:
    """A nameserver, without names at first."""
    with LoopbackDns() as served:
        yield served
