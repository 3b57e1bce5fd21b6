"""The fields of a verdict that TALLY reads, and its state of a site: bounded, with stable bytes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.stages.site_pages import FirstArticle, JudgedPage
from scoring.stages.site_tally import MAX_QUERIES, SiteTally
from stream.schema.records import RuleOutcome, Verdict, decode, encode
from tests.support.logs.tally_desk import DAY_MS, DETECTOR, SITE, SPRT, Desk, hit, page, score


def test_a_site_of_every_query_keeps_a_small_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more queries than the row may have, it keeps the same ones in every order; each hit counts once."""
    monkeypatch.setattr("scoring.stages.site_tally.MAX_QUERIES", 100)
    hits = [hit(number, query=f"q{number}") for number in range(150)]
    shuffled = random.Random(1).sample(hits, len(hits))
    first, second = Desk().feed(*hits), Desk().feed(*shuffled, *hits[:100])
    assert first.row == second.row
    assert (first.row.hits, len(first.row.queries)) == (150, 100)


def test_hits_taken_in_at_once_leave_what_they_leave_one_by_one() -> None:
    """Beyond the caps, the kept queries and days do not depend on the batches."""
    number = MAX_QUERIES + 200
    hits = [hit(n, n % 7, "ab"[n % 2], f"q{n % (number - 50)}", at=n * DAY_MS) for n in range(number)]
    one_by_one, at_once = SiteTally.load(None, 0), SiteTally.load(None, 0)
    for each in hits:
        one_by_one.add_hits([each])
    at_once.add_hits(hits[:300])
    at_once.add_hits(hits[300:])
    assert at_once == one_by_one
    assert len(at_once.queries) == MAX_QUERIES


def test_a_tally_is_stored_as_before() -> None:
    """State without the newest fields is read, and new fields come after the old ones."""
    entry = [1, "p1v1", True, "t1", "", "d1", evidence := [1, "p1v1", "t1", "d1"]]
    stored: list[Any] = [
        *(1, ["file"], ["q1"], 1, {"p1": entry}, {}),
        *("default", "d1", b"e", "", 3, {DETECTOR: {"t1": [True, 0.5]}}, [2]),
    ]
    data = msgspec.msgpack.encode(stored)
    tally = SiteTally.load(data, 90 * DAY_MS)
    stored[4] = {"p1": [*entry[:-1], [*evidence, False], False, "", "", [], False]}
    assert msgspec.msgpack.decode(tally.dump(), strict=False)[: len(stored)] == stored
    assert (tally.term, tally.earlier) == (0, {})
    assert (tally.pages["p1"].evidence, tally.scores[DETECTOR]["t1"].score) == (
        FirstArticle(1, "p1v1", "t1", "d1"),
        0.5,
    )


@pytest.mark.parametrize("scores_first", [False, True])
def test_a_page_that_changes_for_ever_does_not_make_the_tally_grow(scores_first: bool) -> None:
    """Of 700 texts of one page, the last few hundred scores are kept, besides those in use."""
    desk = Desk(sprt=SPRT).feed(page(1, text="first"), score("first", True), page(2), score("t2", False))
    sizes = []
    for visit in range(2, 702):
        text = f"{visit:032x}"
        records = [page(1, visit=visit, text=text), score(text, True)]
        desk.feed(*(reversed(records) if scores_first else records))
        sizes.append(len(desk.store.get(SITE.encode()) or b""))
    assert max(sizes) < 16_384
    assert max(sizes[500:]) < 1.1 * sizes[500]
    assert (desk.row.scored, desk.row.flagged, desk.row.pages_used) == (2, 1, 2)


def test_scores_of_the_detector_in_use_outlast_those_of_many_others() -> None:
    """Of twenty detectors, the one in use and the last of the others are kept."""
    desk = Desk(sprt=SPRT).feed(page(1), score("t1", True))
    desk.feed(*(score("t1", True, f"other/{number}") for number in range(20)))
    assert desk.feed(page(2)).row.scored == 1
    tally = SiteTally.load(desk.store.get(SITE.encode()), 90 * DAY_MS)
    assert set(tally.scores) == {DETECTOR, *(f"other/{number}" for number in range(15, 20))}


def test_days_with_a_hit_are_kept() -> None:
    """Days of hits are kept once, in order, at most the newest 400; a hit without a time adds none."""
    desk = Desk().feed(hit(1), hit(2, at=2 * DAY_MS), hit(3, at=2 * DAY_MS + 5), hit(4, at=DAY_MS - 1))
    assert desk.row.days == [0, 2]
    many = random.Random(3).sample(range(1000), 500)
    row = Desk().feed(*(hit(day, at=day * DAY_MS + 1) for day in many)).row
    assert row.days == sorted(many)[-400:]


TEXT = st.text(max_size=3)
OUTCOMES = st.builds(RuleOutcome, TEXT, st.none() | st.floats(allow_nan=False) | TEXT, TEXT, st.none(), TEXT)
UNREAD = ("failed", "rules", "judged_at", "run", "dates")
TAKEN = [name for name in JudgedPage.__struct_fields__ if name not in UNREAD]


@given(
    st.builds(
        Verdict,
        **{name: TEXT for name in TAKEN[1:-2] if not name.endswith("_at")},
        signals=st.lists(TEXT, max_size=2),
        needs_script=st.booleans(),
        failed=st.lists(TEXT, max_size=2),
        rules=st.lists(OUTCOMES, max_size=2),
        fetched_at=st.integers(0, 2**50),
        first_at=st.integers(0, 2**50),
        run=TEXT,
    )
)
def test_the_fields_are_those_of_the_verdict(verdict: Verdict) -> None:
    """For any verdict, the partial record has the same fields as the whole record."""
    read = decode(JudgedPage, encode(verdict))
    assert [getattr(read, name) for name in TAKEN] == [getattr(verdict, name) for name in TAKEN]
