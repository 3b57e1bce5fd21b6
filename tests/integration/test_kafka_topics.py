"""Topics, offsets and stores on Kafka: settings on the broker, limits that runs lift, findings, and removal."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import cast

import msgspec
import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic
from kafka.record import util
from kafka.structs import OffsetAndMetadata

from farmwatch.config.config import Config
from farmwatch.config.settings import LogSettings
from farmwatch.config.topic_limits import create_topics
from stream.kafka.client import AdminClient
from stream.kafka.log import KafkaLog
from stream.kafka.settings import LOCAL_STATE_MAX_AGE_MS, KafkaSettings
from stream.log.contract import RECORD_CAP_BYTES, At, CleanupPolicy, Commit, Output, StateChange, Topic
from stream.log.offsets import renew_offsets
from stream.schema import topics
from stream.schema.control import Control, exclusive
from stream.schema.runs import Alias, Run
from stream.schema.topics import CONTROL, RetentionSettings, all_topics
from stream.text.user_errors import MissingExtra
from tests.support.kafka_broker import Broker, broker
from tests.support.limits import with_limits
from tests.support.sizes import LONG
from tests.support.waiting import wait_until
from tests.support.worlds import KafkaWorld, settle

pytestmark = pytest.mark.kafka
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS
OWN = {"retention.ms": "86400000", "retention.bytes": "1000000"}
PAGES = Topic("pages", 2, retention_ms=86_400_000, retention_bytes=1_000_000)


def test_retention_and_compaction_are_set_on_the_topic(kafka_log: KafkaLog) -> None:
    """cleanup.policy, retention and the batch limit on the broker are those of the topic."""
    kafka_log.create(
        [
            Topic("kept", 1, retention_ms=86_400_000, retention_bytes=1 << 30),
            Topic("newest", 1, CleanupPolicy.COMPACT),
            Topic("for-ever", 1),
        ]
    )
    names = [kafka_log._site.full(name) for name in ("kept", "newest", "for-ever")]
    found = kafka_log._site.admin.topic_settings(names)
    kept, newest, for_ever = (found[name] for name in names)
    assert (for_ever["retention.ms"], for_ever["retention.bytes"]) == ("-1", "-1")  # not the broker's default of a week
    assert (kept["cleanup.policy"], kept["retention.ms"]) == ("delete", "86400000")
    assert kept["retention.bytes"] == str(1 << 30)
    assert newest["cleanup.policy"] == "compact"
    assert int(newest["delete.retention.ms"]) > LOCAL_STATE_MAX_AGE_MS
    assert all(int(settings["max.message.bytes"]) > RECORD_CAP_BYTES for settings in (kept, newest))


def test_check_is_content_with_what_create_made(kafka_log: KafkaLog) -> None:
    """After create, the doctor finds no fault in any topic of farmwatch."""
    created = all_topics(2, "e1")
    kafka_log.create(created)
    findings = kafka_log.check(created)
    assert [finding for finding in findings if not finding[1]] == []
    assert len(findings) >= len(created) + 2


def test_a_topic_held_for_a_run_takes_a_new_limit_and_stays_held(kafka_log: KafkaLog) -> None:
    """While a run needs a topic, nothing expires, whatever its new limit; later the new limit applies."""
    kafka_log.create([Topic("a", 1, retention_ms=2 * DAY_MS)])
    kafka_log.expire(0, {"a": [0]})
    kafka_log.set_limits([Topic("a", 1, retention_ms=DAY_MS, retention_bytes=1 << 30)])
    assert kafka_log.definitions()["a"] == Topic("a", 1, CleanupPolicy.DELETE, DAY_MS, 1 << 30)
    name = kafka_log._site.full("a")
    held = kafka_log._site.admin.topic_settings([name])[name]
    assert int(held["retention.ms"]) > YEAR_MS * 100
    kafka_log.expire(0)
    assert kafka_log._site.admin.topic_settings([name])[name]["retention.ms"] == str(DAY_MS)


def test_a_start_changes_only_the_limits_that_are_set(kafka_log: KafkaLog, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator's own limits stay; a configured limit replaces the topic's and is reported once."""
    silent = Config(log=LogSettings(url="kafka:broker:9092", partitions=2))
    create_topics(kafka_log, silent)
    own, other = (Topic(topics.PAGES, 2, CleanupPolicy.DELETE, days * DAY_MS, 1 << 40) for days in (400, 10))
    kafka_log.set_limits([own])
    wait_until(lambda: kafka_log.definitions()[topics.PAGES] == own, "the broker to have heard of it")
    create_topics(kafka_log, silent)
    assert kafka_log.definitions()[topics.PAGES] == own
    spoken = msgspec.structs.replace(silent, retention=RetentionSettings(days={"pages": 10}))
    assert capsys.readouterr().err == ""
    create_topics(kafka_log, spoken)
    wait_until(lambda: kafka_log.definitions()[topics.PAGES] == other, "the broker to have heard of it")
    create_topics(kafka_log, spoken)
    assert capsys.readouterr().err == "retention of pages: 10 days, 2048.0 GiB; before: 400 days, 2048.0 GiB\n"


