"""Groups that would reread a topic: they are detected before they start, with the right report.

On Kafka, too, where its markers take offsets; the contract suite has the offsets of removed groups and topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from farmwatch.upkeep.deleted_groups import find_emptied_topics, find_rereading_groups, remedy, repair_groups
from replay.runs.topology import READS
from stream.log.contract import At, CleanupPolicy, Commit, Log, Output, StateChange, Topic, TopicSize, wall_ms
from stream.log.errors import StreamError
from stream.log.forwarding import ForwardingLog
from stream.processing.heartbeat import HEADER, is_heartbeat, travelling
from stream.schema import topics
from stream.schema.roles import Role
from stream.schema.topics import FEATURES, HITS, SCORE_REQUESTS, SCORES, TALLY_STORE, VERDICTS
from tests.support.runs.replay_world import PARTITIONS, LiveWorld, config_of, features_of_pages, pages_later
from tests.support.worlds import World, on_embedded, settle

SITES, PAGES = 3, 4


@pytest.fixture
def live(world: World) -> LiveWorld:
    """A log on which JUDGE, SCORE and TALLY have worked to the end."""
    made = LiveWorld(world.log, config_of("sqlite:unused"))
    made.feed(features_of_pages(SITES, PAGES, made.epoch))
    assert list(find_rereading_groups(made.log)) == []  # unread records without any output: a first start
    made.carry_on()
    return made


def records(live: LiveWorld, topic: str) -> int:
    return live.log.sizes([topic])[topic].records


def test_nothing_is_said_of_a_log_that_only_heartbeats_have_passed(world: World) -> None:
    """A new daemon without hits: its groups have read heartbeats, CRAWL and TALLY have no site yet."""
    made = LiveWorld(world.log, config_of("sqlite:unused"))
    made.feed([])
    passed = (HITS, topics.PAGES, FEATURES, SCORE_REQUESTS, SCORES)
    world.log.append([travelling(topic, 0, {HEADER: "1"}) for topic in passed])
    for group, read in READS.items():
        for topic in read:
            world.log.reset(group, topic, world.log.end(topic))
    world.log.load_state(TALLY_STORE, 0, [StateChange(b"\0dated", b"1")])
    assert (list(find_rereading_groups(world.log)), list(find_emptied_topics(world.log))) == ([], [])


@on_embedded
def test_a_group_without_offsets_does_its_work_again(live: LiveWorld) -> None:
    """It is reported with its topic and records; afterwards each verdict exists twice, rows once."""
    verdicts, rows = live.outcome()
    assert list(find_rereading_groups(live.log)) == []  # CRAWL and MEASURE have no outputs here: they just begin
    live.log.remove(groups=["judge"])
    (found,) = find_rereading_groups(live.log)
    assert (found.group, found.records) == ("judge", {FEATURES: records(live, FEATURES)})
    assert "has no offsets, though verdicts has its output" in found.text
    assert list(find_rereading_groups(live.log, [Role.TALLY])) == []
    live.carry_on()
    again, rows_again = live.outcome()
    assert rows_again == rows
    assert set(Counter(verdict.id for verdict in again).values()) == {2}
    assert len(again) == 2 * len(verdicts)
    assert list(find_rereading_groups(live.log)) == []


@on_embedded
def test_tally_without_offsets_counts_nothing_twice(live: LiveWorld) -> None:
    """TALLY reads its three topics again; its state holds its reads, so that its rows need no repair."""
    _, rows = live.outcome()
    live.log.remove(groups=["tally"])
    (found,) = find_rereading_groups(live.log)
    assert found.group == "tally"
    assert found.records == {topic: records(live, topic) for topic in (HITS, VERDICTS, SCORES)}
    assert remedy(found) == "nothing has to be repaired" and "duplicate" not in found.text
    assert list(repair_groups(live.log)) == []
    live.carry_on()
    assert live.outcome()[1] == rows


class _Lacking(ForwardingLog):
    """A log that reports the offsets or records of a topic as deleted."""

    def __init__(self, log: Log, *, offsets: str = "", records: str = "") -> None:
        super().__init__(log)
        self._offsets, self._records = offsets, records

    def committed(self, group: str, topic: str) -> list[int | None]:
        found = self._log.committed(group, topic)
        return [None] * len(found) if topic == self._offsets else found

    def sizes(self, topics: Sequence[str]) -> dict[str, TopicSize]:
        found = self._log.sizes(topics)
        return {topic: TopicSize(0, 0) if topic == self._records else size for topic, size in found.items()}


@on_embedded
def test_offsets_of_one_topic_or_a_store_that_are_gone_are_told(live: LiveWorld) -> None:
    """TALLY has rows, so it has read its third topic and has state: either one that is missing is reported."""
    (found,) = find_rereading_groups(_Lacking(live.log, offsets=VERDICTS))
    assert (found.group, found.records) == ("tally", {VERDICTS: records(live, VERDICTS)})
    assert "has no offsets of verdicts, though sites has its output" in found.text
    (found,) = find_rereading_groups(_Lacking(live.log, records="state.tally"))
    assert found.group == "tally"
    assert "has offsets, but its store tally is empty: it resumes without its memory" in found.text
    assert "`farmwatch doctor --repair`, which lets it read the retained records" in remedy(found)


@on_embedded
def test_a_topic_that_a_group_has_yet_to_read_is_no_loss(live: LiveWorld) -> None:
    """If the first record is newer than all of the group's output, the group begins with it."""
    live.log.remove(topics=[SCORES])
    live.log.create([Topic(SCORES, PARTITIONS, CleanupPolicy.COMPACT)])
    later_ms = wall_ms() + 1_800_000
    live.log.append([Output(SCORES, 0, b"k", b"", timestamp_ms=later_ms)])
    assert [found.group for found in find_rereading_groups(live.log, [Role.TALLY])] == []


