"""Topics on Kafka: how they are configured, what `check` finds, and that large records pass."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.record import util

from stream.kafka.log import KafkaLog
from stream.kafka.settings import LOCAL_STATE_MAX_AGE_MS, KafkaSettings
from stream.log.contract import RECORD_CAP_BYTES, CleanupPolicy, Output, Topic
from stream.log.errors import StreamError
from stream.schema.topics import all_topics
from tests.support.kafka_broker import broker

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(tmp_path: Path) -> Iterator[KafkaLog]:
    made = KafkaLog(broker(), prefix=f"c{uuid.uuid4().hex[:10]}.", state_folder=tmp_path)
    yield made
    made.close()


def test_retention_and_compaction_are_set_on_the_topic(log: KafkaLog) -> None:
    """cleanup.policy, retention and the cap on a batch are on the broker as the topic says."""
    log.create(
        [
            Topic("kept", 1, retention_ms=86_400_000, retention_bytes=1 << 30),
            Topic("newest", 1, CleanupPolicy.COMPACT),
            Topic("for-ever", 1),
        ]
    )
    names = [log._site.full(name) for name in ("kept", "newest", "for-ever")]
    found = log._site.admin.topic_settings(names)
    kept, newest, for_ever = (found[name] for name in names)
    assert (for_ever["retention.ms"], for_ever["retention.bytes"]) == ("-1", "-1")  # not the broker's week
    assert (kept["cleanup.policy"], kept["retention.ms"]) == ("delete", "86400000")
    assert kept["retention.bytes"] == str(1 << 30)
    assert newest["cleanup.policy"] == "compact"
    assert int(newest["delete.retention.ms"]) > LOCAL_STATE_MAX_AGE_MS
    assert all(int(settings["max.message.bytes"]) > RECORD_CAP_BYTES for settings in (kept, newest))


def test_check_is_content_with_what_create_made(log: KafkaLog) -> None:
    """After create, every finding of the doctor is right, for all topics of farmwatch."""
    topics = all_topics(2, "e1")
    log.create(topics)
    findings = log.check(topics)
    assert [finding for finding in findings if not finding[1]] == []
    assert len(findings) >= len(topics) + 2


def test_check_names_what_is_wrong(log: KafkaLog) -> None:
    """A missing topic, another number of partitions and another setting are each told with what to do."""
    log.create([Topic("a", 2), Topic("b", 1, retention_ms=1000)])
    wanted = [Topic("a", 3), Topic("b", 1, retention_ms=2000), Topic("gone", 1)]
    findings = {what: (right, told) for what, right, told in log.check(wanted)}
    prefix = log._site.prefix
    assert findings[f"topic {prefix}a"] == (False, "2 partitions, configured are 3")
    right, told = findings[f"topic {prefix}b"]
    assert not right
    assert "retention.ms is 1000, should be 2000" in told
    assert findings[f"topic {prefix}gone"][0] is False


def test_check_of_a_broker_that_is_away(tmp_path: Path) -> None:
    """The doctor gets a finding, not an error, where nothing answers."""
    settings = KafkaSettings(request_timeout_s=1, connect_timeout_s=0.5)
    findings = KafkaLog("127.0.0.1:1", state_folder=tmp_path, settings=settings).check()
    assert [right for _, right, _ in findings] == [True, False]


def test_slow_crc32c_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the C implementation the log does not start, and says how to install it."""
    monkeypatch.setattr(util, "crc32c_c", None)
    with pytest.raises(StreamError, match=r"farmwatch\[kafka\]"):
        KafkaLog("127.0.0.1:1", state_folder=tmp_path)


@pytest.mark.parametrize("compressible", [True, False])
def test_several_records_at_the_cap_in_one_transaction(log: KafkaLog, compressible: bool) -> None:
    """Records of 4 MiB pass, whether they compress or not, and small ones beside them keep their order."""
    log.create([Topic("big", 1)])
    bodies = [(b"x" * RECORD_CAP_BYTES if compressible else os.urandom(RECORD_CAP_BYTES)) for _ in range(3)]
    values = [body for pair in zip(bodies, (b"1", b"2", b"3"), strict=True) for body in pair]
    log.append([Output("big", 0, b"k", value) for value in values])
    assert [message.value for message in log.read("big", 0)] == values
