"""The time of a process while its wall clock is set, on simulated clocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from stream.processing.metrics import Metrics
from stream.processing.steady_clock import SteadyClock
from tests.support.logs.loops import count
from tests.support.set_clock import SetClock

HOUR_S, YEAR_S = 3600.0, 365 * 86_400.0


def watched(machine: SetClock, clock: Callable[[], int], seconds: int) -> list[int]:
    """How far the time of the process is from the truth, each second."""
    found = []
    for _ in range(seconds):
        machine.run(1.0)
        found.append(clock() - machine.true_ms)
    return found


@pytest.mark.parametrize("off_s", [HOUR_S, YEAR_S, -HOUR_S, 4.0])
@pytest.mark.parametrize("before_s", [5, 5000])
def test_a_short_step_changes_nothing(off_s: float, before_s: int) -> None:
    """Whether the process is young or old, time goes on evenly; the step is counted and logged once."""
    machine, metrics = SetClock(), Metrics()
    clock = SteadyClock(metrics, machine, machine.monotonic)
    watched(machine, clock, before_s)
    with capture_logs() as logs:
        machine.set(off_s)
        assert set(watched(machine, clock, 10)) == {0}
        machine.set(0.0)
        assert set(watched(machine, clock, 10)) == {0}
    assert [entry["event"] for entry in logs] == ["clock_stepped"]
    steps = {way: count(metrics, "clock_steps_total", direction=way) for way in ("forward", "back")}
    assert steps == {"forward": float(off_s > 0), "back": float(off_s < 0)}


def test_a_lasting_step_is_believed_once_it_has_lasted_as_long_as_the_clock_before() -> None:
    """After at most an hour, in one step."""
    for before_s, needed_s in ((5, 60), (600, 600), (90_000, 3600)):
        machine = SetClock()
        clock = SteadyClock(None, machine, machine.monotonic)
        watched(machine, clock, before_s)
        machine.set(HOUR_S)
        off_ms = watched(machine, clock, 4000)
        assert set(off_ms) == {0, 3_600_000} and off_ms == sorted(off_ms)
        assert abs(off_ms.count(0) - needed_s) <= 1


def test_a_clock_that_was_wrong_at_the_start_is_soon_corrected() -> None:
    """A machine that gets its time after the process began: within a minute, or as long as it was wrong."""
    machine = SetClock()
    machine.set(-YEAR_S)
    clock = SteadyClock(None, machine, machine.monotonic)
    watched(machine, clock, 20)
    machine.set(0.0)
    assert watched(machine, clock, 62)[-1] == 0


def test_small_changes_are_followed_at_once() -> None:
    """A time service that slews the clock by a millisecond a second is no step, however far it goes."""
    machine, metrics = SetClock(), Metrics()
    clock = SteadyClock(metrics, machine, machine.monotonic)
    for second in range(10_000):
        machine.set(second / 1000)
        assert watched(machine, clock, 1) == [machine.off_ms]
    assert count(metrics, "clock_steps_total", direction="forward") == 0


def test_a_clock_that_leaps_about_is_not_believed() -> None:
    """Each new wall clock has to last: one that changes every half minute never does."""
    machine = SetClock()
    clock = SteadyClock(None, machine, machine.monotonic)
    watched(machine, clock, 100)
    for number in range(1, 20):
        machine.set(number * HOUR_S)
        assert set(watched(machine, clock, 30)) == {0}
