"""`copy` of a log into an empty one, on each kind of log and from one kind to the other."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from farmwatch.archive.copy import copy_log
from farmwatch.audit.audit import audit
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics, limits_of
from replay.rows.site_table import read_sites
from replay.runs.topology import READS, records_behind
from stream.log.contract import At, CleanupPolicy, Commit, Log, StateChange, Topic
from stream.log.errors import StreamError
from stream.masked import masked
from stream.opening import open_log
from stream.processing.dead_letters import DeadLetter, dead_letter
from stream.schema.control import Control
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.topics import CONTROL, DEAD_LETTERS, DECISIONS, FEATURES, HITS, ON_KAFKA, PAGES, VERDICTS
from stream.text.user_errors import RunRefused
from tests.support.logs.embedded_worker import segments
from tests.support.logs.tallied_log import put_site, rows_of, tallied, tally
from tests.support.runs.cutover_world import CutoverWorld, config_of, cutover_world
from tests.support.worlds import KINDS, World, drain, record, values

KAFKA = [pytest.mark.kafka]
PAIRS = [("embedded", "embedded"), pytest.param(("kafka", "kafka"), marks=KAFKA)]
on_embedded = pytest.mark.parametrize("worlds", PAIRS[:1], indirect=True)


@pytest.fixture(params=PAIRS)
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, World]]:
    """Two fresh logs."""
    kinds = request.param
    with closing(KINDS[kinds[0]](tmp_path / "a")) as source, closing(KINDS[kinds[1]](tmp_path / "b")) as target:
        yield source, target


def content(log: Log, topic: str) -> list[list[tuple[bytes, bytes | None, Any, int]]]:
    """The records of each partition as a reader sees them, without offsets."""
    return [
        [(m.key, m.value, dict(m.headers), m.timestamp_ms) for m in log.read(topic, partition)]
        for partition in range(log.topics()[topic])
    ]


def test_records_and_state_are_the_same(worlds: tuple[World, World]) -> None:
    """A copy has the same records, tombstones, headers, timestamps and order, and the same state with due times."""
    source, target = worlds
    source.topics(HITS, FEATURES, PAGES, partitions=3, store="frontier")
    source.topics(DECISIONS, cleanup=CleanupPolicy.COMPACT)
    for number in range(4):
        headers = {"run": f"{number}"}
        large = record(HITS, 2, "é", b"\xff" * 5000, headers=headers, timestamp_ms=1_700_000_000_000 - number)
        source.log.append([large, record(HITS, number % 3, f"{number}", ""), record(DECISIONS, 1, f"{number}", None)])
    member = source.owner(3, HITS, store="frontier")
    changes = [StateChange(b"", b"empty"), StateChange(b"k\x00", b"", due_at=7), StateChange(b"k", b"v" * 3000, -1)]
    member.commit(Commit(state={1: changes}))
    member.close()
    copied = copy_log(source.log, target.log)
    assert (copied.records, copied.damaged, copied.state) == (12, 0, 3)
    assert target.log.topics() == source.log.topics()
    limits, usual = limits_of(target.log.definitions()[PAGES]), ON_KAFKA["pages"]
    assert limits.days == usual.days
    assert limits.size_bytes == pytest.approx(usual.size_bytes, abs=3)  # it is divided among the partitions
    for topic in (HITS, FEATURES, DECISIONS):
        assert content(target.log, topic) == content(source.log, topic)
    copy = target.again()
    for partition in range(3):
        assert list(copy.dump_state("frontier", partition)) == list(source.log.dump_state("frontier", partition))
    member = target.owner(3, HITS, store="frontier")
    assert member.state(1).due(10, 10) == [(b"k", b"v" * 3000, -1), (b"k\x00", b"", 7)]


def test_a_group_goes_on_where_it_was(worlds: tuple[World, World]) -> None:
    """A group at the beginning, middle or end resumes in the copy with its unread records."""
    source, target = worlds
    source.topics(HITS, partitions=1)
    for number in range(6):
        source.log.append([record(HITS, 0, "k", f"{number}")])
    offsets = [message.offset for message in source.log.read(HITS, 0)]
    for group, offset in (("begin", 0), ("middle", offsets[2]), ("end", source.log.end(HITS)[0])):
        source.log.reset(group, HITS, [offset])
    copy_log(source.log, target.log)
    assert target.log.groups() == ["begin", "end", "middle"]
    for group, unread in (("begin", "012345"), ("middle", "2345"), ("end", "")):
        assert values(drain(target.join(HITS, group=group), len(unread))) == list(unread)


def test_removed_records_stay_removed(worlds: tuple[World, World]) -> None:
    """After retention removed the first half, the copy begins above 0, and a group with unread ones gets a report."""
    source, target = worlds
    source.topics(HITS, partitions=1, retention_ms=1)
    source.topics(FEATURES, partitions=1)
    for topic in (HITS, FEATURES):
        for number in range(4):
            source.log.append([record(topic, 0, "k", f"{number}")])
    third = list(source.log.read(HITS, 0))[2].offset
    source.log.reset("read", HITS, [third])
    source.log.reset("late", HITS, [0])
    source.lose(HITS, [third])
    copy_log(source.log, target.log)
    assert values(target.log.read(HITS, 0)) == ["2", "3"]
    assert target.log.beginning(HITS)[0] > 0 == target.log.beginning(FEATURES)[0]
    assert values(drain(target.join(HITS, group="read"), 2)) == ["2", "3"]
    lost, *rest = drain(target.join(HITS, group="late"), 3)
    assert (lost.expired > 0, values(rest)) == (True, ["2", "3"])


def test_dead_letters_name_the_records_of_the_copy(worlds: tuple[World, World]) -> None:
    """The origin of a dead letter is the same record in the copy; if the record is gone, there is no origin."""
    source, target = worlds
    source.topics(HITS, partitions=1, retention_ms=1)
    source.topics(DEAD_LETTERS, partitions=1)
    for number in range(4):
        source.log.append([record(HITS, 0, "k", f"{number}")])
    there = list(source.log.read(HITS, 0))
    source.log.append([dead_letter(there[place], "crawl", ValueError("no"), 1) for place in (0, 3)])
    source.log.append([record(DEAD_LETTERS, 0, "k", "no dead letter")])
    source.lose(HITS, [there[1].offset])
    copy_log(source.log, target.log)
    of_gone, of_last = (DeadLetter.read(message) for message in list(target.log.read(DEAD_LETTERS, 0))[:2])
    (last,) = list(target.log.read(HITS, 0))[-1:]
    assert (of_last.offset, of_gone.offset) == (last.offset, -1)


def empty_world(kind: str, folder: Path) -> CutoverWorld:
    """A log without topics."""
    place = [f"sqlite:{folder / 'log'}"]
    if kind == "kafka":
        from tests.support.kafka_broker import broker

        place = [f"kafka:{broker()}", f"log.prefix=c{uuid.uuid4().hex[:8]}.", f"log.state_folder={folder / 'state'}"]
    config = config_of(*place)
    return CutoverWorld(open_configured(config), config)


@pytest.mark.slow
@pytest.mark.kafka
def test_the_audit_of_a_copy_is_clean_and_its_tables_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log copied to Kafka and back has the same rows, runs and audits; the last copy works on."""
    kinds = ("embedded", "kafka", "embedded")
    with ExitStack() as held:
        world = held.enter_context(cutover_world(kinds[0], tmp_path, monkeypatch))
        run = tallied(world)
        other = world.begin("other", start={FEATURES: [0, 0]}, stop={FEATURES: world.log.end(FEATURES)})
        world.replay(other)
        for topic in READS["score"]:
            world.log.reset("score", topic, world.log.end(topic))
        expected = rows_of(world), read_sites(world.log, "other")
        audits = [audit(world.log, name, world.config).text for name in ("", "other")]
        assert audits[0] == "clean"
        for number, kind in enumerate(kinds[1:]):
            copied = empty_world(kind, tmp_path / f"{number}")
            held.callback(copied.log.close)
            copy_log(world.log, copied.log)
            world = copied
            assert (rows_of(world), read_sites(world.log, "other")) == expected
            assert [audit(world.log, name, world.config).text for name in ("", "other")] == audits
            assert set(records_behind(world.log, READS).values()) == {0}
            assert Control(world.log).runs["other"].stop == {FEATURES: world.log.end(FEATURES)}
        put_site(world, run, 77)
        tally(world, run)
        assert len(rows_of(world)) == len(expected[0]) + 1
        assert audit(world.log, "", world.config).text == "clean"


