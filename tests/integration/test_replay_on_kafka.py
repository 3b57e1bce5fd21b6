"""A whole replay on Kafka, with transaction markers and a stop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from replay.engine.lifecycle import remove, topic_sizes
from replay.engine.runner import Ending, ReplayStatus, Tempo
from replay.rows.site_table import counts_of, read_rows
from replay.runs.overview import run_state
from replay.runs.phases import progress_of
from stream.processing.heartbeat import beat
from stream.schema.control import Control
from tests.support.runs.replay_world import PARTITIONS, LiveWorld, config_of, features_of_pages, write_rules
from tests.support.waiting import wait_until
from tests.support.worlds import KafkaWorld

pytestmark = [pytest.mark.kafka]


def test_a_replay_on_kafka_equals_live_and_is_removed(tmp_path: Path) -> None:
    """After a stop and a resume it equals live, which is unchanged; removal deletes its topics."""
    kafka = KafkaWorld(tmp_path)
    try:
        world = LiveWorld(kafka.log, config_of("kafka:127.0.0.1:9"))
        world.feed(features_of_pages(4, 6, world.epoch))
        world.carry_on()
        world.feed(features_of_pages(4, 3, world.epoch, seed=2))  # a second transaction, with markers between
        world.carry_on()
        before = world.live_traces()
        run, ruleset = world.begin(ruleset=write_rules(tmp_path, 20), name="same")
        stop = threading.Event()

        def stop_at_first_commit(standing: ReplayStatus) -> None:
            if standing.progress.done:
                stop.set()

        slow = Tempo(check_s=0.01, control_s=0.01, records=2)
        ending = world.resume(run, ruleset, stop=stop, on_progress=stop_at_first_commit, tempo=slow)
        assert ending is Ending.STOPPED
        stopped = progress_of(kafka.log, world.row("same"))
        assert stopped.done > 0 < stopped.effort_left
        run, ruleset = world.begin(name="same")
        assert world.resume(run, ruleset) is Ending.DONE
        assert world.outcome("same") == world.outcome()
        assert world.live_traces() == before
        progress = progress_of(kafka.log, world.row("same"))
        assert progress.effort_left == 0
        assert run_state(kafka.log, Control(kafka.log), world.row("same"), 0).state == "done"
        counts = counts_of(read_rows(kafka.log, "sites.same"))
        assert (counts.pages > 0, counts.unscored) == (True, 0)
        for number in range(3):
            beat(kafka.log, PARTITIONS, number)
        assert run_state(kafka.log, Control(kafka.log), world.row("same"), 0).lag == 0  # neither heartbeats nor markers
        world.feed(features_of_pages(1, 2, world.epoch, seed=3))
        assert run_state(kafka.log, Control(kafka.log), world.row("same"), 0).lag == 4  # hits and features
        world.carry_on()
        before = world.live_traces()

        assert topic_sizes(kafka.log, world.row("same"))["verdicts.same"].records > 0
        wait_until(lambda: kafka.log.members("judge.same") == [], "the members to have left")
        remove(kafka.log, "same")
        assert "same" not in Control(kafka.log).runs
        assert not [topic for topic in kafka.log.topics() if topic.endswith(".same")]
        assert world.live_traces()["offsets"].keys() == before["offsets"].keys()
    finally:
        kafka.close()
