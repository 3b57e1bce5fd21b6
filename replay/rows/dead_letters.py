"""The dead letters of a log, and the state of each: open, retried, or dropped."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replay.runs.lookup import measuring_run, names_of_live
from replay.runs.topology import reads_of_live
from stream.log.contract import Log, Message
from stream.processing.dead_letters import DeadLetter
from stream.processing.retries import Settlement, settlement_of
from stream.processing.topic_reader import OnBad, dead_letters_of
from stream.schema.control import Control
from stream.schema.roles import STAGES, Role
from stream.schema.runs import LIVE, features_of, names_of
from stream.schema.topics import DEAD_LETTERS, FEATURES, RETRIES


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

    @property
    def reason(self) -> str:
        return self.letter.error.partition(":")[0]


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
        return settled_in_words(self.states)


def settled_in_words(states: Counter[LetterState]) -> str:
    """The numbers of the letters that are not open."""
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()) if state != LetterState.OPEN)


def letter_groups(letters: Iterable[StoredLetter]) -> list[LetterGroup]:
    """Letters by stage, run and reason."""
    groups: dict[tuple[str, str, str], LetterGroup] = {}
    for stored in letters:
        key = stored.letter.stage, stored.letter.run, stored.reason
        group = groups.setdefault(key, LetterGroup(*key, Counter(), stored))
        group.states[stored.state] += 1
        if stored.message.timestamp_ms >= group.newest.message.timestamp_ms:
            group.newest = stored
    return list(groups.values())


class Settlements:
    """The settled letters of a log."""

    def __init__(self, log: Log) -> None:
        """Take the offsets of the live groups before any letter: a retry that counts as read has left its result."""
        self._log = log
        self._committed: dict[str, list[int | None]] = {}
        self._of_partition: dict[int, dict[int, Settlement]] = {}
        for group in reads_of_live(names_of_live(Control(log))):
            self._committed[group] = log.committed(group, RETRIES)

    def state_of(self, message: Message, letter: DeadLetter) -> LetterState:
        if message.partition not in self._of_partition:
            settlements = map(settlement_of, self._log.read(RETRIES, message.partition))
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


def read_letters(log: Log, on_bad: OnBad | None = None, *, newest: int | None = None) -> Iterator[StoredLetter]:
    """The dead letters by partition and offset, which is the order in which their records failed.

    `newest`: only so many offsets of each partition, for a letter holds its record.
    """
    if DEAD_LETTERS not in log.topics():
        return
    settlements = Settlements(log)
    for partition, end in enumerate(log.end(DEAD_LETTERS)):
        start = 0 if newest is None else max(0, end - newest)
        for message, letter in dead_letters_of(log.read(DEAD_LETTERS, partition, start, end), on_bad):
            yield StoredLetter(letter, message, settlements.state_of(message, letter))


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
