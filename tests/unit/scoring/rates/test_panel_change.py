"""The change of a panel: paired, with its interval, and every site accounted for."""

from __future__ import annotations

import pytest

from scoring.rates.panel_change import panel_change
from stream.schema.records import SiteState
from tests.support.logs.term_rows import TERM, at_day, term_row

MADE_AT = at_day(30)
NOW = at_day(TERM + 20)


def panel_of(then: str, now: str, number: int, name: str) -> tuple[list[SiteState], list[SiteState]]:
    """Newest and earlier rows of so many sites with these verdicts in their two terms."""
    sites = [f"{name}{place}.test" for place in range(number)]
    return [term_row(site, now, 1) for site in sites], [term_row(site, then) for site in sites]


def test_twelve_of_sixty_sites_turn() -> None:
    """20 points, within an interval that leaves out no change; the exact p value of 12 in one direction is 2 / 2^12."""
    newest, earlier = panel_of("human", "human", 40, "h")
    for more, before in (panel_of("human", "llm", 12, "t"), panel_of("llm", "llm", 8, "l")):
        newest, earlier = newest + more, earlier + before
    entrant = term_row("new.test", "llm", 0, term_start=MADE_AT + 1)
    found = panel_change([row.site for row in newest], MADE_AT, [*newest, entrant], earlier, NOW)
    assert (found.sites, found.pairs, found.llm_before, found.llm_now) == (60, 60, 8, 20)
    assert (found.turned, found.turned_back) == (12, 0)
    assert (found.turned_sites, found.turned_back_sites) == (sorted(f"t{n}.test" for n in range(12)), [])
    assert found.change == pytest.approx(0.2)
    assert found.low is not None and found.high is not None
    assert 0.08 < found.low < 0.13 and 0.27 < found.high < 0.33
    assert found.p == pytest.approx(2 / 2**12, abs=1e-9)


def test_every_site_of_the_panel_is_accounted_for() -> None:
    """Sites without two verdicts of the same versions are counted by their reason, and are no part of the change."""
    pairs, earlier = panel_of("human", "human", 5, "h")
    rows = {
        "not_yet": term_row("a.test", "human", 0, term_end=at_day(2 * TERM)),
        "unclassified": term_row("b.test", "unclassifiable", 1),
        "too_old": term_row("c.test", "human", 0, term_end=at_day(50)),
        "other_versions": term_row("d.test", "llm", 1),
    }
    earlier += [term_row("b.test", "human"), term_row("d.test", "human", digest="d0")]
    sites = [row.site for row in (*pairs, *rows.values())] + ["gone.test"]
    found = panel_change(sites, MADE_AT, [*pairs, *rows.values()], earlier, NOW)
    assert {name: getattr(found, name) for name in rows} == {**dict.fromkeys(rows, 1), "other_versions": 2}
    assert (found.sites, found.pairs, found.change, found.p) == (10, 5, 0.0, None)


def test_without_a_later_term_there_is_no_change() -> None:
    """A panel of today has nothing to compare with."""
    rows = [term_row("a.test", "human"), term_row("b.test", "llm")]
    found = panel_change(["a.test", "b.test"], MADE_AT, rows, [], MADE_AT)
    assert (found.pairs, found.not_yet, found.change, found.low) == (0, 2, None, None)


def test_a_site_whose_new_term_has_no_verdict_is_not_measured_yet() -> None:
    """In the grace it counts by its verdict of before, which is that of the panel; after that it has none."""
    before = term_row("a.test", "human")
    newest = term_row("a.test", "unclassifiable", 1, former=before)
    found, late = (panel_change(["a.test"], MADE_AT, [newest], [before], now) for now in (NOW, at_day(TERM + 23)))
    assert [(one.not_yet, one.unclassified) for one in (found, late)] == [(1, 0), (0, 1)]
