"""Terms: each is judged by its own pages, and the live run reopens a site at the end of its term."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.stages.tally import MARK_MS
from stream.log.contract import StateChange
from stream.schema.records import Decision, Record, SiteState
from tests.support.logs.tally_desk import DAY_MS, SITE, SPRT, Desk, hit, page, score

FIRST = 20_000 * DAY_MS
TERM = 90 * DAY_MS
TRIED_MS = 600_000


def measured(term: int, flag: bool, pages: int = 8, *, at: int | None = None) -> list[Record]:
    """Articles of a term with scores, all flagged or none; known pages with new texts."""
    records: list[Record] = []
    for number in range(pages):
        visit = (FIRST + term * TERM if at is None else at) + number
        text = f"text {term} {number}"
        records += [page(number, visit=visit, text=text, first_at=FIRST), score(text, flag)]
    return records


def live(*terms: bool) -> Desk:
    """A live run at the times of its pages: human pages, then LLM pages, and so on."""
    desk = Desk(sprt=SPRT)
    for term, flag in enumerate(terms):
        desk.now_ms = FIRST + term * TERM + DAY_MS
        desk.feed(*measured(term, flag))
    return desk


def said(decisions: Sequence[Decision]) -> list[tuple[bool, int, str]]:
    return [(decision.stop, decision.term, decision.reason) for decision in decisions]


def rows_of(desk: Desk) -> list[SiteState]:
    """The last rows of all terms, without their times."""
    rows = [*(desk.terms[term] for term in sorted(desk.terms)), desk.rows[-1]]
    return [msgspec.structs.replace(row, updated_at=0) for row in rows]


def test_a_site_that_turns_is_llm_within_a_term() -> None:
    """The verdict of term 1 rests on pages of term 1 alone; that of term 0 stands as it was, without search results."""
    desk = live(False, True)
    before, now = rows_of(desk)
    assert (before.term, before.verdict, before.pages, before.hits) == (0, "human", 8, 0)
    assert (now.term, now.verdict, now.pages) == (1, "llm", 8)
    assert (before.term_start, before.term_end, now.term_end) == (FIRST, FIRST + TERM, FIRST + 2 * TERM)
    assert said(desk.decisions) == [(True, 0, "decided_human"), (False, 1, "term_began"), (True, 1, "decided_llm")]


def test_a_stopped_site_is_reopened_when_its_term_ends() -> None:
    """Nothing comes of a stopped site: its term ends by the clock of the live run, once, and so does the next one."""
    desk = live(False)
    desk.tick(FIRST + TERM - 1)
    assert said(desk.decisions) == [(True, 0, "decided_human")]
    for _ in range(3):
        desk.tick(FIRST + TERM)
    assert said(desk.decisions)[1:] == [(False, 1, "term_began")]
    assert desk.decisions[-1].first_at == FIRST
    desk.tick(FIRST + 3 * TERM + 5)
    assert said(desk.decisions)[2:] == [(False, 3, "term_began")]
    assert desk.row.term == 0


def restarted(desk: Desk) -> Desk:
    """The next process, with the state of a desk."""
    again = Desk(sprt=SPRT)
    again.store = desk.store
    return again


def test_a_process_begins_no_term_by_its_clock_at_first() -> None:
    """Not before ten minutes: a year ahead for a while is no term. After a pause of months it begins one then."""
    wrong = restarted(live(False))
    for minutes in (0, 9):
        wrong.tick(FIRST + 4 * TERM + minutes * 60_000)
    wrong.feed(hit(1))
    wrong.tick(FIRST + 2 * DAY_MS)
    assert wrong.decisions == []
    paused = restarted(wrong)
    paused.tick(FIRST + TERM)
    assert paused.decisions == []
    paused.tick(FIRST + TERM + TRIED_MS)
    assert said(paused.decisions) == [(False, 1, "term_began")]


def test_a_process_whose_clock_is_set_back_begins_anew() -> None:
    """It waits again; and a page of a later term begins its term at once, whatever the clock says."""
    desk = restarted(live(False))
    desk.tick(FIRST + 2 * TERM)
    desk.tick(FIRST + TERM)
    desk.tick(FIRST + TERM + TRIED_MS - 1)
    assert desk.decisions == []
    desk.feed(page(1, visit=FIRST + TERM, text="new", first_at=FIRST))
    assert said(desk.decisions) == [(False, 1, "term_began")]


def test_a_term_that_a_clock_ahead_began_is_taken_back() -> None:
    """With the next record; then the site is decided in its own term, and its next term begins at its time."""
    desk = Desk(sprt=SPRT)
    desk.now_ms = FIRST
    desk.feed(*measured(0, False, 1))
    desk.tick(FIRST + 4 * TERM)
    assert said(desk.decisions) == [(False, 4, "term_began")]
    again = restarted(desk)
    again.tick(FIRST)
    again.now_ms = FIRST + DAY_MS
    again.feed(*measured(0, False))
    assert said(again.decisions) == [(False, 0, "term_began"), (True, 0, "decided_human")]
    again.tick(FIRST + TERM)
    assert said(again.decisions)[2:] == [(False, 1, "term_began")]


def test_scores_of_the_last_term_do_not_stop_the_new_one() -> None:
    """Scores that come when the site is open again may decide the term of their pages, and not the new one."""
    desk = Desk(sprt=SPRT)
    desk.now_ms = FIRST + DAY_MS
    records = measured(0, True)
    desk.feed(*records[::2]).tick(FIRST + TERM)
    desk.feed(*records[1::2])
    assert desk.row.verdict == "llm"
    assert said(desk.decisions) == [(False, 1, "term_began")]


def test_a_replay_gives_the_same_terms_at_any_time() -> None:
    """A replay reads all verdicts before the scores, years later, and its rows are those of the live run."""
    records = [*measured(0, False), *measured(1, True), *measured(2, False, pages=2)]
    desk = live(False, True)
    desk.now_ms = FIRST + 2 * TERM
    desk.feed(*measured(2, False, pages=2))
    replay = Desk(sprt=SPRT, decides=False)
    replay.now_ms = FIRST + 40 * TERM
    replay.feed(*records[::2], *records[1::2]).tick(FIRST + 50 * TERM)
    assert rows_of(replay) == rows_of(desk)
    assert [row.verdict for row in rows_of(replay)] == ["human", "llm", "unclassifiable"]
    assert replay.decisions == []


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), *[st.booleans()] * 2), max_size=25), st.randoms())
def test_the_rows_of_all_terms_are_a_function_of_the_set_of_records(
    fetches: list[tuple[int, int, bool, bool]], rng: random.Random
) -> None:
    """Whatever the order in which records of several terms come, each term has the same row in the end."""
    records: list[Record] = [hit(1)]
    for place, (term, number, flag, segments) in enumerate(fetches):
        text, at = f"t{place}", FIRST + term * TERM + place
        records += [page(number, visit=at, text=text, first_at=FIRST, segments=segments), score(text, flag)]
    one, other = (Desk(sprt=SPRT, decides=False) for _ in range(2))
    one.feed(*records)
    other.feed(*rng.sample(records, len(records)))
    assert rows_of(one) == rows_of(other)


def test_a_site_that_is_not_crawled_has_one_term() -> None:
    """Pages of an archive name no first page: whenever they were fetched, they are of term 0, which has no end."""
    desk = Desk(sprt=SPRT)
    desk.feed(*(page(number, visit=FIRST + number * TERM) for number in range(5))).tick(FIRST + 9 * TERM)
    assert (desk.row.term, desk.row.term_end, desk.row.pages, desk.decisions) == (0, 0, 5, [])


def test_the_state_is_bounded() -> None:
    """A term after their end the pages of a term are forgotten, and so is the mark of a hit after its time."""
    desk = live(False, True)
    sizes = []
    for term in range(2, 8):
        desk.now_ms = FIRST + term * TERM + DAY_MS
        desk.feed(hit(term), *measured(term, True))
        sizes.append(len(desk.store.get(SITE.encode()) or b""))
    assert max(sizes) <= sizes[1] + 300
    assert len(desk.store.scan(SITE.encode(), 99)) > 1
    desk.tick(desk.now_ms + MARK_MS)
    assert [key for key, _ in desk.store.scan(SITE.encode(), 99)] == [SITE.encode()]
    late = page(1, visit=FIRST + 5, text="late", first_at=FIRST)
    assert desk.feed(late).terms[0].pages == 8  # its row stays as it was


def test_a_canary_stays_in_one_term() -> None:
    """Nobody crawls a canary: its pages are of one term, however long its rounds go on."""
    canary = "a.llm.canary.invalid"
    desk = Desk(sprt=SPRT)
    desk.feed(*(msgspec.structs.replace(page(1 + n, visit=FIRST + 2 * n * TERM), site=canary) for n in range(2)))
    assert (desk.row.term, desk.row.term_end, desk.row.pages) == (0, 0, 2)


def test_a_verdict_holds_until_the_new_term_has_one() -> None:
    """The row of a term without a verdict names that of the term before, in a replay too; with one it does not."""
    desk = live(False)
    desk.now_ms = FIRST + TERM + 5
    records = measured(1, True)
    desk.feed(*records[:2])
    former = desk.row.former
    assert former is not None
    assert (desk.row.verdict, former.term, former.verdict) == ("unclassifiable", 0, "human")
    assert former == msgspec.structs.replace(desk.terms[0], updated_at=0)
    replay = Desk(sprt=SPRT, decides=False)
    replay.feed(*measured(0, False), *records[:2])
    assert replay.row == desk.row
    desk.tick(FIRST + 2 * TERM + 5)
    assert desk.row.former == former
    desk.feed(*records[2:])
    newest = desk.row
    assert newest.verdict == "llm" and newest.former is None


def test_another_length_of_terms_regroups_the_pages() -> None:
    """With another setting the kept pages are put into the new terms; rows of terms that are gone go, too."""
    desk = live(False, True)
    longer = Desk(sprt=SPRT, term_days=360)
    longer.store, longer.now_ms = desk.store, desk.now_ms
    longer.feed(hit(1))
    assert (longer.row.term, longer.row.pages, longer.row.term_end) == (0, 8, FIRST + 4 * TERM)
    assert longer.gone == ["a.example 0"]


def test_terms_that_are_regrouped_keep_their_rulesets_and_epochs() -> None:
    """With shorter terms each has the rows of its own pages; a merged one has those of the newest epoch alone."""
    desk = Desk(sprt=SPRT)
    for term, (rules, epoch) in enumerate((("d1", "e1"), ("d2", "e2"))):
        for number in range(4):
            text, visit = f"text {term} {number}", FIRST + term * TERM + number
            verdict = page(number, visit=visit, text=text, first_at=FIRST, rules=rules)
            desk.feed(msgspec.structs.replace(verdict, epoch=epoch), score(text, False))
    for days, wanted in ((45, {0: (4, "d1", "e1"), 2: (4, "d2", "e2")}), (360, {0: (4, "d2", "e2")})):
        other = Desk(sprt=SPRT, term_days=days)
        other.store.apply([StateChange(SITE.encode(), desk.store.get(SITE.encode()))])
        other.feed(hit(1))
        rows = [*other.terms.values(), other.row]
        assert {row.term: (row.pages, row.digest, row.epoch) for row in rows} == wanted