@on_embedded
def test_forgotten_hosts_are_not_copied(worlds: tuple[World, World]) -> None:
    """A copy has no records or state of forgotten hosts, and has the ledger that names them as forgotten."""
    source, target = worlds
    source.topics(HITS, partitions=1, store="frontier")
    source.log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    for host in ("gone.example", "kept.example"):
        source.log.append([record(HITS, 0, host, f"of {host}", headers={"h": host})])
        source.log.load_state("frontier", 0, [StateChange(f"{host} row".encode(), host.encode())])
    ledger = Forgotten(source.log)
    source.log.append(ledger.outputs("gone.example", ForgottenHost(at=1, by="ann")))
    copy_log(masked(source.log, look_s=0), target.log)
    everything = [(m.key, m.value, m.headers) for topic in (HITS, CONTROL) for m in target.log.read(topic, 0)]
    state = list(target.log.dump_state("frontier", 0))
    assert [value for _, value, _ in everything[:2]] == [None, b"of kept.example"]
    assert state == [StateChange(b"kept.example row", b"kept.example")]
    assert "gone.example" not in repr((everything, state))
    assert Forgotten(target.log).covers("gone.example")


@pytest.mark.slow
def test_the_audit_of_a_copy_knows_that_retention_took_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a log with partly expired hits, pages and verdicts, the audit and that of its copy are equal."""
    with cutover_world("embedded", tmp_path, monkeypatch) as world:
        tallied(world)
        for topic in (HITS, PAGES, VERDICTS):
            world.log.truncate(topic, [end // 2 for end in world.log.end(topic)])
        copied = empty_world("embedded", tmp_path / "copy")
        with closing(copied.log):
            copy_log(world.log, copied.log)
            expected, found = audit(world.log, "", world.config), audit(copied.log, "", copied.config)
        assert expected.steps["sites -> rows"].unprovable > 0
        assert (found.text, found.steps, found.lost) == (expected.text, expected.steps, expected.lost)


class Stopped(BaseException):
    """Stands for a process that ended."""


def test_an_interrupted_copy_is_no_log_and_begins_anew(tmp_path: Path) -> None:
    """An interrupted copy is refused by name everywhere; repeating it gives each record once."""
    with closing(KINDS["embedded"](tmp_path)) as source, closing(empty_world("embedded", tmp_path).log) as target:
        config = empty_world("embedded", tmp_path).config
        source.topics(HITS, FEATURES, partitions=2, store="frontier")
        source.log.append([record(topic, n % 2, "k", f"{n}") for topic in (HITS, FEATURES) for n in range(10)])
        source.log.reset("crawl", HITS, source.log.end(HITS))
        for after in (1, 15):
            seen = 0

            def stop(records: int, after: int = after) -> None:
                nonlocal seen
                seen += records
                if seen == after:
                    raise Stopped

            with pytest.raises(Stopped):
                copy_log(source.log, target, stop)
            with pytest.raises(StreamError, match="unfinished copy: run the same `farmwatch log copy` again"):
                create_topics(target, config)
            with pytest.raises(StreamError, match="is an unfinished copy itself"):
                copy_log(target, source.log)
        assert copy_log(source.log, target).records == 20
        for topic in (HITS, FEATURES):
            assert content(target, topic) == content(source.log, topic)
        assert target.committed("crawl", HITS) == target.end(HITS)
        with pytest.raises(RunRefused, match="holds topics of farmwatch"):
            copy_log(source.log, target)


@on_embedded
def test_a_log_at_work_is_refused(worlds: tuple[World, World]) -> None:
    """A log with group members, or with records that arrive during the copy, is refused."""
    source, target = worlds
    source.topics(HITS, partitions=1)
    source.log.append([record(HITS, 0, "k", "v")])
    member = source.owner(1, HITS, group="crawl")
    member.commit(Commit(offsets={At(HITS, 0): 1}))
    with pytest.raises(StreamError, match=r"group 'crawl' has live members \(m\): stop them before the log is copied"):
        copy_log(source.log, target.log)
    assert target.log.topics() == {}
    member.close()

    def grow(_: int) -> None:
        source.log.append([record(HITS, 0, "k", "more")])

    with pytest.raises(StreamError, match="the log grew while it was copied"):
        copy_log(source.log, target.log, grow)


def test_damaged_records_are_left_out_and_counted(tmp_path: Path) -> None:
    """The readable records are copied; damaged ones are left out and counted."""
    source, target = open_log(f"sqlite:{tmp_path / 'a'}"), open_log(f"sqlite:{tmp_path / 'b'}")
    with closing(source), closing(target):
        source.create([Topic(HITS, 1)])
        source.append([record(HITS, 0, "k", "L" * 5000), record(HITS, 0, "k", "whole")])
        (segment,) = segments(tmp_path / "a")
        segment.write_bytes(b"rubbish")
        copied = copy_log(source, target)
        assert (copied.records, copied.damaged, values(target.read(HITS, 0))) == (1, 1, ["whole"])
