"""The quality measures and rulesets against datatrove's four filters, with the same tokens and sentences."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmwatch.labels.labelled_pages import LabelledPage
from filters.quality.c4 import clean
from filters.quality.characters import PUNCTUATION, TERMINAL_PUNCTUATION
from filters.quality.measures import measure_quality
from filters.quality.names import MEASURES
from filters.quality.tokens import TOKENIZERS
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from tests.support.lazily import Lazily
from tests.support.pages.numbered_pages import page_features
from tests.support.pages.sentences import split_sentences
from tests.support.sizes import LONG

FILTERS = "datatrove.pipeline.filters"
c4, fineweb = Lazily(f"{FILTERS}.c4_filters"), Lazily(f"{FILTERS}.fineweb_quality_filter")
gopher, repetition = Lazily(f"{FILTERS}.gopher_quality_filter"), Lazily(f"{FILTERS}.gopher_repetition_filter")

pytestmark = [pytest.mark.xdist_group("labelled"), pytest.mark.slow, pytest.mark.usefixtures("needs_datatrove")]

GOPHER_QUALITY = {
    "gopher_short_doc": "gopher_min_words",
    "gopher_long_doc": "gopher_max_words",
    "gopher_below_avg_threshold": "gopher_min_mean_word_chars",
    "gopher_above_avg_threshold": "gopher_max_mean_word_chars",
    "gopher_too_many_hashes": "gopher_max_hashes_per_word",
    "gopher_too_many_ellipsis": "gopher_max_ellipses_per_word",
    "gopher_too_many_bullets": "gopher_max_bullet_line_share",
    "gopher_too_many_end_ellipsis": "gopher_max_ellipsis_line_share",
    "gopher_below_alpha_threshold": "gopher_min_alpha_word_share",
    "gopher_enough_stop_words": "gopher_min_stop_words",
}
GOPHER_REPETITION = {
    "dup_para_frac": "gopher_max_duplicate_paragraph_share",
    "dup_para_char_frac": "gopher_max_duplicate_paragraph_char_share",
    "dup_line_frac": "gopher_max_duplicate_line_share",
    "dup_line_char_frac": "gopher_max_duplicate_line_char_share",
    **{f"top_{n}_gram": f"gopher_max_top_{n}gram_share" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"gopher_max_duplicate_{n}gram_share" for n in range(5, 11)},
}
C4 = {"lorem_ipsum": "c4_lorem_ipsum", "curly_bracket": "c4_curly_bracket", "too_few_sentences": "c4_min_sentences"}
FINEWEB = {
    "line_punct_ratio": "fineweb_min_punctuated_line_share",
    "short_line_ratio": "fineweb_max_short_line_share",
    "char_dup_ratio": "fineweb_max_duplicate_line_char_share",
    "list_ratio": "fineweb_max_newlines_per_word",
}
SUITES: dict[str, tuple[str, Callable[[], Any], dict[str, str]]] = {
    "gopher quality": ("gopher", lambda: gopher.GopherQualityFilter(), GOPHER_QUALITY),
    "gopher repetition": ("gopher", lambda: repetition.GopherRepetitionFilter(), GOPHER_REPETITION),
    "c4": ("c4", lambda: c4.C4QualityFilter(), C4),
    "fineweb": ("fineweb", lambda: fineweb.FineWebQualityFilter(), FINEWEB),
}


BRACKET_FIRST = (
    "c4: c4_curly_bracket there, c4_lorem_ipsum here: a bracket stands before lorem ipsum, and both are found"
)
"""The one known difference: datatrove names the first failure in the text, a ruleset the first in its order."""

ruleset_of = functools.cache(load_ruleset)


@pytest.fixture(scope="module")
def needs_datatrove() -> None:
    """Skip the test without the package; with FARMWATCH_REQUIRE_DATA, a missing package fails."""
    if not os.environ.get("FARMWATCH_REQUIRE_DATA"):
        pytest.importorskip("datatrove")


@pytest.fixture(scope="module", params=["whitespace", "words"])
def tokenizer(request: pytest.FixtureRequest, needs_datatrove: None) -> Iterator[str]:
    """A tokenizer's name, used for datatrove too; both use our sentences."""
    tokenize = TOKENIZERS[request.param]
    with pytest.MonkeyPatch.context() as patch:
        for module in ("gopher_quality_filter", "gopher_repetition_filter", "fineweb_quality_filter"):
            patch.setattr(f"{FILTERS}.{module}.split_into_words", lambda text, _language: tokenize(text))
        patch.setattr(f"{FILTERS}.c4_filters.split_into_sentences", lambda text, _language: split_sentences(text))
        yield request.param


