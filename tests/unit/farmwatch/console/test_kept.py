"""Slow values: who waits for them, and who sees the last one."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from farmwatch.console.kept import Kept

FRESH_S = 10.0


class Source:
    """Numbers 1, 2, …, each found when the door is open; `error` is raised instead."""

    def __init__(self) -> None:
        self.now_s, self.count = 0.0, 0
        self.error: Exception | None = None
        self.door = threading.Event()
        self.door.set()
        self.kept = Kept(self.find, FRESH_S, threading.Lock(), lambda: self.now_s)

    def find(self) -> int:
        self.door.wait()
        if self.error is not None:
            raise self.error
        self.count += 1
        return self.count

    def get(self, after_s: float) -> int:
        self.now_s += after_s
        return self.kept.get().value


def finish(source: Source) -> None:
    """Wait until nothing is being found."""
    source.door.set()
    for thread in threading.enumerate():
        if thread.name == "find":
            thread.join()


def test_a_regular_visitor_does_not_wait() -> None:
    """After the first look a fresh value is shown again; an older one is shown while the next is found."""
    source = Source()
    assert [source.get(0), source.get(FRESH_S - 1)] == [1, 1]
    source.door.clear()
    assert [source.get(2), source.get(FRESH_S)] == [1, 1]
    finish(source)
    assert source.get(0) == 2


def test_a_visitor_after_a_pause_sees_the_present() -> None:
    """Nobody asked for longer than two periods, and nothing was found meanwhile: the request waits for the next."""
    source = Source()
    assert [source.get(0), source.get(3 * FRESH_S), source.get(100 * FRESH_S)] == [1, 2, 3]


def test_a_pause_does_not_make_a_request_wait_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes longer is shown at a later request."""
    monkeypatch.setattr("farmwatch.console.kept._LONGEST_S", 0.0)
    source = Source()
    source.get(0)
    source.door.clear()
    assert source.get(100 * FRESH_S) == 1
    finish(source)
    assert source.get(0) == 2


def test_an_error_is_not_kept() -> None:
    """It is raised, and the next request looks again; the last good value is not shown as if nothing had happened."""
    source = Source()
    source.get(0)
    source.error = ValueError("away")
    for _ in range(2):
        with pytest.raises(ValueError, match="away"):
            source.get(3 * FRESH_S)
    source.error = None
    assert source.get(0) == 2


def test_a_peek_does_not_wait_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives None until the value is there, which it asked for."""
    monkeypatch.setattr("farmwatch.console.kept._AT_ONCE_S", 0.0)
    source = Source()
    source.door.clear()
    assert source.kept.peek() is None
    finish(source)
    assert source.kept.peek() == 1


def test_each_look_has_its_time() -> None:
    """A value carries the time of its look."""
    found: Callable[[], int] = [7].pop
    assert Kept(found, FRESH_S, threading.Lock()).get().at > 1_600_000_000_000
