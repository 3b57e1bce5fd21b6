"""A dead letter as JSON, and by its id, for `farmwatch log dead` and the console."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

from replay.rows.dead_letters import StoredLetter, read_letter
from stream.log.contract import Log
from stream.log.errors import BadRecord
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
        raise NotFound(f"there is no dead letter {letter}: `farmwatch log dead list --each` lists them")
    return stored


def letter_fields(stored: StoredLetter) -> dict[str, Any]:
    """Its id and state, the cause, and the origin of its record."""
    names = ("stage", "run", "error", "topic", "partition", "offset", "expired", "attempts", "retries")
    return {
        "letter": stored.id,
        "state": str(stored.state),
        **{name: getattr(stored.letter, name) for name in names},
        "at": moment(stored.message.timestamp_ms),
        "key": stored.letter.key.decode(errors="replace"),
    }


def letter_content(stored: StoredLetter) -> dict[str, Any]:
    """Its fields, its headers, and its record with long fields shortened."""
    kind, value = kind_of(stored.letter.topic), stored.letter.value or b""
    record: Any = repr(value[:_SHOWN])  # of one that cannot be decoded
    with suppress(BadRecord):
        if kind is not None:
            texts = {name: str(field) for name, field in msgspec.structs.asdict(decode(kind, value)).items()}
            record = {name: text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for name, text in texts.items()}
    return letter_fields(stored) | {"headers": dict(stored.message.headers), "record": record}
