"""A dead letter as JSON, and by its id, for `farmwatch dead` and the console."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from replay.rows.dead_letters import StoredLetter, read_letter
from stream.log.contract import Log
from stream.log.errors import BadRecord
from stream.processing.dead_letters import DeadLetter
from stream.schema.records import decode, kind_of
from stream.text.user_errors import NotFound, UsageError
from stream.text.wording import moment

ID = "PARTITION/OFFSET of a letter, as `dead list` shows it"
_SHOWN = 400  # characters of a field of a record
_PLACE = re.compile(r"([0-9]{1,9})/([0-9]{1,18})")


def place_of(letter: str) -> tuple[int, int]:
    """Partition and offset of an id. Raises UsageError."""
    match = _PLACE.fullmatch(letter)
    if match is None:
        raise UsageError(f"{letter[:80]!r} is no dead letter: give {ID}")
    return int(match[1]), int(match[2])


def existing_letter(log: Log, letter: str) -> StoredLetter:
    """The letter with this id. Raises NotFound, UsageError."""
    stored = read_letter(log, *place_of(letter))
    if stored is None:
        raise NotFound(f"there is no dead letter {letter}: `farmwatch dead list --each` lists them")
    return stored


def letter_fields(stored: StoredLetter) -> dict[str, Any]:
    """Its id and state, the cause, and the origin of its record."""
    letter = stored.letter
    return {
        "letter": stored.id,
        "state": str(stored.state),
        "stage": letter.stage,
        "run": letter.run,
        "error": letter.error,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "expired": letter.expired,
        "attempts": letter.attempts,
        "retries": letter.retries,
        "at": moment(stored.message.timestamp_ms),
        "key": letter.key.decode(errors="replace"),
    }


def letter_content(stored: StoredLetter) -> dict[str, Any]:
    """Its fields, its headers, and its record with long fields shortened."""
    return letter_fields(stored) | {"headers": dict(stored.message.headers), "record": _record(stored.letter)}


def _record(letter: DeadLetter) -> Any:
    """The record by field, each shortened; the first bytes of one that cannot be decoded."""
    kind = kind_of(letter.topic)
    try:
        if kind is None:
            raise BadRecord("no topic of records")
        fields = msgspec.structs.asdict(decode(kind, letter.value or b""))
    except BadRecord:
        return repr((letter.value or b"")[:_SHOWN])
    return {name: text if len(text := str(value)) <= _SHOWN else f"{text[:_SHOWN]}…" for name, value in fields.items()}