def test_check_names_what_is_wrong(kafka_log: KafkaLog) -> None:
    """A missing topic, another number of partitions and another setting are each reported with a remedy."""
    kafka_log.create([Topic("a", 2), Topic("b", 1, retention_ms=1000)])
    wanted = [Topic("a", 3), Topic("b", 1, retention_ms=2000), Topic("gone", 1)]
    findings = {what: (right, told) for what, right, told in kafka_log.check(wanted)}
    prefix = kafka_log._site.prefix
    assert findings[f"topic {prefix}a"] == (False, "2 partitions, configured are 3")
    right, told = findings[f"topic {prefix}b"]
    assert not right
    assert "retention.ms is 1000, should be 2000" in told
    assert findings[f"topic {prefix}gone"][0] is False


def test_check_of_a_broker_that_is_away(tmp_path: Path) -> None:
    """If no broker answers, the doctor gets a finding and no error."""
    settings = with_limits(KafkaSettings(), request_timeout_s=1, connect_timeout_s=0.5)
    findings = KafkaLog("127.0.0.1:1", state_folder=tmp_path, settings=settings).check()
    assert [right for _, right, _ in findings] == [True, False]


def test_slow_crc32c_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the C implementation of crc32c the log does not start, and the error names the extra that has it."""
    monkeypatch.setattr(util, "crc32c_c", None)
    with pytest.raises(MissingExtra) as refused:
        KafkaLog("127.0.0.1:1", state_folder=tmp_path)
    assert refused.value.facts == {"extra": "kafka"}


@pytest.mark.parametrize("compressible", [True, False])
def test_several_records_at_the_cap_in_one_transaction(kafka_log: KafkaLog, compressible: bool) -> None:
    """Records of 4 MiB, compressible or not, pass, and small records among them keep their order."""
    kafka_log.create([Topic("big", 1)])
    bodies = [(b"x" * RECORD_CAP_BYTES if compressible else os.urandom(RECORD_CAP_BYTES)) for _ in range(3)]
    values = [body for pair in zip(bodies, (b"1", b"2", b"3"), strict=True) for body in pair]
    kafka_log.append([Output("big", 0, b"k", value) for value in values])
    assert [message.value for message in kafka_log.read("big", 0)] == values


def test_offsets_that_are_set_name_a_time_of_their_own() -> None:
    """The request to set offsets keeps them for years, in the last version with that field."""
    at = TopicPartition("in", 0)
    request = AdminClient._alter_group_offsets_request("g", {at: OffsetAndMetadata(7, "", -1)})
    assert request.retention_time_ms > YEAR_MS
    assert request._max_version == 4
    (topic,) = request.topics
    assert (topic.name, topic.partitions[0].partition_index, topic.partitions[0].committed_offset) == ("in", 0, 7)


@pytest.mark.skipif(not LONG, reason="a minute is the least time for which offsets are kept")
def test_offsets_that_are_set_outlive_those_that_members_left(tmp_path: Path) -> None:
    """On a broker that forgets after a minute, a member's offsets are forgotten; set or renewed ones stay."""
    broker = Broker("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000")
    try:
        log = KafkaLog(broker.start().address, state_folder=tmp_path)
        log.create([Topic("in", 1)])
        log.append([Output("in", 0, b"k", b"v")])

        def leave(group: str) -> None:
            member = log.join(group, ["in"], member="m")
            settle([member], 1)
            member.commit(Commit(offsets={At("in", 0): 1}))
            member.close()

        leave("renewed")
        log.reset("set", "in", [1])
        assert renew_offsets(log, "renewed", ["in"])
        leave("left")  # last: when these are forgotten, the others' time is over too
        wait_until(lambda: log.committed("left", "in") == [None], "what was left to be forgotten", 180, every_s=1)
        assert [log.committed(group, "in") for group in ("set", "renewed")] == [[1], [1]]
        log.close()
    finally:
        broker.close()


