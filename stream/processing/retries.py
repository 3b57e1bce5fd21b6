"""Retries of dead letters: records of the topic `retries`, and how a stage reads them.

A retry names the stage and the run whose letter it is. Every live stage reads the topic beside its inputs and processes
only the retries that name it; the others advance its offset. The input topic stays as it is: appended there, a record
would also reach the other groups that read it, and a later replay would read it twice.

A record of the topic settles one letter: with a value it is a retry, without one the letter was dropped.
"""

from __future__ import annotations

from typing import NamedTuple

from stream.log.contract import Message, Output
from stream.log.errors import BadRecord
from stream.processing.dead_letters import DeadLetter
from stream.processing.stage import Stage
from stream.schema.topics import RETRIES

_LETTER, _RETRIES = "letter", "retries"  # headers: the offset of the letter on its topic; retries of the record so far
_OF_LETTER = ("origin-topic", "origin-partition", "origin-offset", "stage", "error", "reason", "attempts", _LETTER)


class Settlement(NamedTuple):
    """A record of the topic `retries`: what became of one letter."""

    letter: int  # its offset on `dead-letters`; the partition is the same
    offset: int
    is_retry: bool  # False = dropped


def retry_of(letter: Message, content: Message) -> Output:
    """The retry of a letter (as stored on `dead-letters`), with the key and value of `content`."""
    retries = int(letter.headers.get(_RETRIES, "0")) + 1
    headers = {**letter.headers, _LETTER: str(letter.offset), _RETRIES: str(retries)}
    return Output(RETRIES, letter.partition, content.key, content.value or b"", headers)


def drop_of(letter: Message) -> Output:
    """The record that settles a letter without a retry."""
    return Output(RETRIES, letter.partition, letter.key, None, {_LETTER: str(letter.offset)})


def settlement_of(message: Message) -> Settlement | None:
    """The settlement that a record of `retries` states; None for a damaged one: its letter stays open."""
    letter = message.headers.get(_LETTER, "")
    if message.topic != RETRIES or message.damage or not (letter.isascii() and letter.isdigit()):
        return None
    return Settlement(int(letter), message.offset, message.value is not None)


def input_of(message: Message, stage: Stage) -> Message | None:
    """The message for the stage: itself; of a retry for this stage and run the original record; None for other retries.

    A retry that is damaged, or that expired unread, is passed: its letter is open, or has expired before.
    """
    if message.topic != RETRIES:
        return message
    if settlement_of(message) is None or message.value is None:
        return None
    try:
        letter = DeadLetter.read(message)
    except BadRecord:
        return None
    if letter.stage != stage.name or letter.topic not in stage.inputs:
        return None
    if stage.run and letter.run not in ("", stage.run):
        return None
    headers = {name: value for name, value in message.headers.items() if name not in _OF_LETTER}
    return Message(
        letter.topic, letter.partition, letter.offset, message.key, message.value, headers, message.timestamp_ms
    )
