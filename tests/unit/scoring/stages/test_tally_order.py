"""A site's row does not depend on the order of arrival; each page's first article is its evidence."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.schema.records import Record, Score
from tests.support.logs.tally_desk import DAY_MS, FALCON, SITE, SPRT, Desk, hit, page, score

FLAG = st.none() | st.booleans()


def test_a_newer_fetch_replaces_its_page_in_place() -> None:
    """A page fetched again keeps its place, with the newer verdict.

    An older fetch that arrives late changes nothing.
    """
    desk = Desk().feed(page(1), page(2), page(1, article=False, visit=2))
    assert (desk.row.pages, desk.row.articles) == (2, 1)
    late = desk.feed(page(1, visit=1))
    assert (late.row.pages, late.row.articles) == (2, 1)
    data = desk.store.get(SITE.encode())
    assert data is not None and list(msgspec.msgpack.decode(data)[4]) == ["p1", "p2"]


def test_a_refetched_page_moves_the_counts_and_not_the_evidence() -> None:
    """The counts follow a page's newest fetch.

    The method reads its first fetch as an article, regardless of later ones.
    """
    desk = Desk(sprt=SPRT).feed(*(page(i) for i in range(5)), *(score(f"t{i}", False) for i in range(5)))
    first = desk.row
    assert (first.verdict, first.pages_used, first.decided_at) == ("human", 5, 1)
    desk.feed(*(page(i, visit=2, text=f"new{i}") for i in range(5)), *(score(f"new{i}", True) for i in range(5)))
    row = desk.row
    assert (row.verdict, row.pages_used, row.llr, row.decided_at) == ("human", 5, first.llr, 1)
    assert (row.articles, row.scored, row.flagged) == (5, 5, 5)
    late = Desk(sprt=SPRT).feed(page(1, visit=2, text="new"), score("new", True), page(1, visit=1), score("t1", False))
    early = Desk(sprt=SPRT).feed(page(1, visit=1), page(1, visit=2, text="new"), score("t1", False), score("new", True))
    assert late.row == early.row


def test_a_page_that_was_no_article_at_first_is_evidence_from_when_it_is_one() -> None:
    """A dropped first fetch is skipped: the evidence is the first article."""
    desk = Desk(sprt=SPRT).feed(page(1, article=False), page(1, visit=5, text="t"), score("t", True))
    assert (desk.row.articles, desk.row.pages_used) == (1, 1)


@st.composite
def a_site(draw: st.DrawFn) -> tuple[Sequence[Record], Sequence[Record], Sequence[Record]]:
    """The three topics of a site, each in order: repeated pages, shared texts, abstentions, other detectors."""
    hits = [hit(draw(st.integers(0, 4)), draw(st.integers(0, 9)), draw(st.sampled_from("ab"))) for _ in range(3)]
    pages = [
        page(
            draw(st.integers(0, 6)),
            article=draw(st.booleans()),
            segments=draw(st.booleans()),
            text=f"t{draw(st.integers(0, 6))}",
            visit=draw(st.integers(1, 3)),
            rules=draw(st.sampled_from(("d1", "d2"))),
        )
        for _ in range(draw(st.integers(0, 12)))
    ]
    flags = draw(st.lists(FLAG, min_size=7, max_size=7))
    order = draw(st.permutations(range(7)))
    scores = [score(f"t{i}", flags[i]) for i in order[: draw(st.integers(0, 7))]]
    scores.insert(draw(st.integers(0, len(scores))), score("t1", True, "fake/2"))
    return hits, pages, scores


def interleaved(topics: Sequence[Sequence[Record]], rng: random.Random) -> list[Record]:
    """The topics merged at random; the order within each is kept."""
    slots = [topic for topic, records in enumerate(topics) for _ in records]
    rng.shuffle(slots)
    streams = [iter(records) for records in topics]
    return [next(streams[slot]) for slot in slots]


@st.composite
def a_decidable_site(draw: st.DrawFn) -> list[Record]:
    """Records of one ruleset: pages fetched over some days, some repeatedly, most with a score.

    Hits on several days.
    """
    records: list[Record] = [hit(number, at=draw(st.integers(0, 5)) * DAY_MS) for number in range(3)]
    flags = draw(st.lists(st.booleans(), min_size=4, max_size=24))
    for number, flag in enumerate(flags):
        visits = draw(st.sets(st.integers(1, 5), min_size=1, max_size=2))
        for visit in visits:
            text = f"t{number}v{visit}"
            article = draw(st.integers(0, 9)) > 0
            at, segments = visit * 40_000 + number, draw(st.integers(0, 2)) == 0
            records.append(page(number, visit=at, text=text, article=article, segments=segments))
            if draw(st.integers(0, 9)):
                records.append(score(text, flag, number=0.7 + 0.02 * draw(st.integers(0, 15))))
    return records


@settings(max_examples=20)
@given(a_decidable_site(), st.randoms(use_true_random=False), st.sampled_from(("sprt", "deciles")))
def test_the_row_is_a_function_of_the_set_of_records(records: list[Record], rng: random.Random, method: str) -> None:
    """Under one ruleset, any order of hits, verdicts and scores, even repeated, gives the same row."""
    records = [
        msgspec.structs.replace(record, detector=FALCON, id=f"{record.text_digest}:{FALCON}")
        if isinstance(record, Score)
        else record
        for record in records
    ]
    shuffled = rng.sample(records, len(records))
    one = Desk(FALCON, method=method, close_after_s=60, sprt=SPRT).feed(*records)
    other = Desk(FALCON, method=method, close_after_s=60, sprt=SPRT).feed(*shuffled)
    assert one.row == other.row
    assert one.row.method == method
    assert len(one.decisions) <= 1 and len(other.decisions) <= 1
    again = other.feed(*shuffled).row
    assert again == one.row
