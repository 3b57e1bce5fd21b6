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


@pytest.mark.parametrize(("read", "counts"), [(False, (1, 0, 1)), (True, (0, 1, 0))])
def test_a_retry_waits_until_its_stage_reads_it(world: World, read: bool, counts: tuple[int, int, int]) -> None:
    """Until then the letter accounts for the record; then it excuses nothing, and without a result it is broken."""
    retry(world, read=read)
    report = world.report()
    step = report.steps[MEASURED]
    assert (step.dead, step.broken, report.waiting["measure"]) == counts
    assert report.ok is not read


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
