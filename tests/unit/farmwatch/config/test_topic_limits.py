"""The limits of [retention] on existing topics of an embedded log."""

from __future__ import annotations

import msgspec
import pytest

from farmwatch.config.config import Config
from farmwatch.config.settings import LogSettings
from farmwatch.config.topic_limits import create_missing, create_topics, limits_of
from stream.log.contract import Output, Topic
from stream.memory.log import MemoryLog
from stream.schema.topics import DEAD_LETTERS, PAGES, SETTING_OF, RetentionSettings

GIB = 1024**3
CONFIG = Config(log=LogSettings(partitions=2))


def test_the_defaults_of_one_machine_leave_room_below_20_gib() -> None:
    """The size limits sum to less than 18 GiB, so that 20 GiB also hold compacted topics and state."""
    log = MemoryLog()
    create_topics(log, CONFIG)
    limits = {name: limits_of(topic) for name, topic in log.definitions().items() if name in SETTING_OF}
    assert limits.keys() == SETTING_OF.keys()
    assert 15 * GIB < sum(limit.size_bytes for limit in limits.values()) < 18 * GIB


def test_a_changed_limit_is_applied_and_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The message has both limits and the bytes above the new one; the next start prints nothing."""
    log = MemoryLog()
    create_topics(log, CONFIG)
    log.append([Output(PAGES, partition, b"k", bytes(3 << 20)) for partition in range(2)])
    assert capsys.readouterr().err == ""
    changed = msgspec.structs.replace(CONFIG, retention=RetentionSettings(days={"pages": 1}, bytes={"pages": 2 << 20}))
    for _ in range(2):
        create_topics(log, changed)
    assert capsys.readouterr().err == (
        "retention of pages: 1 days, 2.0 MiB; before: 30 days, 7.0 GiB; about 4.0 MiB of it leave\n"
    )
    log.expire(0)
    assert log.end(PAGES) == log.beginning(PAGES) == [1, 1]
    create_topics(log, CONFIG)
    assert "before: 1 days" in capsys.readouterr().err  # a removed setting: the default


def test_topics_of_replays_follow_those_of_the_first_run() -> None:
    """Verdicts and features of a run have the live topics' limits; no other topic changes."""
    log = MemoryLog()
    log.create([Topic("verdicts.mine", 2), Topic("features.mine", 2), Topic("hits.mine", 2)])
    create_topics(
        log, msgspec.structs.replace(CONFIG, retention=RetentionSettings(days={"verdicts": 7}, bytes={"features": 0}))
    )
    found = log.definitions()
    assert limits_of(found["verdicts.mine"]) == (7, GIB)
    assert limits_of(found["features.mine"]) == (180, 0)
    assert found["hits.mine"] == Topic("hits.mine", 2)
    assert limits_of(found[DEAD_LETTERS]).days == 30


def test_commands_beside_the_roles_leave_limits_alone() -> None:
    """A command creates missing topics only: its configuration may not be that of the daemon."""
    log = MemoryLog()
    create_topics(log, msgspec.structs.replace(CONFIG, retention=RetentionSettings(days={"pages": 365})))
    create_missing(log, CONFIG)
    assert limits_of(log.definitions()[PAGES]).days == 365