def differences(text: str, quality: dict[str, list[float | None]]) -> list[str]:
    """Datatrove's result and values for a text, where they differ from ours."""
    from datatrove.data import Document

    features = page_features(text, quality=quality, tokens=len(text.split()))
    found: list[str] = []
    for suite, (ruleset, make, names) in SUITES.items():
        document = Document(text=text, id="")
        theirs = make().filter(document)
        first_theirs = "" if theirs is True else names[theirs[1]]
        ours = [rule for rule in judge(features, ruleset_of(ruleset)).failed if rule in names.values()]
        first_ours = ours[0] if ours else ""
        if first_ours != first_theirs:
            told = f"{suite}: {first_theirs or 'kept'} there, {first_ours or 'kept'} here"
            explained = BRACKET_FIRST.startswith(f"{told}:") and first_theirs in ours
            found.append(BRACKET_FIRST if explained else told)
        if suite == "c4" and theirs is True and document.text != clean(text).text:
            found.append("c4: cleaned otherwise")
    return found


def value_differences(text: str, tokenizer: str, values: list[float | None]) -> list[str]:
    """Measures whose values differ from those of datatrove's functions."""
    named = dict(zip(MEASURES, values, strict=True))
    words = list(TOKENIZERS[tokenizer](text))
    expected: dict[str, float | None] = {}
    for n in (2, 3, 4):
        grams = repetition.get_n_grams(words, n)
        expected[f"top_{n}gram_share"] = repetition.find_top_duplicate(grams) / len(text) if grams else None
    for n in range(5, 11):
        expected[f"duplicate_{n}gram_share"] = repetition.find_all_duplicate(words, n) / len(text)
    lines = [line for line in text.split("\n") if line.strip()]
    if lines:
        chars = len(text.replace("\n", ""))
        expected["fineweb_duplicate_line_char_share"] = repetition.find_duplicates(lines)[1] / chars
    return [f"{name}: {value} there, {named[name]} here" for name, value in expected.items() if named[name] != value]


@pytest.mark.data
def test_every_labelled_page_is_judged_as_datatrove_judges_it(labelled: list[LabelledPage], tokenizer: str) -> None:
    """Verdict, first failing rule, values and cleaned text equal those of datatrove's four filters.

    Every second main text is compared with whitespace tokens, every fourth with words and marks (FARMWATCH_LONG: every
    one, every second). No difference is tolerated: differing pages are listed, explained ones separately.
    """
    unexplained: list[str] = []
    explained: list[str] = []
    asked = 0
    step = (1 if LONG else 2) * (1 if tokenizer == "whitespace" else 2)
    for page in labelled[::step]:
        text = page.features.text
        if not text:
            continue
        asked += 1
        quality = measure_quality(text, tokenizer)
        wrong = differences(text, quality) + value_differences(text, tokenizer, quality["main"])
        for what in wrong:
            told = explained if what == BRACKET_FIRST else unexplained
            told.append(f"{page.label.source}/{page.label.id[:12]} {what}")
    assert asked > 120 // step
    assert unexplained == [], "\n".join(unexplained)
    assert explained == [], "\n".join(explained)


LINE = st.lists(
    st.one_of(
        st.sampled_from(
            ["the", "be", "a", "aa", "b", "to.", "of", "and", "that", "have", "with", "Lorem ipsum", "{", "-", "•", "…"]
        ),
        st.sampled_from(
            ["#", "x...", "Go!", "no?", '"yes."', "[1]", "privacy policy", "JavaScript", "éa", "12", "I", "Mr."]
        ),
    ),
    max_size=12,
).map(" ".join)
TEXT = st.lists(st.one_of(LINE, LINE, st.text(max_size=20)), min_size=1, max_size=40).map("\n".join).filter(str.strip)


@settings(max_examples=100 if LONG else 50, suppress_health_check=[HealthCheck.too_slow])
@given(TEXT)
def test_made_up_texts_are_judged_as_datatrove_judges_them(tokenizer: str, text: str) -> None:
    """For any repeated words, verdict, first failing rule and values agree, except for explained differences."""
    if not TOKENIZERS[tokenizer](text):
        return
    quality = measure_quality(text, tokenizer)
    assert set(differences(text, quality)) <= {BRACKET_FIRST}
    assert value_differences(text, tokenizer, quality["main"]) == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Here is a {bracket}.", "Here is lorem ipsum."], [BRACKET_FIRST]),
        (["Here is lorem ipsum.", "Here is a {bracket}."], []),
        (["Here is a {bracket}.", "and lorem ipsum"], []),
    ],
)
def test_what_is_explained_is_a_bracket_before_lorem_ipsum_and_nothing_else(
    tokenizer: str, lines: list[str], expected: list[str]
) -> None:
    """The explained difference needs a bracket before lorem ipsum; the other order, or a dropped line, makes none."""
    text = "\n".join(lines)
    assert [what for what in differences(text, measure_quality(text, tokenizer)) if what[:3] == "c4:"] == expected


def test_punctuation_is_datatroves() -> None:
    """Both sets of punctuation characters equal datatrove's."""
    from datatrove.utils import text as datatrove_text

    assert TERMINAL_PUNCTUATION == datatrove_text.TERMINAL_PUNCTUATION
    assert PUNCTUATION == datatrove_text.PUNCTUATION_SET
