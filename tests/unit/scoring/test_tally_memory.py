"""What TALLY keeps of a site: bounded, and read back from older versions."""

from __future__ import annotations

import random

import msgspec
import pytest

from scoring.settings import TallySettings
from scoring.site_tally import MAX_QUERIES, SiteTally
from scoring.tally_stage import TallyStage
from stream.processing.state import KeyedState
from tests.support.tally_desk import DAY_MS, DETECTOR, SITE, SPRT, Desk, hit, page, score


def test_a_site_of_every_query_keeps_a_small_row() -> None:
    """Of 1,500 queries the row keeps 1,000, the same ones for every order; hits are all counted, repeats are not."""
    hits = [hit(number, query=f"q{number}") for number in range(1500)]
    shuffled = random.Random(1).sample(hits, len(hits))
    first, second = Desk().feed(*hits), Desk().feed(*shuffled, *hits[:100])
    assert first.row == second.row
    assert (first.row.hits, len(first.row.queries)) == (1500, 1000)


def test_hits_taken_in_at_once_leave_what_they_leave_one_by_one() -> None:
    """Also beyond the caps of queries and days: which are kept does not depend on how many came together."""
    number = MAX_QUERIES + 200
    hits = [hit(n, n % 7, "ab"[n % 2], f"q{n % (number - 50)}", at=n * DAY_MS) for n in range(number)]
    one_by_one, at_once = SiteTally.load(None, DETECTOR), SiteTally.load(None, DETECTOR)
    for each in hits:
        one_by_one.add_hit(each)
    at_once.add_hits(hits[:300])
    at_once.add_hits(hits[300:])
    assert at_once == one_by_one
    assert len(at_once.queries) == MAX_QUERIES


def test_a_tally_stored_before_versions_were_kept_is_read() -> None:
    """Flags and pages stored without detector and ruleset are taken as of those in use then, and of no others later."""
    pages = {f"p{i}": [1, f"p{i}v1", True, f"t{i}", ""] for i in range(4)}
    stored = [1, ["file"], ["q1"], 1, pages, {f"t{i}": True for i in range(4)}, "default", "d1", b"", ""]
    desk = Desk(sprt=SPRT)
    state = KeyedState(desk.store)
    state.put(SITE.encode(), msgspec.msgpack.encode(stored))
    desk.store.apply(state.changes())
    row = desk.feed(page(4)).row
    assert (row.verdict, row.pages, row.articles, row.scored, row.hits) == ("llm", 5, 5, 4, 1)
    desk.stage = TallyStage("fake/2", TallySettings(sprt=SPRT))
    assert desk.feed(page(5)).row.scored == 0
    assert desk.feed(page(6, rules="d2")).row.pages == 1


def test_a_tally_of_flags_alone_is_read() -> None:
    """Layout 2 kept flags without scores: sprt goes on with them, for gaussian they are absent until scored anew."""
    name = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"
    pages = {f"p{i}": [1 + i, f"p{i}v1", i < 6, f"t{i}", "" if i < 6 else "lang", "d1"] for i in range(7)}
    flags = {f"t{i}:{name}": True for i in range(6)} | {"t0:fake/2": False}
    stored = [1, ["file"], ["q1"], 1, pages, flags, "default", "d1", b"", "", 2]
    rows = {}
    for method in ("sprt", "gaussian"):
        desk = Desk(name, method=method)
        state = KeyedState(desk.store)
        state.put(SITE.encode(), msgspec.msgpack.encode(stored))
        desk.store.apply(state.changes())
        desk.feed(hit(2, at=3 * DAY_MS))
        rows[method] = desk.row
    row = rows["sprt"]
    assert (row.verdict, row.pages_used, row.decided_at, row.scored, row.flagged) == ("llm", 6, 6, 6, 6)
    assert (row.pages, row.articles, row.dropped_by, row.days, row.hits) == (7, 6, {"lang": 1}, [3], 2)
    row = rows["gaussian"]
    assert (row.verdict, row.pages_used, row.scored, row.flagged, row.method) == ("unclassifiable", 0, 6, 6, "gaussian")
    row = desk.feed(*(score(f"t{i}", True, name, 0.7) for i in range(6))).row
    assert (row.verdict, row.pages_used) == ("llm", 5)


@pytest.mark.parametrize("scores_first", [False, True])
def test_a_page_that_changes_for_ever_does_not_make_the_tally_grow(scores_first: bool) -> None:
    """Of 3,000 texts of one page the last few hundred scores are kept, beside those that rows are made of."""
    desk = Desk(sprt=SPRT).feed(page(1, text="first"), score("first", True), page(2), score("t2", False))
    sizes = []
    for visit in range(2, 3002):
        text = f"{visit:032x}"
        records = [page(1, visit=visit, text=text), score(text, True)]
        desk.feed(*(reversed(records) if scores_first else records))
        sizes.append(len(desk.store.get(SITE.encode()) or b""))
    assert max(sizes) < 16_384
    assert max(sizes[500:]) < 1.1 * sizes[500]
    assert (desk.row.scored, desk.row.flagged, desk.row.pages_used) == (2, 1, 2)


def test_scores_of_the_detector_in_use_outlast_those_of_many_others() -> None:
    """Of twenty detectors the one in use is kept, with the last of the others."""
    desk = Desk(sprt=SPRT).feed(page(1), score("t1", True))
    desk.feed(*(score("t1", True, f"other/{number}") for number in range(20)))
    assert desk.feed(page(2)).row.scored == 1
    tally = SiteTally.load(desk.store.get(SITE.encode()), DETECTOR)
    assert set(tally.scores) == {DETECTOR, *(f"other/{number}" for number in range(15, 20))}


def test_days_with_a_hit_are_kept() -> None:
    """Days of hits, each once, in order; of more than 400 the newest; a hit without a time has none."""
    desk = Desk().feed(hit(1), hit(2, at=2 * DAY_MS), hit(3, at=2 * DAY_MS + 5), hit(4, at=DAY_MS - 1))
    assert desk.row.days == [0, 2]
    many = random.Random(3).sample(range(1000), 500)
    row = Desk().feed(*(hit(day, at=day * DAY_MS + 1) for day in many)).row
    assert row.days == sorted(many)[-400:]