def test_local_state_of_a_removed_store_is_deleted(kafka_log: KafkaLog, tmp_path: Path) -> None:
    """The files of the store are removed for every member; those of other groups and stores stay."""
    kafka_log.create(
        [Topic("in", 1), *(Topic(f"state.{store}", 1, CleanupPolicy.COMPACT) for store in ("tally", "tally.a"))]
    )
    for group, store in (("tally", "tally"), ("tally.a", "tally.a")):
        for name in ("tally.1@host", "tally.2@host"):
            member = kafka_log.join(group, ["in"], member=name, store=store)
            settle([member], 1)
            member.commit(Commit(state={0: [StateChange(b"k", name.encode())]}))
            member.close()
    assert len(list(tmp_path.rglob("*.sqlite"))) == 4
    kafka_log.remove(groups=["tally.a"], stores=["tally.a"])
    states = tmp_path / "state-0"
    left = {str(path.relative_to(states)) for path in states.rglob("*.sqlite")}
    assert len(left) == 2
    assert all(path.startswith(f"{kafka_log._site.prefix}tally/") for path in left)
    assert [folder.name for folder in states.iterdir()] == [f"{kafka_log._site.prefix}tally"]
    assert dict(kafka_log.scan_state("tally", 0)) == {b"k": b"tally.2@host"}


def test_control_is_read_though_its_beginning_moved(kafka_log: KafkaLog) -> None:
    """A new reader, or one whose rows have expired, reads all records of `control`."""
    name = kafka_log._site.full(CONTROL)
    admin = KafkaAdminClient(bootstrap_servers=broker())
    admin.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact,delete"})])
    kafka_log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    early = Control(kafka_log)
    for number in range(4):
        with exclusive(kafka_log) as writer:
            writer.put(Alias(run=f"r{number}"), Run(name="a", ruleset="r", digest="d", detector="x", epoch="e"))
    middle = kafka_log.end(CONTROL)[0]
    with exclusive(kafka_log) as writer:
        writer.put(Alias(run="last"))
    admin.delete_records({TopicPartition(name, 0): middle})
    admin.close()
    assert kafka_log.beginning(CONTROL) == [middle]
    assert early.refresh()
    assert early.alias.run == Control(kafka_log).alias.run == "last"
    assert not early.refresh()


@pytest.fixture
def limited(kafka_log: KafkaLog) -> KafkaLog:
    """A log with topics of all kinds."""
    kafka_log.create([PAGES, Topic("for-ever", 2), Topic("newest", 2, CleanupPolicy.COMPACT)])
    return kafka_log


def limits(log: KafkaLog, topic: str) -> dict[str, str]:
    (found,) = log._site.admin.topic_settings([log._site.full(topic)], list(OWN)).values()
    return found


def test_a_needed_topic_has_no_limit_until_it_is_not_named(limited: KafkaLog, kafka_world: KafkaWorld) -> None:
    """While a topic is needed, the broker removes nothing; another process restores the limits.

    The doctor compares a needed topic's own limits, and reports a wrong one.
    """
    limited.expire(0, {"pages": [0, 0]})
    held = limits(limited, "pages")
    assert int(held["retention.ms"]) > 100 * YEAR_MS
    assert int(held["retention.bytes"]) > 1 << 50
    assert [told for _, right, told in limited.check([PAGES]) if not right] == []
    wrong = limited.check([Topic("pages", 2, retention_ms=1, retention_bytes=1_000_000)])
    (told,) = [told for _, right, told in wrong if not right]
    assert "retention.ms is 86400000, should be 1" in told
    kafka_world.again().expire(0, {"pages": [5, 0]})
    assert limits(limited, "pages") == held
    for log in (kafka_world.again(), limited):
        log.expire(0)
        assert limits(limited, "pages") == OWN


def test_limits_that_the_operator_changes_meanwhile_count(limited: KafkaLog) -> None:
    """A limit set while the topic is needed is lifted by the next call and restored at the end."""
    limited.expire(0, {"pages": [0, 0]})
    limited._site.admin.set_topic_settings({limited._site.full("pages"): {"retention.ms": "5000"}})
    limited.expire(0, {"pages": [0, 0]})
    assert int(limits(limited, "pages")["retention.ms"]) > 100 * YEAR_MS
    limited.expire(0)
    assert limits(limited, "pages") == {**OWN, "retention.ms": "5000"}


def test_topics_without_a_limit_and_compacted_ones_stay_as_they_are(limited: KafkaLog) -> None:
    """Topics without a limit, and compacted ones, keep their settings before, during and after."""
    before = {topic: limits(limited, topic) for topic in ("for-ever", "newest")}
    for needed in ({"for-ever": [0, 0], "newest": [0, 0]}, {}):
        limited.expire(0, needed)
        assert {topic: limits(limited, topic) for topic in before} == before


def test_other_farmwatches_of_the_broker_are_left_alone(limited: KafkaLog, tmp_path: Path) -> None:
    """Another prefix neither lifts nor restores limits."""
    with closing(KafkaWorld(tmp_path / "other")) as world:
        other = cast(KafkaLog, world.log)
        other.create([PAGES])
        limited.expire(0, {"pages": [0, 0]})
        assert limits(other, "pages") == OWN
        held = limits(limited, "pages")
        other.expire(0)
    assert limits(limited, "pages") == held
