"""A log without its forgotten hosts and the hits of undone imports: the one place at which readers do not see them.

A record of a forgotten host reads as a tombstone without a key, so offsets have no gap. Appended records of such a host
are dropped. When a host is forgotten, each member drops what it has read and cached, deletes the host's state in its
partitions, and reads on from its committed offsets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from stream.log.contract import NO_HEADERS, At, Commit, Log, Member, Message, Output, StateChange, StateReader
from stream.log.errors import Fenced, LogUnavailable
from stream.log.forwarding import ForwardingLog, ForwardingMember
from stream.schema.forgotten import Forgotten, site_of_key
from stream.schema.imports import Imports, import_of
from stream.schema.topics import CONTROL, HITS, RATES

Sweep = Callable[[StateReader, Callable[[str], bool]], Sequence[StateChange]]
"""From state, and whether a site is forgotten: the changes that remove such sites."""

LOOK_S = 1.0  # between two looks at the ledger
_NOT_OF_SITES = (CONTROL, RATES)
_VERSIONS = 1 << 40  # added to the ownership epochs for each version of the ledger
_PAGE = 1000  # rows read at a time


def masked(log: Log, sweeps: Mapping[str, Sweep] | None = None, look_s: float = LOOK_S) -> Log:
    """`log` without its forgotten hosts. `sweeps`: of stores that keep sums over their sites. Raises as `Forgotten`."""
    return _MaskedLog(log, sweeps or {}, look_s)


def sweep_keys(state: StateReader, is_forgotten: Callable[[str], bool]) -> list[StateChange]:
    """Delete all rows whose keys begin with a forgotten site; one lookup for each other site."""
    changes: list[StateChange] = []
    after: bytes | None = None
    while rows := state.scan(b"", 1, after):
        key = rows[0][0]
        site = site_of_key(key)
        changes += (StateChange(row, None) for row in keys_of(state, site)) if is_forgotten(site) else ()
        after = max(key, b"%s\0\xff" % site.encode())
    return changes


def keys_of(state: StateReader, site: str) -> Iterator[bytes]:
    """The keys of the state of a site."""
    name = site.encode()
    if state.get(name) is not None:
        yield name
    for prefix in (name + b" ", name + b"\0"):
        after: bytes | None = None
        while page := state.scan(prefix, _PAGE, after):
            yield from (key for key, _ in page)
            after = page[-1][0]


class _Mask:
    """The ledger, read every `look_s` at most; any thread may use it."""

    def __init__(self, log: Log, look_s: float) -> None:
        self._look_s = look_s
        self._lock = threading.Lock()
        self.forgotten = Forgotten(log)
        self._imports = Imports(log)
        self._looked_at = time.monotonic()

    def look(self, *, at_once: bool = False) -> int:
        """The version of the ledger and of undone imports; 0 without any. While the log is away, the last known one."""
        if at_once or time.monotonic() - self._looked_at >= self._look_s:
            with self._lock, suppress(LogUnavailable):
                self.forgotten.refresh()
                self._imports.refresh()
            self._looked_at = time.monotonic()
        return self.forgotten.version + self._imports.version

    def covers(self, record: Message | Output) -> bool:
        """Whether the record is of a forgotten host."""
        return record.topic not in _NOT_OF_SITES and self.forgotten.covers(site_of_key(record.key))

    def blank(self, message: Message) -> Message:
        """The message, or a tombstone in its place."""
        is_undone = message.topic == HITS and import_of(message.headers) in self._imports.undone
        if not (is_undone or self.covers(message)):
            return message
        return replace(message, key=b"", value=None, headers=NO_HEADERS, damage="", may_return=False)


class _MaskedLog(ForwardingLog):
    """See `masked`."""

    def __init__(self, log: Log, sweeps: Mapping[str, Sweep], look_s: float) -> None:
        super().__init__(log)
        self._sweeps = sweeps
        self._mask = _Mask(log, look_s)

    def append(self, outputs: Sequence[Output]) -> list[int]:
        if self._mask.look():
            outputs = [output for output in outputs if not self._mask.covers(output)]
        return self._log.append(outputs)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        return self._masked(self._log.read(topic, partition, start, stop))

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        return self._masked(self._log.read_all(ranges))

    def dump_state(self, store: str, partition: int) -> Iterator[StateChange]:
        entries = self._log.dump_state(store, partition)
        if not self._mask.look():
            return entries
        return (entry for entry in entries if not self._mask.forgotten.covers(site_of_key(entry.key)))

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        member: str,
        store: str | None = None,
        background: Collection[str] = (),
    ) -> Member:
        joined = self._log.join(group, topics, member=member, store=store, background=background)
        sweep = None if store is None else self._sweeps.get(store, sweep_keys)
        return _MaskedMember(joined, self._mask, sweep)

    def _masked(self, messages: Iterator[Message]) -> Iterator[Message]:
        return map(self._mask.blank, messages) if self._mask.look() else messages


class _MaskedMember(ForwardingMember):
    """A member that follows the ledger in its polls and commits."""

    def __init__(self, member: Member, mask: _Mask, sweep: Sweep | None) -> None:
        super().__init__(member)
        self._mask = mask
        self._sweep = sweep
        self._version = mask.look(at_once=True)  # `hits undo` relies on it
        self._swept: dict[int, int] = {}  # partition -> ownership epoch

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        version = self._mask.look()
        if version != self._version:
            self._version = version
            self._swept.clear()
            self._member.rewind()
        messages = self._member.poll(timeout_s, max_records, max_bytes)
        if not version:
            return messages
        if self._sweep is not None and self._mask.forgotten.is_pending:
            owned = self._member.assignment()
            changes = {}
            for partition, epoch in owned.items():
                if self._swept.get(partition) != epoch:
                    removed = self._sweep(self._member.state(partition), self._mask.forgotten.covers)
                    if removed:
                        changes[partition] = removed
            if changes:
                self._member.commit(Commit(state=changes))
            self._swept = dict(owned)
        return [self._mask.blank(message) for message in messages]

    def assignment(self) -> Mapping[int, int]:
        """The epochs grow with the ledger: what was read and cached before is dropped."""
        return {partition: epoch + self._version * _VERSIONS for partition, epoch in self._member.assignment().items()}

    def commit(self, commit: Commit) -> None:
        """See `Member.commit`. Raises Fenced if a host was forgotten since the last poll."""
        if self._mask.look() != self._version:
            raise Fenced("a host was forgotten meanwhile: the batch is read again without it")
        self._member.commit(commit)
