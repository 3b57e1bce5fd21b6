"""TALLY's way of reading a verdict takes every field from its right place, whatever the rules say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scoring.site_tally import JudgedPage
from stream.schema.records import RuleOutcome, Verdict, decode, encode

TEXT = st.text(max_size=3)
OUTCOMES = st.builds(RuleOutcome, TEXT, st.none() | st.floats(allow_nan=False) | TEXT, TEXT, st.none(), TEXT)
TAKEN = [name for name in JudgedPage.__struct_fields__ if name not in ("failed", "rules")]


@given(
    st.builds(
        Verdict,
        **dict.fromkeys(TAKEN[1:-1], TEXT),  # all but the version and the time
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
