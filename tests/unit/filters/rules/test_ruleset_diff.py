"""The differences of two rulesets are listed; rulesets without a difference have equal digests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.rules.diff import differences
from filters.rules.ruleset import parse_ruleset

EXTRACTED = '[rules.extracted]\nthreshold = "ok"\n'
TOKENS = "[rules.min_tokens]\nthreshold = 200\n"
LANGUAGE = '[rules.language]\nthreshold = ["en", "de"]\n'
KINDS = '[rules.url_kind]\nthreshold = ["tag"]\n[rules.url_kind.patterns]\n'


def found(a: str, b: str) -> list[tuple[str, str, Any, Any]]:
    one, other = parse_ruleset(a, "a"), parse_ruleset(b, "b")
    rows = differences(one, other)
    assert (not rows) == (one.digest == other.digest)
    return [(row.rule, row.field, row.a, row.b) for row in rows]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (EXTRACTED + TOKENS, "# mine\ndescription = 'x'\n" + EXTRACTED + TOKENS.replace("200", "  200.0")),
        (EXTRACTED + TOKENS.replace("200", "0"), EXTRACTED + TOKENS.replace("200", "-0.0")),
        (EXTRACTED + LANGUAGE, EXTRACTED + LANGUAGE + "min_probability = -0.0\n"),
        (EXTRACTED + LANGUAGE, EXTRACTED + LANGUAGE.replace('["en", "de"]', '["de", "en", "de"]')),
        (EXTRACTED + TOKENS, 'blocks = "paragraph"\nreads = "main"\n' + EXTRACTED + TOKENS + 'on_unknown = "pass"\n'),
        (EXTRACTED + TOKENS, 'rules.extracted.threshold = "ok"\nrules.min_tokens = { threshold = 200 }\n'),
    ],
    ids=["comments", "zero", "zero of a field", "list", "defaults", "way of writing"],
)
def test_what_decides_the_same_is_equal(a: str, b: str) -> None:
    """Comments, names, 1 for 1.0, -0.0 for 0, list order, defaults and notation make no difference."""
    assert found(a, b) == []


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (TOKENS, TOKENS.replace("200", "100"), [("min_tokens", "threshold", 200.0, 100.0)]),
        (TOKENS, "[rules.min_tokens]\n", [("min_tokens", "threshold", 200.0, None)]),
        (TOKENS, TOKENS + 'on_unknown = "drop"\n', [("min_tokens", "on_unknown", "pass", "drop")]),
        (TOKENS, "", [("min_tokens", "rule", {"threshold": 200.0, "on_unknown": "pass"}, None)]),
        (
            "",
            LANGUAGE,
            [("language", "rule", None, {"threshold": ["de", "en"], "on_unknown": "pass", "min_probability": 0.0})],
        ),
        (
            TOKENS + LANGUAGE,
            LANGUAGE + TOKENS,
            [("", "order", ["extracted", "min_tokens", "language"], ["extracted", "language", "min_tokens"])],
        ),
        (
            "[rules.large_block_share]\nblock_chars = 200\n",
            "[rules.large_block_share]\nblock_chars = 100\n",
            [("large_block_share", "block_chars", 200, 100)],
        ),
        (LANGUAGE, LANGUAGE + "min_probability = 0.5\n", [("language", "min_probability", 0.0, 0.5)]),
        (
            KINDS + "tag = 'a'\npaging = 'b'\n",
            KINDS + "tag = 'x'\nsearch = 'c'\n",
            [
                ("url_kind", "patterns.tag", "a", "x"),
                ("url_kind", "patterns.paging", "b", None),
                ("url_kind", "patterns.search", None, "c"),
            ],
        ),
        (
            KINDS + "tag = 'a'\npaging = 'b'\n",
            KINDS + "paging = 'b'\ntag = 'a'\n",
            [("url_kind", "patterns order", ["tag", "paging"], ["paging", "tag"])],
        ),
    ],
)
def test_each_kind_of_difference_is_named(a: str, b: str, expected: list[tuple[str, str, Any, Any]]) -> None:
    """A rule, a threshold, another field or the order each give one row with both values."""
    assert found(EXTRACTED + a, EXTRACTED + b) == expected


@pytest.mark.parametrize(
    ("field", "values"),
    [("blocks", "paragraph run"), ("reads", "main c4"), ("scores", "main c4"), ("scores", "c4 own")],
)
def test_fields_of_the_whole_ruleset_are_compared(field: str, values: str) -> None:
    """Block definition, text to read and text to score each make a difference."""
    a, b = values.split()
    assert found(f"{field} = '{a}'\n{EXTRACTED}", f"{field} = '{b}'\n{EXTRACTED}") == [("", field, a, b)]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Rulesets of a few rules and thresholds, so that two of them are often equal."""
    names = draw(st.lists(st.sampled_from(["min_tokens", "gopher_min_words", "duplicate_share"]), unique=True))
    tables = "".join(
        f"[rules.{name}]\nthreshold = {draw(st.sampled_from(['0', '-0.0', '1', '1.0']))}\n" for name in names
    )
    top = draw(st.sampled_from(["", 'scores = "c4"\n', 'scores = "main"\n']))
    return top + EXTRACTED + tables


@given(texts(), texts())
def test_no_difference_means_one_digest(a: str, b: str) -> None:
    """Two rulesets have no listed difference exactly if their digests are equal."""
    found(a, b)
