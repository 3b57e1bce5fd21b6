"""Offsets of a copy: they name the same records, whatever gaps either log has."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.archive.offset_map import OffsetMap
from stream.log.contract import NO_HEADERS, At, Message
from stream.schema.runs import Gap, Run
from stream.schema.topics import CONTROL, FEATURES

AT = At(FEATURES, 0)


@given(
    here=st.sets(st.integers(0, 60), max_size=20).map(sorted),
    gaps=st.lists(st.integers(1, 3), min_size=20, max_size=20),
    noted=st.lists(st.integers(0, 70), max_size=10),
    size=st.integers(1, 7),
)
def test_an_offset_becomes_that_of_the_next_copied_record(
    here: list[int], gaps: list[int], noted: list[int], size: int
) -> None:
    """An offset becomes that of its record, of the next record, or the end; below the log's beginning it becomes 0."""
    there = [sum(gaps[: place + 1]) for place in range(len(here))]
    first = here[0] if here else 0
    end = sum(gaps)
    offsets = OffsetMap()
    for offset in noted:
        offsets.note(FEATURES, [offset])
    for begin in range(0, len(here), size):
        offsets.add(AT, here[begin : begin + size], there[begin : begin + size])
    offsets.end(AT, first, end)
    for offset in noted:
        wanted = next((copied for kept, copied in zip(here, there, strict=True) if kept >= offset), end)
        assert offsets.offsets(FEATURES, [offset]) == [0 if offset < first else wanted]


def test_the_window_of_a_run_moves_with_its_records() -> None:
    """A run's start and stop are translated; the rest of its row, and other rows of `control`, do not change."""
    run = Run(
        name="r",
        ruleset="x",
        digest="d",
        detector="d",
        epoch="e",
        start={FEATURES: [10]},
        stop={FEATURES: [12]},
        gaps=[Gap(FEATURES, 0, 1, 2)],
    )
    row = Message(CONTROL, 0, 0, b"run/r", msgspec.msgpack.encode(run), NO_HEADERS, 0)
    other = msgspec.structs.replace(row, key=b"ruleset/d", value=b"[rules]")
    removed = msgspec.structs.replace(row, value=None)
    offsets = OffsetMap()
    offsets.note_message(row)
    offsets.add(AT, [10, 11, 12], [100, 101, 103])
    offsets.end(AT, 10, 105)
    moved = msgspec.msgpack.decode(offsets.message(row).value or b"", type=Run)
    assert moved == msgspec.structs.replace(run, start={FEATURES: [100]}, stop={FEATURES: [103]})
    assert [offsets.message(message) for message in (other, removed)] == [other, removed]
