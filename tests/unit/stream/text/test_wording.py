"""Parts of messages."""

from __future__ import annotations

import pytest

from stream.text.wording import escaped


@pytest.mark.parametrize("text", ["Prix\xa0: 10\u202f€", "日本語\u3000です", "two\nlines", "\ue000"])
def test_text_of_any_language_is_shown_as_it_is(text: str) -> None:
    """White space of other languages steers no terminal."""
    assert escaped(text) == text


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\r", "\u202e", "\u2028", "\ud800"])
def test_what_steers_a_terminal_is_escaped(character: str) -> None:
    """Control, format and separating characters, and surrogates."""
    assert escaped(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"
