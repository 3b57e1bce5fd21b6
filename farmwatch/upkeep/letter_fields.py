"""Dead letters as rows of a list, with their records, and by their ids: for `farmwatch log dead` and the console."""

from __future__ import annotations

import re
from contextlib import suppress
from operator import attrgetter
from typing import Any

import msgspec

from farmwatch.tables.columns import Column, Kind, fields_of
from replay.rows.dead_letters import LetterState, StoredLetter, read_letter
from stream.log.contract import Log
from stream.log.errors import BadRecord
from stream.schema.records import decode, kind_of
from stream.schema.roles import STAGES
from stream.schema.runs import shown_run
from stream.text.user_errors import NotFound, UsageError

ID = "PARTITION/OFFSET of a letter, as `dead list` shows it"
_SHOWN = 400  # characters of a field of a record
_PLACE = re.compile(r"([0-9]{1,9})/([0-9]{1,18})")


def _of_letter(name: str, kind: Kind = "text", **fields: Any) -> Column[StoredLetter]:
    return Column(name, kind, attrgetter(f"letter.{name}"), **fields)


LETTER_COLUMNS: list[Column[StoredLetter]] = [
    Column("letter", "text", attrgetter("id")),
    Column("state", "text", lambda stored: str(stored.state), "count", values=tuple(LetterState)),
    _of_letter("stage", total="count", values=STAGES),
    _of_letter("reason", total="count", meaning="the class of the error"),
    Column("at", "time", attrgetter("message.timestamp_ms")),
    _of_letter("error"),
    Column("run", "text", lambda stored: shown_run(stored.letter.run)),
    _of_letter("topic", meaning="of the record that failed"),
    _of_letter("partition", "integer"),
    _of_letter("offset", "integer"),
    _of_letter("attempts", "integer"),
    _of_letter("retries", "integer", meaning="of the record so far"),
    _of_letter("expired", "integer", meaning="offsets that retention removed before the stage read them"),
    Column("key", "text", lambda stored: _readable(stored.letter.key.decode(errors="replace"))),
]


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
        raise NotFound(f"there is no dead letter {letter}: `farmwatch log dead list` lists them")
    return stored


def letter_content(stored: StoredLetter) -> dict[str, Any]:
    """Its columns, its headers, and its record with long fields shortened."""
    kind, value = kind_of(stored.letter.topic), stored.letter.value or b""
    record: Any = _readable(value[:_SHOWN].decode(errors="replace"))  # of one that cannot be decoded
    with suppress(BadRecord):
        if kind is not None:
            texts = {name: str(field) for name, field in msgspec.structs.asdict(decode(kind, value)).items()}
            record = {name: text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for name, text in texts.items()}
    return fields_of(LETTER_COLUMNS, stored) | {"headers": dict(stored.message.headers), "record": record}


def _readable(text: str) -> str:
    """The text without what a terminal cannot show."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
