"""The ledger of forgotten hosts: what it knows, what it tells, and rows that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from stream.log.contract import CleanupPolicy, Message, Output, Topic
from stream.log.errors import BadRecord, LogUnavailable, SchemaTooNew
from stream.memory.log import MemoryLog
from stream.schema.control import Control
from stream.schema.forgotten import Forgotten, ForgottenHost, site_of_key
from stream.schema.topics import CONTROL

HOST = "gone.example"


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    """A log with the topic `control`."""
    made = MemoryLog()
    made.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    yield made
    made.close()


def enter(log: MemoryLog, host: str, done_at: int = 0) -> None:
    log.append(Forgotten(log).outputs(host, ForgottenHost(at=5, by="ann@desk", done_at=done_at)))


def test_a_host_is_known_by_its_digest_alone(log: MemoryLog) -> None:
    """Every process finds the host; another secret gives it another digest, so the ledger is no list of names."""
    ledger = Forgotten(log)
    assert not ledger.covers(HOST) and ledger.entry(HOST) is None and not ledger.is_pending
    enter(log, HOST)
    assert ledger.refresh() and ledger.covers(HOST) and not ledger.covers(f"www.{HOST}")
    assert ledger.is_pending and ledger.version == 1
    rows = list(log.read(CONTROL, 0))
    assert not any(HOST.encode() in row.key + (row.value or b"") for row in rows)
    other = MemoryLog()
    other.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    enter(other, HOST)
    keys = [{row.key for row in log_.read(CONTROL, 0)} - {b"forgotten/secret"} for log_ in (log, other)]
    assert keys[0] != keys[1]
    other.close()


class _Flaky(MemoryLog):
    """A log that is away after the row of a host, once `breaks` is set."""

    breaks = False

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        for message in super().read(topic, partition, start, stop):
            yield message
            if self.breaks and message.key != b"forgotten/secret":
                raise LogUnavailable("away")


def test_a_host_read_before_an_error_is_new_at_the_next_look() -> None:
    """Until then nobody follows its entry: a reader that was told nothing would show the host for ever."""
    log = _Flaky()
    log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT)])
    ledger = Forgotten(log)
    enter(log, HOST)
    log.breaks = True
    with pytest.raises(LogUnavailable):
        ledger.refresh()
    assert not ledger.covers(HOST)
    log.breaks = False
    assert ledger.refresh() and ledger.version == 1 and ledger.covers(HOST)
    log.close()


def test_a_finished_entry_is_no_new_host(log: MemoryLog) -> None:
    """The version grows with hosts alone, so that stages do not start over when the work on one is done."""
    enter(log, HOST)
    ledger = Forgotten(log)
    enter(log, HOST, done_at=9)
    assert not ledger.refresh() and ledger.version == 1 and not ledger.is_pending
    assert ledger.entry(HOST) == ForgottenHost(at=5, by="ann@desk", done_at=9)
    enter(log, "b.example")
    assert ledger.refresh() and ledger.version == 2 and ledger.covers("b.example") and ledger.covers(HOST)
    assert Control(log).runs == {}


def test_an_unreadable_entry_is_no_permission(log: MemoryLog) -> None:
    """A row that cannot be read, or of a newer schema, raises: a forgotten host must not be seen again."""
    for value in (b"\xc1", msgspec.msgpack.encode(ForgottenHost(v=9))):
        log.append([Output(CONTROL, 0, b"forgotten/ab", value)])
        with pytest.raises(SchemaTooNew, match="ledger"):
            Forgotten(log)
    assert issubclass(SchemaTooNew, BadRecord)


@pytest.mark.parametrize(
    ("key", "site"),
    [(b"a.example", "a.example"), (b"a.example text:x", "a.example"), (b"a.example\0u\0 ", "a.example"), (b"", "")],
)
def test_a_key_names_its_site(key: bytes, site: str) -> None:
    """Records have the site alone or before a space, rows of state before a NUL."""
    assert site_of_key(key) == site
