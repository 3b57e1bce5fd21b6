"""Rows of `control` that are refused, and the requests that it makes to the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stream.log.contract import CleanupPolicy, Commit, Message, Output, Topic
from stream.log.errors import BadRecord, Fenced, LogUnavailable, SchemaTooNew, StreamError
from stream.memory.log import MemoryLog
from stream.schema.control import Control, exclusive
from stream.schema.runs import LAYOUT, Alias, Cutover, Run
from stream.schema.topics import CONTROL
from tests.support.logs.loops import Around

RUN = Run(name="a", ruleset="r", digest="d", detector="x", epoch="e")
CUTOVER = Cutover(number=1, at=1, by="b", from_run="a", to_run="c")
ROWS = [(b"run/a", RUN), (b"alias/live", Alias(run="a")), (b"cutover/00000001", CUTOVER)]


class _Log(MemoryLog):
    """Counts requests for topics, reads and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.answers = True  # for commits that move the alias
        self.keeps = True  # the rows of such commits
        self.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])

    def topics(self) -> dict[str, int]:
        self.asked.append("topics")
        return dict(super().topics())

    def end(self, topic: str) -> list[int]:
        self.asked.append("end")
        return super().end(topic)

    def join(self, group: str, topics: Sequence[str], **options: Any) -> Any:
        member = super().join(group, topics, **options)

        def commit(commit: Commit) -> None:
            moves = any(output.key.startswith(b"alias/") for output in commit.outputs)
            if self.keeps or not moves:
                member.commit(commit)
            if moves and not self.answers:
                raise LogUnavailable("no answer")

        return Around(member, commit=commit)


@pytest.fixture
def log() -> _Log:
    """A log with `control`."""
    return _Log()


def append(log: MemoryLog, key: bytes, value: bytes) -> None:
    """Append a row, as any process may write it."""
    log.append([Output(CONTROL, 0, key, value)])


@pytest.mark.parametrize(("key", "row"), ROWS)
def test_a_row_of_a_newer_schema_is_refused(log: _Log, key: bytes, row: Run | Alias | Cutover) -> None:
    """A row of a later schema raises SchemaTooNew with both versions, at the first read and later."""
    control = Control(log)
    append(log, key, msgspec.msgpack.encode(msgspec.structs.replace(row, v=LAYOUT + 1)))
    with pytest.raises(SchemaTooNew, match=rf"schema {LAYOUT + 1}.*up to {LAYOUT}"):
        Control(log)
    for _ in range(2):
        with pytest.raises(SchemaTooNew):
            control.refresh()


@pytest.mark.parametrize("value", [b"", b"\xc1", msgspec.msgpack.encode({"v": "1"}), msgspec.msgpack.encode([1])])
@pytest.mark.parametrize("key", [key for key, _ in ROWS])
def test_bytes_that_are_no_row_are_reported(log: _Log, key: bytes, value: bytes) -> None:
    """The error for an unreadable value names the expected record."""
    append(log, key, value)
    with pytest.raises(SchemaTooNew, match=f"offset 0, {key.decode().partition('/')[0]}: "):
        Control(log)


def test_only_the_newest_row_of_a_key_must_be_readable(log: _Log) -> None:
    """An unreadable row that was replaced since is not an error; until then each refresh raises."""
    append(log, b"run/a", b"\xc1")
    append(log, b"alias/live", msgspec.msgpack.encode(Alias(run="a")))
    append(log, b"run/a", msgspec.msgpack.encode(RUN))
    control = Control(log)
    assert (control.alias.run, control.runs) == ("a", {"a": RUN})
    append(log, b"alias/live", b"\xc1")
    for _ in range(2):
        with pytest.raises(SchemaTooNew, match="offset 3, alias: "):
            control.refresh()
    append(log, b"alias/live", msgspec.msgpack.encode(Alias(run="b")))
    assert control.refresh()
    assert control.alias.run == "b"


@pytest.mark.parametrize("key", [b"score", b"search/q", b"writer"])
def test_damage_of_rows_that_say_nothing_of_runs_is_passed_over(
    log: _Log, monkeypatch: pytest.MonkeyPatch, key: bytes
) -> None:
    """Damaged rows of SCORE's detectors, a search or a writer are skipped; any other damaged row is an error."""
    append(log, b"run/a", msgspec.msgpack.encode(RUN))
    append(log, key, b"")
    read = MemoryLog.read

    def damaged(self: MemoryLog, *args: Any) -> Iterator[Message]:
        return (replace(m, damage="a bit") if m.key in (key, b"run/b") else m for m in read(self, *args))

    monkeypatch.setattr(MemoryLog, "read", damaged)
    control = Control(log)
    assert control.runs == {"a": RUN}
    append(log, b"run/b", b"")
    with pytest.raises(BadRecord, match="offset 2: a bit"):
        control.refresh()


def test_fields_that_are_not_known_are_passed_over(log: _Log) -> None:
    """A row of this schema with an additional field is read without it."""
    append(log, b"alias/live", msgspec.msgpack.encode({"v": 1, "run": "a", "mood": "good"}))
    assert Control(log).alias == Alias(run="a")


def test_a_refresh_without_news_asks_for_the_end_only(log: _Log) -> None:
    """Without new rows, the refresh that live stages make each second is one request for the end and no read."""
    control = Control(log)
    log.asked.clear()
    assert not control.refresh()
    assert log.asked == ["end"]


@pytest.fixture
def forgetful(log: _Log) -> _Log:
    """The answers of commits that move the alias are lost."""
    log.answers = False
    return log


def test_a_change_whose_answer_got_lost_counts(forgetful: _Log) -> None:
    """If the commit's answer is lost but the rows are on the log, the change counts and the writer may continue."""
    with exclusive(forgetful, look_s=0.0) as writer:
        writer.put(Alias(run="a"))
        writer.put(RUN)
    control = Control(forgetful)
    assert (control.alias.run, control.runs) == ("a", {"a": RUN})


def test_a_change_that_got_lost_is_reported(forgetful: _Log) -> None:
    """If the rows are not on the log, the log's error is raised, and the writer is refused from then on."""
    forgetful.keeps = False
    with exclusive(forgetful, look_s=0.0) as writer:
        with pytest.raises(LogUnavailable, match="no answer"):
            writer.put(Alias(run="a"))
        with pytest.raises(StreamError, match="start over"):
            writer.put(RUN)
    assert (Control(forgetful).alias, Control(forgetful).runs) == (Alias(), {})


def test_what_was_written_before_does_not_tell_of_a_change_that_got_lost(forgetful: _Log) -> None:
    """The alias goes to a, b and back to a: the first row does not confirm the third change."""
    with exclusive(forgetful, look_s=0.0) as writer:
        writer.put(Alias(run="a"))
        writer.put(Alias(run="b"))
        forgetful.keeps = False
        with pytest.raises(LogUnavailable, match="no answer"):
            writer.put(Alias(run="a"))
    assert Control(forgetful).alias.run == "b"


def test_who_is_fenced_without_an_answer_is_reported(forgetful: _Log) -> None:
    """If another writer began meanwhile, a change without an answer was fenced, even if both wrote the same."""
    forgetful.keeps = False
    with exclusive(forgetful, look_s=0.0) as writer:
        append(forgetful, b"writer", b"another")
        append(forgetful, b"alias/live", msgspec.msgpack.encode(Alias(run="a")))
        with pytest.raises(Fenced, match="this change was not written"):
            writer.put(Alias(run="a"))
