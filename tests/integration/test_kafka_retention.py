"""What runs need on Kafka: limits are lifted from topics while they are named, and nothing is remembered elsewhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from stream.kafka.log import KafkaLog
from stream.log.contract import CleanupPolicy, Topic
from tests.support.worlds import KafkaWorld

pytestmark = pytest.mark.kafka
OWN = {"retention.ms": "86400000", "retention.bytes": "1000000"}
PAGES = Topic("pages", 2, retention_ms=86_400_000, retention_bytes=1_000_000)
CENTURY_MS = 100 * 365 * 86_400_000


@pytest.fixture
def log(kafka_log: KafkaLog) -> KafkaLog:
    """A log with topics of all kinds."""
    kafka_log.create([PAGES, Topic("for-ever", 2), Topic("newest", 2, CleanupPolicy.COMPACT)])
    return kafka_log


def limits(log: KafkaLog, topic: str) -> dict[str, str]:
    (found,) = log._site.admin.topic_settings([log._site.full(topic)], list(OWN)).values()
    return found


def test_a_needed_topic_has_no_limit_until_it_is_not_named(log: KafkaLog, kafka_world: KafkaWorld) -> None:
    """While it is named the broker removes nothing, after any number of calls; another process restores the limits."""
    log.expire(0, {"pages": [0, 0]})
    held = limits(log, "pages")
    assert int(held["retention.ms"]) > CENTURY_MS
    assert int(held["retention.bytes"]) > 1 << 50
    kafka_world.again().expire(0, {"pages": [5, 0]})
    assert limits(log, "pages") == held
    kafka_world.again().expire(0)
    assert limits(log, "pages") == OWN
    log.expire(0)
    assert limits(log, "pages") == OWN


def test_limits_that_the_operator_changes_meanwhile_count(log: KafkaLog) -> None:
    """A limit set while the topic is held is lifted by the next call, and given back in the end."""
    log.expire(0, {"pages": [0, 0]})
    log._site.admin.set_topic_settings({log._site.full("pages"): {"retention.ms": "5000"}})
    log.expire(0, {"pages": [0, 0]})
    assert int(limits(log, "pages")["retention.ms"]) > CENTURY_MS
    log.expire(0)
    assert limits(log, "pages") == {**OWN, "retention.ms": "5000"}


def test_topics_without_a_limit_and_compacted_ones_stay_as_they_are(log: KafkaLog) -> None:
    """There is nothing to lift: their settings are the same before, while and after."""
    before = {topic: limits(log, topic) for topic in ("for-ever", "newest")}
    for needed in ({"for-ever": [0, 0], "newest": [0, 0]}, {}):
        log.expire(0, needed)
        assert {topic: limits(log, topic) for topic in before} == before


def test_other_farmwatches_of_the_broker_are_left_alone(log: KafkaLog, tmp_path: Path) -> None:
    """Another prefix neither lifts nor gives back."""
    with closing(KafkaWorld(tmp_path / "other")) as world:
        other = cast(KafkaLog, world.log)
        other.create([PAGES])
        log.expire(0, {"pages": [0, 0]})
        assert limits(other, "pages") == OWN
        held = limits(log, "pages")
        other.expire(0)
    assert limits(log, "pages") == held


def test_check_sees_through_what_is_held(log: KafkaLog) -> None:
    """For the doctor a held topic has the limits that are its own, and a wrong one is reported."""
    log.expire(0, {"pages": [0, 0]})
    assert [told for _, right, told in log.check([PAGES]) if not right] == []
    wrong = log.check([Topic("pages", 2, retention_ms=1, retention_bytes=1_000_000)])
    (told,) = [told for _, right, told in wrong if not right]
    assert "retention.ms is 86400000, should be 1" in told
