"""What `control` says of runs: read cheaply, and changed by one process at a time.

Whoever changes it joins the group `control` under one name, which fences whoever was at it before: of two that change
it at once, one finds its commit refused (`Fenced`) and is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from stream.clock import Clock, wall_ms
from stream.errors import Fenced, SchemaTooNew
from stream.log import Commit, Log, Member, Output
from stream.runs import Alias, Cutover, Run
from stream.topics import CONTROL

_GROUP = "control"
_WRITER = "writer"
_READ, _ALIAS_KEY = 1, b"alias/live"  # newest schema that this code reads
_JOIN_S = 30.0
Kept = TypeVar("Kept", Run, Alias, Cutover)


class Control:
    """Runs, rulesets, the alias `live` and its moves, as they stood at the last `refresh`."""

    def __init__(self, log: Log) -> None:
        """Read what is there; nothing where the topic was not created yet. Raises as `Log.read`, and SchemaTooNew."""
        self._log = log
        self._next = 0
        self.runs: dict[str, Run] = {}
        self.rulesets: dict[str, str] = {}  # digest -> TOML text
        self.alias = Alias()
        self.cutovers: list[Cutover] = []
        self.refresh()

    def refresh(self) -> bool:
        """Take in what was appended since; whether anything of this was."""
        if CONTROL not in self._log.topics():
            return False
        first, end = self._log.beginning(CONTROL)[0], self._log.end(CONTROL)[0]
        changed = False
        for message in self._log.read(CONTROL, 0, max(first, self._next), end) if end > self._next else ():
            changed |= self._take(message.key, message.value)
        self._next = max(self._next, end)
        return changed

    @property
    def live(self) -> Run | None:
        """The run that is live; None while no live stage has ever begun."""
        return self.runs.get(self.alias.run)

    def ruleset_text(self, run: Run) -> str:
        """TOML text of a run's ruleset."""
        return self.rulesets[run.digest]

    def _take(self, key: bytes, value: bytes | None) -> bool:
        kind, _, name = key.decode(errors="replace").partition("/")
        if kind == "run":
            if value is None:
                self.runs.pop(name, None)
            else:
                self.runs[name] = _read(value, Run)
        elif kind == "ruleset" and value is not None:
            self.rulesets[name] = value.decode()
        elif key == _ALIAS_KEY and value is not None:
            self.alias = _read(value, Alias)
        elif kind == "cutover" and value is not None:
            self.cutovers.append(_read(value, Cutover))
        else:
            return False
        return True


class ControlWriter:
    """Appends changes, as long as nobody else has begun to."""

    def __init__(self, member: Member) -> None:
        """Use `exclusive`."""
        self._member = member

    def put(self, *rows: Run | Alias | Cutover, rulesets: Sequence[tuple[str, str]] = ()) -> None:
        """Append rows, and rulesets as (digest, text): all or nothing. Raises Fenced where another took over."""
        outputs = [Output(CONTROL, 0, f"ruleset/{digest}".encode(), text.encode()) for digest, text in rulesets]
        outputs += [Output(CONTROL, 0, _key(row), msgspec.msgpack.encode(row)) for row in rows]
        self._member.commit(Commit(outputs))

    def forget(self, run: str) -> None:
        """Remove a run's row."""
        self._member.commit(Commit([Output(CONTROL, 0, f"run/{run}".encode(), None)]))


@contextmanager
def exclusive(log: Log, clock: Clock = wall_ms) -> Iterator[ControlWriter]:
    """The one that may change `control`, until another one begins. Read a `Control` inside, then write.

    Raises LogUnavailable, and Fenced where others begin all the time.
    """
    member = log.join(_GROUP, [CONTROL], member=_WRITER)
    try:
        until = clock() + int(1000 * _JOIN_S)
        while 0 not in member.assignment():
            member.poll(0.05, 1, 1)
            if clock() > until:
                raise Fenced("others change the runs of this log all the time: try again")
        yield ControlWriter(member)
    finally:
        member.close()


def _key(row: Run | Alias | Cutover) -> bytes:
    if isinstance(row, Run):
        return f"run/{row.name}".encode()
    return _ALIAS_KEY if isinstance(row, Alias) else f"cutover/{row.number:08}".encode()


def _read(value: bytes, kind: type[Kept]) -> Kept:
    try:
        row = msgspec.msgpack.decode(value, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SchemaTooNew(f"control: a {kind.__name__} that this farmwatch cannot read: {error}") from error
    if row.v > _READ:
        raise SchemaTooNew(f"control: a {kind.__name__} of schema {row.v}, this farmwatch reads up to {_READ}")
    return row

