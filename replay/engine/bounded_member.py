"""A group member that reads up to the stops of a run and waits for the live run.

Offsets have gaps (transaction markers, compaction), so a position may be below the stop with no record in between. The
owner of the partition checks this and commits the stop. The committed offsets then show to every process, and to
`farmwatch runs`, that the partition is done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from replay.engine.throttle import LiveFirstThrottle
from replay.runs.topology import Stops
from stream.log.contract import At, Commit, Log, Member, Message
from stream.log.forwarding import ForwardingMember
from stream.schema.runs import Gap
from stream.schema.topics import SCORES

_CHECK_S = 0.2  # between checks for a gap before the stop; longest poll below stops
_ENDLESS = sys.maxsize  # the stop of a topic without one
_ALIVE_S = 1.0  # between polls that keep the membership alive while the replay waits


@dataclass(eq=False)
class BoundedMember(ForwardingMember):
    """A `Member` that delivers nothing at or beyond `stops`; without stops it only waits for the live run.

    Heartbeats are delivered, so that their offsets are committed; the stages of a replay drop them. Records that
    expired unread are not delivered: `on_gap` records them, perhaps more than once, before a commit hides them. A dead
    letter would count them twice. `on_advance` gets the number of committed offsets.
    """

    _member: Member  # of `group`, joined with `topics`
    log: Log
    group: str
    topics: Sequence[str]
    stops: Stops = field(default_factory=dict)
    _: KW_ONLY
    throttle: LiveFirstThrottle | None = None
    on_gap: Callable[[Gap], None] = lambda _: None
    on_advance: Callable[[int], None] = lambda _: None
    monotonic: Callable[[], float] = time.monotonic
    _owned: Mapping[int, int] = field(default_factory=dict)
    _next: dict[At, int] = field(default_factory=dict)  # committed offsets of owned partitions
    _delivered: dict[At, int] = field(default_factory=dict)  # position after the last delivered record
    _done: set[int] = field(default_factory=set)
    _held: set[int] | None = field(default_factory=set)  # partitions that the loop has paused; None = all
    _checked_s: float = float("-inf")
    _kept_s: float = float("-inf")

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> list[Message]:
        if self._held is not None and self.throttle is not None and self.throttle.hold(timeout_s):
            now = self.monotonic()
            if now - self._kept_s >= _ALIVE_S:
                self._kept_s = now
                self._member.pause()
                self._member.poll(0, 1, 1)
                self._apply_pauses()
            return []
        messages = self._member.poll(min(timeout_s, _CHECK_S) if self.stops else timeout_s, max_records, max_bytes)
        self._follow_assignment()
        delivered = []
        for message in messages:
            at = At(message.topic, message.partition)
            if message.expired:
                last, done = message.offset + 1, self._next.get(at, 0)
                self._report_gap(at, max(last - message.expired, done), min(last, self._stop(at)))
                if self._delivered.get(at, 0) <= done < last:  # else earlier records wait for a commit
                    self._next[at] = last
                    self._pause_done()
            elif message.offset < self._stop(at):
                delivered.append(message)
                self._delivered[at] = message.offset + 1
        if not delivered and self.stops and self._held is not None:
            self._pass_gaps()
        return delivered

    def commit(self, commit: Commit) -> None:
        self._member.commit(commit)
        advanced = 0
        for at, offset in commit.offsets.items():
            advanced += offset - self._next.get(at, offset)
            self._next[at] = offset
        self._pause_done()
        if advanced > 0:
            self.on_advance(advanced)

    def rewind(self) -> None:
        self._delivered.clear()
        self._member.rewind()

    def pause(self, partitions: Iterable[int] | None = None) -> None:
        if partitions is None or self._held is None:
            self._held = None
            self._member.pause()
        else:
            self._held |= set(partitions)
            self._member.pause(self._held)

    def resume(self) -> None:
        self._held = set()  # finished partitions stay paused
        self._apply_pauses()

    def lag(self) -> Mapping[At, int]:
        lag = self._member.lag()
        return {at: max(0, min(behind, self._stop(at) - self._next.get(at, 0))) for at, behind in lag.items()}

    def _stop(self, at: At) -> int:
        stops = self.stops.get(at.topic)
        return _ENDLESS if stops is None else stops[at.partition]

    def _follow_assignment(self) -> None:
        owned = self._member.assignment()
        if owned == self._owned:
            return
        self._owned = dict(owned)
        self._delivered = {at: offset for at, offset in self._delivered.items() if at.partition in owned}
        committed = {topic: self.log.committed(self.group, topic) for topic in self.topics}
        self._next = {
            At(topic, partition): offsets[partition] or 0
            for topic, offsets in committed.items()
            for partition in owned
            if partition < len(offsets)
        }
        self._done = set()
        self._pause_done()

    def _pause_done(self) -> None:
        if not self.stops:
            return
        open_ones = {at.partition for at, offset in self._next.items() if offset < self._stop(at)}
        done = set(self._owned) - open_ones
        if done != self._done:
            self._done = done
            self._apply_pauses()

    def _apply_pauses(self) -> None:
        self._member.resume()
        if self._held is None:
            self._member.pause()
        elif self._done or self._held:
            self._member.pause(self._done | self._held)

    def _pass_gaps(self) -> None:
        """Commit the stop if no record is left before it."""
        now = self.monotonic()
        if now - self._checked_s < _CHECK_S:
            return
        self._checked_s = now
        passed: dict[At, int] = {}
        for at, offset in self._next.items():
            stop = self._stop(at)
            waits = self._delivered.get(at, offset) > offset  # delivered records, for their commit
            if at.topic not in self.stops or offset >= stop or waits:
                continue
            if next(iter(self.log.read(at.topic, at.partition, offset, stop)), None) is None:
                self._report_gap(at, offset, min(stop, self.log.beginning(at.topic)[at.partition]))
                passed[at] = stop
        if passed:
            self.commit(Commit(offsets=passed))

    def _report_gap(self, at: At, first: int, last: int) -> None:
        if first < last and at.topic != SCORES:  # compaction loses no score
            self.on_gap(Gap(at.topic, at.partition, first, last))
