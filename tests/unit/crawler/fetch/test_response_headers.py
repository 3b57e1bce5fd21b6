"""Text from the network: whatever was sent, what is kept can be stored and shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.response_headers import clean


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"nginx", "nginx"),
        ("größe".encode(), "größe"),
        (b"caf\xe9", "café"),
        (b" a\0\t\x1b[31mb\x7f ", "a [31mb"),
        (b"\x80", ""),
        ("a\u202eb\u2028c".encode(), "a b c"),
    ],
)
def test_headers_as_they_are_kept(sent: bytes, kept: str) -> None:
    """UTF-8 stays, other bytes are ISO-8859-1, controls are spaces."""
    assert clean(sent.decode("utf-8", "surrogateescape"), 100) == kept


@given(st.one_of(st.binary(max_size=50).map(lambda b: b.decode("utf-8", "surrogateescape")), st.text(
    st.characters(exclude_categories=()), max_size=50)), st.integers(0, 60))  # fmt: skip
def test_whatever_was_sent_can_be_kept(text: str, cap: int) -> None:
    """Any string comes out encodable, without control characters, within the cap, and is left alone from then on."""
    kept = clean(text, cap)
    assert kept.encode().decode() == kept and len(kept) <= cap
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in kept)
    assert clean(kept, cap) == kept
