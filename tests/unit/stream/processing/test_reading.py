"""Reading records outside of a loop: unreadable records are reported once, and the others are read."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from stream.log.contract import Message
from stream.log.errors import BadRecord
from stream.processing import heartbeat
from stream.processing.topic_reader import UnreadableCounter, records_of, reporting_to, rows_of
from stream.schema.records import Decision, encode

GOOD = encode(Decision(id="a", site="a.example", stop=True, reason="decided"))
NO_UTF8 = GOOD.replace(b"decided", b"dec\xff\xfeed")
BEAT = {heartbeat.HEADER: "1"}


def message(offset: int, value: bytes | None, damage: str = "", headers: dict[str, str] | None = None) -> Message:
    """A message of the topic decisions."""
    return Message("decisions", 3, offset, b"a.example", value, headers or {}, 0, damage)


MIXED = [
    message(0, GOOD),
    message(1, b"", headers=BEAT),
    message(2, None),
    message(3, NO_UTF8),
    message(4, b"", "segment x is damaged at byte 7"),
    message(5, b"", "segment x is damaged at byte 9", BEAT),
    message(6, b""),
    message(7, GOOD),
]
BAD = [3, 4, 5, 6]


def test_bad_records_are_reported_and_the_others_read() -> None:
    """Heartbeats and tombstones are skipped; invalid UTF-8, damage and an empty value are each reported once."""
    bad: list[tuple[int, str]] = []
    read = records_of(Decision, MIXED, lambda found, error: bad.append((found.offset, str(error))))
    assert [(found.offset, record.site) for found, record in read] == [(0, "a.example"), (7, "a.example")]
    assert [offset for offset, _ in bad] == BAD
    assert bad[1][1] == "segment x is damaged at byte 7"


def test_tombstones_are_rows_without_a_record() -> None:
    """A tombstone is a row with None; a damaged record is not a row."""
    rows = rows_of(Decision, MIXED, lambda *_: None)
    assert [(found.offset, record is None) for found, record in rows] == [(0, False), (2, True), (7, False)]


def test_a_reader_may_refuse() -> None:
    """An error of `on_bad` ends the reading."""

    def refuse(_: Message, error: BadRecord) -> None:
        raise error

    with pytest.raises(BadRecord, match="not a Decision record"):
        list(records_of(Decision, MIXED, refuse))


def test_by_default_each_bad_record_is_a_warning() -> None:
    """By default, bad records are logged with topic, partition, offset and reason."""
    with capture_logs() as logged:
        assert len(list(records_of(Decision, MIXED))) == 2
    assert [event["offset"] for event in logged] == BAD
    assert logged[1] == {
        "event": "record_unreadable",
        "log_level": "warning",
        "topic": "decisions",
        "partition": 3,
        "offset": 4,
        "error": "segment x is damaged at byte 7",
    }


def test_a_command_counts_what_is_read_within_it() -> None:
    """Within `reporting_to` nothing is logged; a record read twice counts once, with one line per topic."""
    found = UnreadableCounter()
    with capture_logs() as logged, reporting_to(found):
        for _ in range(2):
            assert len(list(records_of(Decision, MIXED))) == 2
    assert logged == []
    (line,) = found.lines()
    assert line.startswith(
        "4 records of decisions could not be read: the first is partition 3 offset 3: not a Decision"
    )
    with capture_logs() as logged:
        list(records_of(Decision, MIXED))
    assert len(logged) == len(BAD)
