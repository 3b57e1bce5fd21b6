"""Slow work: once at a time, its result shown while the next is under way."""

from __future__ import annotations

import threading

import pytest

from farmwatch.console.jobs import Jobs, Working
from tests.support.waiting import wait_until


def test_a_result_is_kept_and_found_anew() -> None:
    """The first request is told that the work is under way; then its result is given, also while it is found anew."""
    now, gate, found = [0.0], threading.Event(), iter("ab")
    jobs = Jobs(lambda: now[0])

    def work(say: object) -> str:
        gate.wait()
        return next(found)

    with pytest.raises(Working, match="reading"):
        jobs.result("key", "reading", work, keep_s=10, wait_s=0)
    with pytest.raises(Working):
        jobs.result("key", "reading", work, keep_s=10, wait_s=0)
    gate.set()
    assert jobs.result("key", "reading", work, keep_s=10, wait_s=60) == "a"
    gate.clear()
    now[0] = 11.0
    assert jobs.result("key", "reading", work, keep_s=10, wait_s=0) == "a"
    gate.set()
    wait_until(lambda: jobs.result("key", "reading", work, keep_s=10, wait_s=0) == "b", "the next result")


def test_an_error_is_raised_to_the_request_and_tried_again() -> None:
    """What the work raised is raised once it is known, and the next look begins anew when it is old."""
    now, outcomes = [0.0], iter([ValueError("no"), None])
    jobs = Jobs(lambda: now[0])

    def work(say: object) -> str:
        if error := next(outcomes):
            raise error
        return "found"

    with pytest.raises(ValueError, match="no"):
        jobs.result("key", "", work, keep_s=1, wait_s=60)
    now[0] = 2.0
    assert jobs.result("key", "", work, keep_s=1, wait_s=60) == "found"


def test_work_begins_once_and_says_how_it_ended() -> None:
    """A second start while it is under way does nothing; its last word stays when texts of results are dropped."""
    gate, jobs = threading.Event(), Jobs()

    def work(say: object) -> str:
        gate.wait()
        return "removed"

    assert jobs.start(("forget", "a"), "Forgetting a", work)
    assert not jobs.start(("forget", "a"), "Forgetting a", work)
    gate.set()
    wait_until(lambda: jobs.said("forget")[0].done.is_set(), "the end")
    jobs.result("compared", "", lambda say: ["a text"], keep_s=100, wait_s=60)
    jobs.drop()
    assert [job.result for job in jobs.said("forget")] == ["removed"]
    assert jobs.result("compared", "", lambda say: ["new"], keep_s=100, wait_s=60) == ["new"]
