"""DOLMa's measures against references written from its taggers' definitions, and repetitions against a search.

The toolkit is not a dependency. Its release 1.2.1 (`gopher_v1`, `c4_v2`, and the search of `tokenizer_repetitions`
over whitespace words) was compared once with these measures on every labelled main text and its cleaned text: 6,371
texts, 19 values and the repetitions of each, all equal.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.labels.labelled_pages import LabelledPage
from filters.quality.lines import punctuated_text
from filters.quality.measures import measure_quality
from filters.quality.names import MEASURES
from filters.quality.ngrams import most_repetitions, repeated_ngrams
from filters.quality.tokens import Tokens
from tests.support.sizes import LONG

pytestmark = [pytest.mark.xdist_group("labelled"), pytest.mark.slow]

FEW_WORDS = st.lists(st.sampled_from(["a", "aa", "b", "the", "of…", "#x", "1"]), max_size=60)
LINES = st.lists(st.one_of(FEW_WORDS.map(" ".join), st.text(max_size=12)), max_size=12).map("\n".join)
TEXT = st.one_of(LINES, st.tuples(LINES, st.integers(1, 4)).map(lambda drawn: "\n".join([drawn[0]] * drawn[1])))


def measures(text: str) -> dict[str, float | None]:
    return dict(zip(MEASURES, measure_quality(text)["main"], strict=True))


def reference(text: str, sizes: Iterable[int] = range(2, 11)) -> dict[str, float | None]:
    """gopher_v1 and c4_v2 by their definitions, with n-grams of some sizes; None if there is nothing to divide by."""
    words, lines = text.split(), text.split("\n")
    chars = sum(map(len, words))
    found: dict[str, float | None] = {
        "dolma_words": len(words),
        "dolma_symbol_word_share": sum("#" in w or "…" in w for w in words) / len(words) if words else None,
        "dolma_required_words": sum(w in {"the", "be", "to", "of", "and", "that", "have", "with"} for w in words),
        "median_word_chars": median(map(len, words)) if words else None,
        "dolma_bullet_line_share": sum(line.startswith(("*", "-")) for line in lines) / len(lines),
        "dolma_ellipsis_line_share": sum(line.endswith("…") for line in lines) / len(lines),
        "dolma_unpunctuated_line_share": sum(not line.strip().endswith((".", "?", "!", '"')) for line in lines)
        / len(lines),
    }
    repeated = {line: count for line, count in Counter(lines).items() if count > 1}
    found["dolma_duplicate_line_share"] = sum(repeated.values()) / len(lines)
    found["dolma_duplicate_line_char_share"] = (
        sum(len(line) * count for line, count in repeated.items()) / chars if chars else None
    )
    for n in sizes:
        grams = Counter(zip(*(words[i:] for i in range(n)), strict=False))
        size = {gram: sum(map(len, gram)) for gram in grams}
        if n < 5:
            top = grams.most_common(1)
            found[f"dolma_top_{n}gram_share"] = top[0][1] * size[top[0][0]] / chars if top else None
        else:
            total = sum(count * size[gram] for gram, count in grams.items())
            twice = sum(count * size[gram] for gram, count in grams.items() if count > 1)
            found[f"dolma_duplicate_{n}gram_share"] = twice / total if grams else None
    return found


@given(TEXT.filter(bool))
def test_measures_are_the_taggers(text: str) -> None:
    """For any text, every measure follows the taggers' definition."""
    values = measures(text)
    expected = reference(text)
    assert {name: values[name] for name in expected} == expected


@pytest.mark.data
def test_measures_of_every_labelled_page_are_the_taggers(labelled: list[LabelledPage]) -> None:
    """For every second main text the measures are equal; n-grams and repetitions, which are slow, for every eighth.

    With FARMWATCH_LONG: for every one, for every fourth.
    """
    texts = [(page.label, page.features.text) for page in labelled if page.features.text][:: 1 if LONG else 2]
    differing: list[str] = []
    for number, (label, text) in enumerate(texts):
        expected = reference(text, () if number % 4 else range(2, 11))
        if number % 4 == 0:
            expected["dolma_repetitions"] = searched(text.split())
        values = measures(text)
        differing += [
            f"{label.source}/{label.id[:12]} {name}: {value} by definition, {values[name]} here"
            for name, value in expected.items()
            if values[name] != value
        ]
    assert len(texts) > (1_500 if LONG else 60)
    assert differing == [], "\n".join(differing)


def searched(words: list[str]) -> int:
    """The count of the most repeated sequence, found by trying every place, period and end."""
    best = 0
    for period, start in itertools.product(range(1, 14), range(len(words))):
        end = start + period
        while end < len(words) and words[end] == words[end - period]:
            end += 1
        best = max(best, (end - start) // period)
    return best if best >= 3 else 0


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=15), st.integers(1, 5)), max_size=4))
def test_repetitions_are_those_a_search_finds(parts: list[tuple[list[str], int]]) -> None:
    """A sequence of up to 13 tokens that occurs three times or more in a row is found at any place."""
    words = [word for part, times in parts for word in part * times]
    tokens = Tokens.of(" ".join(words))
    assert most_repetitions(tokens, repeated_ngrams(tokens).longest) == searched(words)


@given(TEXT.filter(bool))
def test_nopunc_keeps_exactly_the_punctuated_lines(text: str) -> None:
    """The lines that are left are those of the text that the tagger calls punctuated, unchanged and in order."""
    lines = text.split("\n")
    kept = [line for line in lines if line.strip().endswith((".", "?", "!", '"'))]
    assert punctuated_text(text) == "\n".join(kept)
    assert measures(text)["dolma_unpunctuated_line_share"] == (len(lines) - len(kept)) / len(lines)
