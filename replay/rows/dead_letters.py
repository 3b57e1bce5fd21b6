"""The dead letters of a log, the state of each (open, retried, or dropped), and their settling.

Retrying a record and dropping a letter both leave the letter on its topic.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

from replay.runs.lookup import measuring_run, names_of_live
from replay.runs.topology import reads_of_live
from stream.log.contract import Log, Message, Output
from stream.processing.dead_letters import DeadLetter
from stream.processing.retries import Settlement, drop_of, retry_of, settlement_of
from stream.processing.topic_reader import OnBad, dead_letters_of
from stream.schema.control import Control, exclusive
from stream.schema.roles import STAGES, Role
from stream.schema.runs import LIVE, features_of, names_of, shown_run
from stream.schema.topics import DEAD_LETTERS, FEATURES, RETRIES
from stream.text.times import DAY_MS

MAX_RETRIES = 3  # of a record; further ones only with `again`
NEWEST = 100  # offsets of a partition in a look at the newest letters: a letter holds its record
_AT_ONCE, _AT_ONCE_BYTES = 500, 16 * 1024 * 1024  # letters and bytes of one commit


class LetterState(enum.StrEnum):
    """What became of a dead letter."""

    OPEN = "open"
    WAITING = "waiting"  # retried; its stage has not read the retry
    RETRIED = "retried"  # its stage has read the retry; if that failed, there is a new letter
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """A dead letter on its topic."""

    letter: DeadLetter
    message: Message
    state: LetterState

    @property
    def id(self) -> str:
        """Its place on the topic, which names it in commands."""
        return f"{self.message.partition}/{self.message.offset}"


@dataclass(slots=True)
class LetterGroup:
    """The letters of a stage and run with the same reason."""

    stage: str
    run: str
    reason: str
    states: Counter[LetterState]
    newest: StoredLetter

    @property
    def settled(self) -> str:
        """The numbers of the letters that are not open."""
        settled = sorted((state, count) for state, count in self.states.items() if state != LetterState.OPEN)
        return ", ".join(f"{count} {state}" for state, count in settled)


def letter_groups(letters: Iterable[StoredLetter]) -> list[LetterGroup]:
    """Letters by stage, run and reason."""
    groups: dict[tuple[str, str, str], LetterGroup] = {}
    for stored in letters:
        key = stored.letter.stage, stored.letter.run, stored.letter.reason
        group = groups.setdefault(key, LetterGroup(*key, Counter(), stored))
        group.states[stored.state] += 1
        if stored.message.timestamp_ms >= group.newest.message.timestamp_ms:
            group.newest = stored
    return list(groups.values())


class Settlements:
    """The settled letters of a log."""

    def __init__(self, log: Log, *, recent: bool = False) -> None:
        """Take the offsets of the live groups before any letter: a retry that counts as read has left its result.

        `recent`: of each partition, only those after its first letter that is asked for, with a day for wrong clocks.
        """
        self._log, self._recent = log, recent
        self._committed: dict[str, list[int | None]] = {}
        self._of_partition: dict[int, dict[int, Settlement]] = {}
        for group in reads_of_live(names_of_live(Control(log))):
            self._committed[group] = log.committed(group, RETRIES)

    def state_of(self, message: Message, letter: DeadLetter) -> LetterState:
        if message.partition not in self._of_partition:
            since_ms = message.timestamp_ms - DAY_MS
            first = self._log.offset_at(RETRIES, since_ms)[message.partition] if self._recent else 0
            settlements = map(settlement_of, self._log.read(RETRIES, message.partition, first))
            self._of_partition[message.partition] = {each.letter: each for each in settlements if each is not None}
        settlement = self._of_partition[message.partition].get(message.offset)
        if settlement is None:
            return LetterState.OPEN
        if not settlement.is_retry:
            return LetterState.DROPPED
        group = group_of(letter.stage, letter.run)
        if group not in self._committed:
            self._committed[group] = self._log.committed(group, RETRIES)
        read = self._committed[group][message.partition] or 0
        return LetterState.RETRIED if read > settlement.offset else LetterState.WAITING


def read_letters(log: Log, on_bad: OnBad | None = None, *, newest: bool = False) -> Iterator[StoredLetter]:
    """The dead letters by partition and offset, which is the order in which their records failed.

    `newest`: only the last NEWEST offsets of each partition.
    """
    if DEAD_LETTERS not in log.topics():
        return
    settlements = Settlements(log, recent=newest)
    for partition, (first, end) in enumerate(zip(log.beginning(DEAD_LETTERS), log.end(DEAD_LETTERS), strict=True)):
        start = max(first, end - NEWEST) if newest else first
        if start == end:  # on a broker a look at nothing takes a request
            continue
        for message, letter in dead_letters_of(log.read(DEAD_LETTERS, partition, start, end), on_bad):
            yield StoredLetter(letter, message, settlements.state_of(message, letter))


def older_letters(log: Log) -> int:
    """The offsets of dead letters before the newest."""
    if DEAD_LETTERS not in log.topics():
        return 0
    spans = zip(log.beginning(DEAD_LETTERS), log.end(DEAD_LETTERS), strict=True)
    return sum(max(0, end - first - NEWEST) for first, end in spans)


def read_letter(log: Log, partition: int, offset: int) -> StoredLetter | None:
    """The dead letter at this place; None if there is none."""
    if partition >= log.topics().get(DEAD_LETTERS, 0):
        return None
    settlements = Settlements(log)
    letters = dead_letters_of(log.read(DEAD_LETTERS, partition, offset, offset + 1))
    return next((StoredLetter(letter, m, settlements.state_of(m, letter)) for m, letter in letters), None)


def group_of(stage: str, run: str) -> str:
    """The group of the stage and run that wrote a letter."""
    run = run or LIVE
    names = names_of(run, FEATURES if run == LIVE else features_of(run))
    own = {Role.MEASURE: names.measure_group, Role.JUDGE: names.judge_group, Role.TALLY: names.tally_group}
    return own.get(Role(stage), stage) if stage in STAGES else stage


def has_reader(control: Control, letter: DeadLetter) -> bool:
    """Whether a live stage processes the records of the letter's stage and run, from the letter's topic."""
    names = names_of_live(control)
    served = {Role.MEASURE: measuring_run(names.features), Role.JUDGE: control.alias.run, Role.TALLY: control.alias.run}
    if letter.stage in served and letter.run not in ("", served[Role(letter.stage)]):
        return False
    of_stage = dict(zip(STAGES, reads_of_live(names).values(), strict=True))
    return letter.stage in STAGES and letter.topic in of_stage[Role(letter.stage)]


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
            outcome.settled[stored.letter.stage, stored.letter.reason] += 1
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
