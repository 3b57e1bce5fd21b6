"""The audit of terms: the row of each follows from the log, and none may be missing, different or one too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from farmwatch.audit.scope import TALLIED
from scoring.stages.site_tally import term_key
from stream.memory.log import MemoryLog
from stream.schema.records import SiteState
from stream.schema.topics import SITE_TERMS, SITES
from tests.support.logs.tally_desk import DAY_MS, SITE, Desk, page, score
from tests.support.runs.audit_world import World

DETECTOR = "d/1"
FIRST = 20_000 * DAY_MS
TERM = 90 * DAY_MS


def fed(*pages_of_terms: int, flag_later: bool = False) -> tuple[World, Desk]:
    """A log with the verdicts and scores of a site in some terms, and TALLY's desk that has them."""
    world, desk = World(MemoryLog(clock=lambda: FIRST + TERM + DAY_MS)), Desk(DETECTOR)
    for term, pages in enumerate(pages_of_terms):
        for number in range(pages):
            text = f"t{term}{number}"
            judged = page(number, visit=FIRST + term * TERM + number, text=text, first_at=FIRST)
            scored = score(text, flag_later and term > 0, DETECTOR)
            world.put("verdicts", judged)
            world.put("scores", scored, f"{SITE} {scored.id}")
            desk.feed(judged, scored)
    return world, desk


def world_of(change: Callable[[SiteState], SiteState | None] = lambda row: row) -> World:
    """A log with a site in two terms and its rows; `change` is done to that of the first, None leaves it out."""
    world, desk = fed(4, 4, flag_later=True)
    world.put(SITES, desk.rows[-1])
    first = change(desk.terms[0])
    if first is not None:
        world.put(SITE_TERMS, first, term_key(SITE, first.term))
    return world


def broken(world: World) -> list[Any]:
    """(field, stored, recomputed) of each difference of a row, and how else rows are broken."""
    faults = [record for record in world.report().broken if record.step == TALLIED]
    differences = [tuple(each) for fault in faults for each in fault.differences]
    return [*differences, *(fault.how for fault in faults if not fault.differences)]


def test_the_rows_of_all_terms_are_proved() -> None:
    """Both rows are done; nothing is broken."""
    world = world_of()
    step = world.report().steps[TALLIED]
    assert (broken(world), step.records, step.done) == ([], 2, 2)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda row: msgspec.structs.replace(row, flagged=4), ("flagged", 4, 0)),
        (lambda row: msgspec.structs.replace(row, hits=2), ("hits", 2, 0)),
        (lambda row: msgspec.structs.replace(row, term=7), ("pages", 4, 0)),
        (lambda _: None, "no row of its term 0"),
    ],
)
def test_a_wrong_row_of_an_earlier_term_is_broken(change: Callable[[SiteState], SiteState | None], fault: Any) -> None:
    """A count that the log does not have, search results, a term that is not there, and no row at all."""
    assert fault in broken(world_of(change))


def test_a_row_on_the_wrong_term_is_broken() -> None:
    """The row on `sites` must be of the newest term."""
    world = world_of()
    world.put(SITES, Desk(DETECTOR).feed(page(0, visit=FIRST, text="t00", first_at=FIRST)).rows[-1])
    assert "term" in [field for field, *_ in broken(world)]


@pytest.mark.parametrize("is_wrong", [False, True])
def test_the_former_verdict_of_a_row_is_proved(is_wrong: bool) -> None:
    """A row whose term has no verdict yet names that of the term before, as the log has it."""
    world, desk = fed(8, 1)
    newest, former = desk.rows[-1], desk.rows[-1].former
    assert former is not None and former.verdict == "human"
    if is_wrong:
        newest = msgspec.structs.replace(newest, former=msgspec.structs.replace(former, verdict="llm"))
    world.put(SITES, newest)
    world.put(SITE_TERMS, desk.terms[0], term_key(SITE, 0))
    assert [field for field, *_ in broken(world)] == (["former"] if is_wrong else [])
