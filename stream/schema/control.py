"""The topic `control`: runs, rulesets and the alias of the live run; one writer at a time.

A writer joins the group `control` under one name, which fences the previous writer, and then writes the row `writer`:
all rows of earlier writers precede it. So of two concurrent writers, one gets `Fenced`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import msgspec

from stream.log.contract import Clock, Commit, Log, Member, Message, Output, wall_ms
from stream.log.errors import BadRecord, Fenced, LogUnavailable, StreamError
from stream.schema.control_rows import ControlRows, read_row
from stream.schema.runs import LAYOUT, Alias, Cutover, Run
from stream.schema.topics import CONTROL

_GROUP = "control"
_WRITER = "writer"
RUN_KEY = b"run/"  # and the name
_ALIAS_KEY, _WRITER_KEY, _SCORERS_KEY = b"alias/live", b"writer", b"score"
_OF_OTHERS = ("search", "writer", "score", "order", "forgotten", "panel")  # rows that are not about runs
_FENCED = "another process began to change the runs or dead letters of this log: this change was not written; try again"
_LOOK_EVERY_S = 0.1


class Scorers(msgspec.Struct, frozen=True, kw_only=True):
    """The detectors of SCORE since its last start; under `score`."""

    v: int = 1
    detectors: list[str]  # identities
    at: int = 0  # ms UTC


class Control:
    """Runs, rulesets, the alias `live` and its moves, as of the last `refresh`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows = ControlRows(log)
        self.runs: dict[str, Run] = {}
        self.rulesets: dict[str, str] = {}  # digest -> TOML text
        self.alias = Alias()
        self.cutovers: list[Cutover] = []
        self.scorers: Scorers | None = None  # None = SCORE never wrote its row
        self.refresh()

    def refresh(self) -> bool:
        """Read new rows; True if there were any.

        Raises SchemaTooNew; BadRecord while a key's newest row is unreadable.
        """
        return self._rows.take(self._take)

    @property
    def live(self) -> Run | None:
        """The live run; None before the first start of a live stage."""
        return self.runs.get(self.alias.run)

    def ruleset_text(self, run: Run) -> str:
        return self.rulesets.get(run.digest, "")

    def _take(self, message: Message) -> bool:
        key, value = message.key, message.value
        kind, _, name = key.decode(errors="replace").partition("/")
        if message.damage and kind in _OF_OTHERS:
            return False
        if message.damage:
            raise BadRecord(_unreadable(message, message.damage))
        if kind == "run":
            if value is None:
                self.runs.pop(name, None)
            else:
                self.runs[name] = read_row(message, Run, kind, LAYOUT)
        elif kind == "ruleset" and value is not None:
            try:
                self.rulesets[name] = value.decode()
            except UnicodeDecodeError as error:
                raise BadRecord(_unreadable(message, f"not a ruleset: {error}")) from error
        elif key == _ALIAS_KEY and value is not None:
            self.alias = read_row(message, Alias, kind, LAYOUT)
        elif key == _SCORERS_KEY and value is not None:
            self.scorers = read_row(message, Scorers, kind, LAYOUT)
        elif kind == "cutover" and value is not None:
            cutover = read_row(message, Cutover, kind, LAYOUT)
            self.cutovers = [other for other in self.cutovers if other.number != cutover.number] + [cutover]
        else:
            return False
        return True


class ControlWriter:
    """Appends changes until another writer begins."""

    def __init__(self, log: Log, member: Member, name: bytes, look_s: float) -> None:
        self._log = log
        self._member = member
        self._name = name
        self._look_s = look_s
        self._first = log.end(CONTROL)[0]
        self._failed = False

    def put(self, *rows: Run | Alias | Cutover, rulesets: Sequence[tuple[str, str]] = ()) -> None:
        """Append atomically. Raises as `Member.commit`; after an error it refuses all further changes."""
        outputs = [Output(CONTROL, 0, f"ruleset/{digest}".encode(), text.encode()) for digest, text in rulesets]
        outputs += [Output(CONTROL, 0, _key(row), msgspec.msgpack.encode(row)) for row in rows]
        self.append(outputs)

    def forget(self, run: str) -> None:
        self.append([Output(CONTROL, 0, f"run/{run}".encode(), None)])

    def claim(self) -> None:
        """Fence earlier writers; call it before reading. Raises as `put`."""
        self.append([Output(CONTROL, 0, _WRITER_KEY, self._name)])

    def append(self, outputs: Sequence[Output]) -> None:
        """Append records, also of other topics that one process at a time writes. Raises as `put`."""
        if self._failed:
            raise StreamError("an earlier change of the runs failed: read the runs again and start over")
        self._failed = True
        try:
            self._member.commit(Commit(outputs))
        except Fenced as error:
            raise Fenced(_FENCED) from error
        except LogUnavailable:
            # A broker gives the same answer to a writer fenced during a commit: the topic shows the outcome.
            if not self._look_up(outputs):
                raise
        self._failed = False

    def _look_up(self, outputs: Sequence[Output]) -> bool:
        """Check whether the changes were written. Raises Fenced if another writer took over, LogUnavailable."""
        give_up_at = time.monotonic() + self._look_s
        while True:
            newest: dict[bytes, bytes | None] = {}  # the last row of each key
            writer: bytes | None = None
            for message in self._log.read(CONTROL, 0, self._first):
                if message.key == _WRITER_KEY:
                    writer = message.value
                if writer == self._name:
                    newest[message.key] = message.value
            if newest.items() >= {(output.key, output.value) for output in outputs}:
                return True
            if writer not in (None, self._name):
                raise Fenced(_FENCED)
            if time.monotonic() > give_up_at:
                return False
            time.sleep(_LOOK_EVERY_S)


def write_scorers(log: Log, scorers: Scorers) -> None:
    """Write the detectors of SCORE. Only SCORE writes this row, so it needs no fencing. Raises as `Log.append`."""
    log.append([Output(CONTROL, 0, _SCORERS_KEY, msgspec.msgpack.encode(scorers))])


@contextmanager
def exclusive(log: Log, clock: Clock = wall_ms, look_s: float = 2.0) -> Iterator[ControlWriter]:
    """Open the only writer of `control`; read a `Control` inside. Raises Fenced, LogUnavailable.

    `look_s`: how long to look for a change without an answer; a writer that fenced this one writes its row sooner.
    """
    with closing(log.join(_GROUP, [CONTROL], member=_WRITER)) as member:
        writer = ControlWriter(log, member, f"{clock()} {uuid.uuid4()}".encode(), look_s)
        writer.claim()
        yield writer


def _key(row: Run | Alias | Cutover) -> bytes:
    if isinstance(row, Run):
        return f"run/{row.name}".encode()
    return _ALIAS_KEY if isinstance(row, Alias) else f"cutover/{row.number:08}".encode()


def _unreadable(message: Message, why: str) -> str:
    return (
        f"topic control, partition {message.partition} offset {message.offset}: {why}; the runs of this log are not"
        " known without it: restore the log from a backup"
    )
