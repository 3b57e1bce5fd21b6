"""URL patterns: matches, refused patterns, and bounded time for any URL."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.rules.ruleset import load_ruleset
from filters.rules.url_patterns import BadPattern, any_of, compile_pattern

SHIPPED = [
    (kind, pattern)
    for name in ("default", "notes")
    for rule in load_ruleset(name).rules
    for kind, pattern in rule.patterns
]
PYTHONS = {pattern.text: re.compile(pattern.text, re.IGNORECASE) for _, pattern in SHIPPED}
ANY_CHARACTER = st.characters(codec=None)
"""Any character, surrogates and NUL included."""


def test_a_piece_that_is_found_is_named() -> None:
    """The first matching piece is returned, ignoring case in any script, or None."""
    tag = compile_pattern("/(tag|label)s?/")
    assert tag.find("/a/TAGS/x/label/") == "/TAGS/"
    assert tag.find("/tagged/") is None
    assert compile_pattern("É").find("/Café") == "é"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("/shop((", "missing )"),
        ("[z-a]", "invalid character class range: z-a"),
        ("/blog(?!/2024)", "(?!"),
        ("(?<=/)shop", "(?<="),
        (r"(\w)\1", r"invalid escape sequence: \1"),
        ("a++", "bad repetition operator: ++"),
        ("a{1001}", "invalid repetition size: {1001}"),
        (r"(?:\pL{100}){10}", "pattern too large"),
        ("(" * 50_000, "missing ): (((("),
        ("\x1b[", r"missing ]: ["),
        ("(?\x1b)", r"(?\x1b"),
        ("", "matches every URL"),
        ("(?:/shop)?$", "matches every URL"),
        (".*", "to match the rest write '.'"),
    ],
)
def test_what_no_pattern_can_be_is_refused_in_words(pattern: str, why: str) -> None:
    """Lookaround, backreferences, too much memory, errors and what matches every URL: a short, printable message."""
    with pytest.raises(BadPattern) as refused:
        compile_pattern(pattern)
    said = str(refused.value)
    assert why in said
    assert said.isprintable() and len(said) < 250


def test_a_pattern_that_may_be_empty_somewhere_is_allowed() -> None:
    """A pattern is refused only if it matches every URL: ^ and $ can tie an optional piece to a place."""
    front = compile_pattern("^(?:/shop)?$")
    assert (front.find("/shop"), front.find("/")) == ("/shop", None)
    assert compile_pattern(".").find("/") == "/"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b$", "(a*)*b", "(?:a?){500}a{500}$", "(.*,){20}x"])
def test_no_pair_of_pattern_and_url_takes_long(pattern: str) -> None:
    """Pattern and URL pairs that would block a backtracking search are decided."""
    assert compile_pattern(pattern).find("/" + "a" * 480 + "!") is None
    assert compile_pattern(pattern).find("/" + "a," * 249 + "!") is None


@given(st.text(ANY_CHARACTER, max_size=40), st.sampled_from(["", "/search?", "/tag/", "/page/3"]))
def test_any_text_can_be_searched(text: str, known: str) -> None:
    """Lone surrogates, NUL and control characters neither raise nor hide a match next to them."""
    path = text + known + text
    for _, pattern in SHIPPED:
        found = pattern.find(path)
        assert found is None or pattern.find(known) is None or found != ""
    for shown in ("/search?", "/tag/"):
        if known == shown:
            assert any(pattern.find(path) for _, pattern in SHIPPED)


@given(st.text(ANY_CHARACTER, max_size=30))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    """Any text compiles or is refused with a printable message."""
    try:
        pattern = compile_pattern(text)
    except BadPattern as error:
        assert str(error).isprintable()
    else:
        assert pattern == compile_pattern(text)
        assert pattern.text == text


ASCII_PATHS = st.lists(
    st.sampled_from(
        ["/", "?", "&", "=", "search", "Tags", "page", "index.html", "c", "b", "7", "docs", "a-b", "_", "%2F"]
    ),
    max_size=12,
).map("".join)


@given(ASCII_PATHS)
def test_shipped_patterns_mean_what_they_mean_elsewhere(path: str) -> None:
    """In ASCII paths, as in crawled URLs, RE2 finds the same pieces as Python's expressions."""
    for _, pattern in SHIPPED:
        match = PYTHONS[pattern.text].search("/" + path)
        assert pattern.find("/" + path) == (match.group() if match else None)


SOME = ("/tag", "a|b", "^/x$", "(?s)/.y", r"\d+/", "[?&]q=", "(b)(c)", "é", "(?-i)X")
URLS = st.text("/tagbcxyXÉ1?q=\n", max_size=8) | st.text(ANY_CHARACTER, max_size=8)


@given(st.lists(st.sampled_from(SOME), max_size=4), URLS)
def test_the_pattern_of_all_is_found_where_one_of_them_is(texts: list[str], url: str) -> None:
    """One search for several patterns agrees with separate searches."""
    patterns = [compile_pattern(text) for text in texts]
    together = any_of(patterns)
    if len(patterns) < 2:
        assert together is None
    else:
        assert together is not None
        assert (together.find(url) is not None) == any(pattern.find(url) is not None for pattern in patterns)


def test_patterns_with_quotations_are_not_joined() -> None:
    r"""A quotation without \E, which may end with its pattern, would include the next pattern."""
    assert any_of([compile_pattern(r"\Q/a"), compile_pattern("/b")]) is None
