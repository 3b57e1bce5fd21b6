"""The contract suite runs against every log: `world` is one of them, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.support.worlds import KINDS, KafkaWorld, World

if TYPE_CHECKING:
    from stream.kafka.log import KafkaLog
    from tests.support.kafka_broker import Broker

LOGS = ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=LOGS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with closing(KINDS[request.param](tmp_path)) as made:
        yield made


@pytest.fixture
def kafka_world(tmp_path: Path) -> Iterator[KafkaWorld]:
    with closing(KafkaWorld(tmp_path)) as world:
        yield world


@pytest.fixture
def kafka_log(kafka_world: KafkaWorld) -> KafkaLog:
    """A fresh log on Kafka with its local state in `state-0` of `tmp_path`."""
    return cast("KafkaLog", kafka_world.log)


@pytest.fixture
def one_broker() -> Broker:
    """A running broker that a test may kill and damage."""
    from tests.support.kafka_broker import own_broker

    return own_broker()
