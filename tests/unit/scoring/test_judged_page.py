"""TALLY's way of reading a verdict takes every field from its right place, whatever the rules say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scoring.judged_page import JudgedPage
from stream.schema.records import RuleOutcome, Verdict, decode, encode

TEXT = st.text(max_size=3)
OUTCOMES = st.builds(RuleOutcome, TEXT, st.none() | st.floats(allow_nan=False) | TEXT, TEXT, st.none(), TEXT)
TAKEN = (
    "v",
    "id",
    "site",
    "page_id",
    "url",
    "verdict",
    "first_failed",
    "ruleset",
    "digest",
    "text_digest",
    "fetched_at",
)


@given(
    st.builds(
        Verdict,
        **dict.fromkeys(TAKEN[1:-1], TEXT),
        failed=st.lists(TEXT, max_size=2),
        rules=st.lists(OUTCOMES, max_size=2),
        fetched_at=st.integers(0, 2**50),
        run=TEXT,
    )
)
def test_the_fields_are_those_of_the_verdict(verdict: Verdict) -> None:
    """Of any verdict the fields that a tally takes in are read as the whole record reads them."""
    read = decode(JudgedPage, encode(verdict))
    assert [getattr(read, name) for name in TAKEN] == [getattr(verdict, name) for name in TAKEN]


def test_the_layout_is_that_of_the_verdict() -> None:
    """The fields stand in the verdict's order, so that none can be added to it in between unnoticed."""
    fields = JudgedPage.__struct_fields__
    assert fields == Verdict.__struct_fields__[: len(fields)]
    assert JudgedPage.VERSION == Verdict.VERSION
