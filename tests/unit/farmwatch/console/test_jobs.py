"""Slow work: once at a time, its result shown while the next is under way."""

from __future__ import annotations

import threading

import pytest

from farmwatch.console.jobs import COMPARE, WALK, Jobs, Working
from tests.support.waiting import wait_until


def test_a_result_is_kept_and_found_anew() -> None:
    """The first requests raise Working. Later ones get the result, also while the next one is computed."""
    now, gate, found = [0.0], threading.Event(), iter("ab")
    jobs = Jobs(lambda: now[0])

    def work() -> str:
        gate.wait()
        return next(found)

    with pytest.raises(Working, match="reading"):
        jobs.result(("key",), "reading", work, keep_s=10, patience_s=0)
    with pytest.raises(Working):
        jobs.result(("key",), "reading", work, keep_s=10, patience_s=0)
    gate.set()
    assert jobs.result(("key",), "reading", work, keep_s=10, patience_s=60) == "a"
    gate.clear()
    now[0] = 11.0
    assert jobs.result(("key",), "reading", work, keep_s=10, patience_s=0) == "a"
    gate.set()
    wait_until(lambda: jobs.result(("key",), "reading", work, keep_s=10, patience_s=0) == "b", "the next result")


def test_an_error_is_raised_to_the_request_and_tried_again() -> None:
    """What the work raised is raised once; the next request looks again."""
    outcomes, jobs = iter([ValueError("no"), None]), Jobs()

    def work() -> str:
        if error := next(outcomes):
            raise error
        return "found"

    with pytest.raises(ValueError, match="no"):
        jobs.result(("key",), "", work, keep_s=1, patience_s=60)
    assert jobs.result(("key",), "", work, keep_s=1, patience_s=60) == "found"


def test_work_begins_once_and_says_how_it_ended() -> None:
    """A second start while it is under way does nothing; its last word stays when texts of results are dropped."""
    gate, jobs = threading.Event(), Jobs()

    def work() -> str:
        gate.wait()
        return "removed"

    assert jobs.start(("forget", "a"), "Forgetting a", work)
    assert not jobs.start(("forget", "a"), "Forgetting a", work)
    gate.set()
    wait_until(lambda: jobs.of("forget")[0].done.is_set(), "the end")
    jobs.result(("compared",), "", lambda: ["a text"], keep_s=100, patience_s=60)
    jobs.drop()
    assert [job.result for job in jobs.of("forget")] == ["removed"]
    assert jobs.result(("compared",), "", lambda: ["new"], keep_s=100, patience_s=60) == ["new"]


def test_a_result_that_was_under_way_is_dropped_too() -> None:
    """It may have read the host before it was forgotten: who waits gets it, later requests look again."""
    gate, found, jobs = threading.Event(), iter((["old"], ["new"])), Jobs()

    def work() -> list[str]:
        gate.wait()
        return next(found)

    with pytest.raises(Working):
        jobs.result(("compared",), "", work, keep_s=100, patience_s=0)
    jobs.drop()
    gate.set()
    wait_until(lambda: jobs.finished == 1, "its end")
    assert jobs.result(("compared",), "", work, keep_s=100, patience_s=60) == ["new"]


def test_orders_and_comparisons_delay_no_page() -> None:
    """Removals of hosts wait for minutes for the stages, other works take minutes; meanwhile results are found."""
    gate, jobs = threading.Event(), Jobs()
    for name in "abc":
        jobs.start(("forget", name), "", lambda: str(gate.wait()))
        for kind in (COMPARE, WALK):
            with pytest.raises(Working):
                jobs.result((kind, name), "", gate.wait, keep_s=100, patience_s=0)
    assert jobs.result(("status",), "", lambda: "found", keep_s=100, patience_s=60) == "found"
    gate.set()


def test_a_visitor_after_a_pause_sees_the_present() -> None:
    """Nobody asked for longer than two periods: the request waits for the next result, a regular one does not."""
    now, found = [0.0], iter(range(9))
    jobs = Jobs(lambda: now[0], glance_s=60)
    seen = []
    for pause_s in (0, 9, 30, 300):
        now[0] += pause_s
        seen.append(jobs.result(("key",), "", lambda: next(found), keep_s=10, patience_s=60))
    assert seen == [0, 0, 1, 2]


def test_a_result_is_as_new_as_each_request_wants_it() -> None:
    """Labels are of one comparison, however old; the page of the comparison is of the present all the same."""
    now, found = [0.0], iter("ab")
    jobs = Jobs(lambda: now[0], glance_s=60)
    seen = []
    for keep_s in (float("inf"), 10, float("inf")):
        seen.append(jobs.result(("key",), "", lambda: next(found), keep_s, patience_s=60))
        now[0] += 100
    assert seen == ["a", "b", "b"]


def test_slow_work_takes_a_small_part_of_the_time() -> None:
    """What took 5 s is not looked for again within 100 s, however often it is asked for."""
    now, found = [0.0], iter(range(9))
    jobs = Jobs(lambda: now[0], glance_s=60)

    def work() -> int:
        now[0] += 5
        return next(found)

    seen = []
    for pause_s in (0, 50, 49, 1000):
        now[0] += pause_s
        seen.append(jobs.found(("key",), "", work, keep_s=10, patience_s=60))
    assert [one.value for one in seen] == [0, 0, 0, 1] and seen[0].at > 1_600_000_000_000