@on_embedded
def test_offsets_beyond_the_end_are_told_and_repaired(live: LiveWorld) -> None:
    """A topic that was recreated or truncated would be read from its beginning; the repair sets that offset alone."""
    before = live.log.committed("judge", FEATURES)
    member = live.log.join("judge", [FEATURES], member="m")
    settle([member], PARTITIONS)
    member.commit(Commit(offsets={At(FEATURES, 0): 10_000}))
    member.close()
    (found,) = find_rereading_groups(live.log)
    assert (found.group, found.records) == ("judge", {FEATURES: records(live, FEATURES)})
    assert "beyond the end of features, which was recreated or truncated" in found.text
    list(repair_groups(live.log))
    after = live.log.committed("judge", FEATURES)
    assert after[1:] == before[1:] and (after[0] or 0) <= live.log.end(FEATURES)[0]
    assert list(find_rereading_groups(live.log)) == []


@on_embedded
def test_a_topic_that_was_removed_and_made_again_is_read_from_its_beginning(live: LiveWorld, world: World) -> None:
    """Every log deletes the offsets with a topic, so that new records on it are read, once."""
    live.log.remove(topics=[FEATURES])
    again = LiveWorld(world.again(), config_of("sqlite:unused"))
    assert again.log.committed("judge", FEATURES) == [None] * PARTITIONS
    assert list(find_rereading_groups(again.log)) == []
    before = len(again.outcome()[0])
    again.feed(features_of_pages(SITES, 1, again.epoch, seed=3))
    again.carry_on()
    assert len(again.outcome()[0]) == before + SITES


def test_a_repaired_group_reads_only_the_records_without_a_result(live: LiveWorld) -> None:
    """JUDGE lost its offsets while features waited: after the repair, each page has one verdict, on both logs."""
    live.log.remove(groups=["judge"])
    live.feed(pages_later(live, sites=SITES, pages=2))
    (found,) = find_rereading_groups(live.log)
    assert "`farmwatch doctor --repair`, which sets its offsets" in remedy(found)
    (said,) = repair_groups(live.log)
    assert said.startswith("judge: ") and said.endswith(" of features left to read")
    assert list(find_rereading_groups(live.log)) == []
    live.carry_on()
    verdicts, _ = live.outcome()
    assert len({verdict.id for verdict in verdicts}) == len(verdicts) == SITES * (PAGES + 2)


@on_embedded
def test_score_is_repaired_by_the_fetches_of_its_scores(live: LiveWorld) -> None:
    """SCORE is repaired from its scores, each of which names the fetch that requested it."""
    assert records(live, SCORE_REQUESTS)
    live.log.remove(groups=["score"])
    assert [found.group for found in find_rereading_groups(live.log)] == ["score"]
    list(repair_groups(live.log))
    for partition, offset in enumerate(live.log.committed("score", SCORE_REQUESTS)):
        assert all(map(is_heartbeat, live.log.read(SCORE_REQUESTS, partition, offset or 0)))


@on_embedded
def test_a_group_at_work_is_not_repaired(live: LiveWorld) -> None:
    """A group with members is not repaired: the refusal says to stop it, because its offsets would move."""
    live.log.remove(groups=["judge"])
    member = live.log.join("judge", [FEATURES], member="m")
    settle([member], PARTITIONS)
    with pytest.raises(StreamError, match="stop them before"):
        list(repair_groups(live.log))
    member.close()


@on_embedded
@pytest.mark.parametrize("topic", [VERDICTS, SCORES, "sites"])
def test_a_topic_that_was_deleted_and_made_again_is_reported(live: LiveWorld, topic: str) -> None:
    """A recreated topic is reported with the replay that recreates its records from the features."""
    assert [name for name, _ in find_emptied_topics(live.log)] == ["pages"]
    live.log.remove(topics=[topic])
    policy = CleanupPolicy.DELETE if topic == VERDICTS else CleanupPolicy.COMPACT
    live.log.create([Topic(topic, PARTITIONS, policy)])
    found = dict(find_emptied_topics(live.log))
    assert found.keys() == {"pages", topic} and "`farmwatch cutover rebuilt`" in found[topic]
