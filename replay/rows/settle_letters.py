"""Settles dead letters: retries their records, or drops the letters. Both leave the letters on their topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from replay.rows.dead_letters import LetterState, StoredLetter, has_reader, read_letters
from stream.log.contract import Log, Message, Output
from stream.processing.retries import drop_of, retry_of
from stream.processing.topic_reader import OnBad
from stream.schema.control import Control, exclusive
from stream.schema.runs import shown_run
from stream.schema.topics import DEAD_LETTERS

MAX_RETRIES = 3  # of a record; further ones only with `again`
_AT_ONCE, _AT_ONCE_BYTES = 500, 16 * 1024 * 1024  # letters and bytes of one commit

Wanted = Callable[[StoredLetter], bool]


@dataclass(slots=True)
class Settled:
    """The outcome for the chosen letters."""

    settled: Counter[tuple[str, str]] = field(default_factory=Counter)  # by stage and reason
    refused: Counter[str] = field(default_factory=Counter)  # by cause

    @property
    def count(self) -> int:
        return sum(self.settled.values())


def settle(
    log: Log, wanted: Wanted, *, retry: bool, again: bool = False, dry_run: bool = False, on_bad: OnBad | None = None
) -> Settled:
    """Retry or drop the chosen letters, in the order in which their records failed; other letters are skipped.

    `again` also retries dropped letters, and records that were retried MAX_RETRIES times. Commits in groups of letters:
    an interrupted call may be repeated. Raises Fenced if another process settles letters, LogUnavailable.
    """
    outcome = Settled()
    outputs: list[Output] = []
    room = _AT_ONCE_BYTES
    with nullcontext() if dry_run or DEAD_LETTERS not in log.topics() else exclusive(log) as writer:
        control = Control(log)
        for stored in filter(wanted, read_letters(log, on_bad)):
            content = _content(log, stored) if retry else stored.message
            cause = _obstacle(control, stored, content, again=again) if retry else _settled(stored)
            if cause or content is None:
                outcome.refused[cause] += 1
                continue
            outcome.settled[stored.letter.stage, stored.reason] += 1
            if writer is None:
                continue
            outputs.append(retry_of(stored.message, content) if retry else drop_of(stored.message))
            room -= len(outputs[-1].value or b"")
            if len(outputs) >= _AT_ONCE or room <= 0:
                writer.append(outputs)
                outputs, room = [], _AT_ONCE_BYTES
        if outputs and writer is not None:
            writer.append(outputs)
    return outcome


def _settled(stored: StoredLetter) -> str:
    return "" if stored.state is LetterState.OPEN else f"already {stored.state}"


def _obstacle(control: Control, stored: StoredLetter, content: Message | None, *, again: bool) -> str:
    letter = stored.letter
    if stored.state is not LetterState.OPEN and not (again and stored.state is LetterState.DROPPED):
        return _settled(stored)
    if letter.expired:
        return "retention removed the record before the stage read it: there is nothing to retry"
    if not has_reader(control, letter):
        return f"of {letter.stage} of the run {shown_run(letter.run)}, which is not live: no stage would read the retry"
    if letter.retries >= MAX_RETRIES and not again:
        return f"failed {letter.retries} retries: mend the cause, then retry it again"
    live, epoch = control.live, (content or stored.message).headers.get("feature_epoch", "")
    if live is not None and epoch and live.epoch and epoch != live.epoch:
        return f"of feature epoch {epoch}, while the run has {live.epoch}: its page was measured again, so drop it"
    if content is None:
        return f"the record on {letter.topic} is unreadable: restore it first (docs/how-to/recover.md)"
    return ""


def _content(log: Log, stored: StoredLetter) -> Message | None:
    """The record of a letter; for a damaged one, as its topic has it now; None if it is still damaged."""
    letter, message = stored.letter, stored.message
    if message.value:
        return message
    if letter.expired or letter.topic not in log.topics():
        return None
    again = next(iter(log.read(letter.topic, letter.partition, letter.offset, letter.offset + 1)), None)
    readable = again is not None and not again.damage and again.offset == letter.offset and again.value
    return again if readable else None
