"""Retried dead letters in an audit: a record waits, is done, or is missing; never both."""

from __future__ import annotations

import pytest

from farmwatch.audit.scope import JUDGED, MEASURED
from stream.processing.retries import drop_of, retry_of
from stream.schema.topics import DEAD_LETTERS, PAGES, RETRIES
from tests.support.runs.audit_world import SITE, World


@pytest.fixture
def world() -> World:
    """A page that MEASURE dead-lettered."""
    world = World()
    world.page("1")
    world.bury("measure", PAGES, 0, SITE)
    world.row(pages=0, articles=0)
    return world


def retry(world: World, *, read: bool) -> None:
    (letter,) = world.log.read(DEAD_LETTERS, 0)
    world.log.append([retry_of(letter, letter)])
    if read:
        world.log.reset("measure", RETRIES, world.log.end(RETRIES))


def test_a_retry_waits_until_its_stage_reads_it(world: World) -> None:
    """The record is still accounted for by its letter; the report says that MEASURE has work."""
    retry(world, read=False)
    report = world.report()
    assert report.ok
    assert (report.steps[MEASURED].dead, report.waiting["measure"]) == (1, 1)


def test_a_retry_that_left_no_result_is_broken(world: World) -> None:
    """Once MEASURE has read the retry, the letter excuses nothing."""
    retry(world, read=True)
    report = world.report()
    assert not report.ok
    assert (report.steps[MEASURED].dead, report.steps[MEASURED].broken) == (0, 1)


def test_a_retried_page_counts_once(world: World) -> None:
    """Its result makes it done; a second result is reported as written twice."""
    retry(world, read=True)
    world.features("1")
    world.bury("judge", "features", 0, SITE)
    report = world.report()
    assert report.ok
    assert (report.steps[MEASURED].done, report.steps[JUDGED].dead) == (1, 1)
    world.features("1")
    assert "written twice" in [found.how for found in world.report().broken]


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_dropped_letter_and_a_new_one_are_the_reason(world: World, is_dropped: bool) -> None:
    """Dropping does not hide that the page has no result; after a retry that failed again its new letter says why."""
    if is_dropped:
        (letter,) = world.log.read(DEAD_LETTERS, 0)
        world.log.append([drop_of(letter)])
    else:
        retry(world, read=True)
        world.bury("measure", PAGES, 0, SITE)
    report = world.report()
    assert report.ok
    assert report.steps[MEASURED].dead == 1
