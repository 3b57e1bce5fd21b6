"""The tokens of a text for a pair of models, and its abstentions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.engine.settings import TextRules
from scoring.engine.tokens import batches, head, plain_tokenizer, tokenise
from scoring.interface import TextScore
from scoring.pair.settings import PairSettings
from tests.support.pages.prose import PROSE
from tests.support.pairs import END, build_tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund und läuft dann schnell nach Hause. " * 9
TOKENIZERS = {
    architecture: plain_tokenizer(build_tokenizer(architecture, extra="a aa aaa  b  bb, the the "), 20)
    for architecture in ("falcon", "llama")
}
ENGLISH = PairSettings(max_tokens=20, min_tokens=10)
ANY = PairSettings(max_tokens=20, min_tokens=2, english_only=False)


def tokens(text: str, tokenizer: Any, rules: TextRules) -> list[int] | TextScore:
    """The tokens of a text's only window, or its abstention."""
    (found,) = tokenise([text], tokenizer, rules)
    if isinstance(found, TextScore):
        return found
    (window,) = found
    return list(window)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t\u00a0", "empty"),
        ("x" * 1_000_001, "too_long"),
        ("a b " * 100_000, "too_long"),  # 200,000 tokens at least
        ("word \ud800 word " * 9, "bad_unicode"),
        ("😀🎉" * 500, "no_words"),
        ("12 34, 56.", "no_words"),
        ("漢字" * 200, "other_language"),
        ("Быстрая лиса прыгает через собаку. " * 9, "other_language"),
        ("a", "one_token"),
        ("The end.", "too_short"),
        (GERMAN, "few_function_words"),
        ("Milk 1.20 Bread 2.10 Butter 3.40 Sugar 0.99 Flour 1.10 Yeast 0.45", "few_function_words"),
    ],
)
def test_what_is_not_scored_has_a_reason(text: str, reason: str) -> None:
    """Empty texts, books, broken characters, emoji, other languages and snippets are abstentions with a reason."""
    found = tokens(text, TOKENIZERS["falcon"], ENGLISH)
    assert isinstance(found, TextScore)
    assert found.abstain == reason


def test_what_no_reader_sees_is_not_read() -> None:
    """Invisible characters have no tokens; a text of nothing else is empty."""
    hidden = " ".join(f"{word[:1]}\u200e{word[1:]}" for word in PROSE.split())
    plain = " ".join(PROSE.split())
    assert tokenise([hidden], TOKENIZERS["falcon"], ENGLISH) == tokenise([plain], TOKENIZERS["falcon"], ENGLISH)
    assert tokenise(["\u3164\u200b"], TOKENIZERS["falcon"], ENGLISH) == [TextScore(abstain="empty")]


@pytest.mark.parametrize("start", [".,;:!?" * 200, "0123456789" * 300, "Der-schnelle-braune-Fuchs-springt." * 20])
def test_english_is_judged_by_what_is_read(start: str) -> None:
    """English words after the last read token do not count for the language."""
    found = tokens(start + " the of and to in " * 50, TOKENIZERS["falcon"], ENGLISH)
    assert found == TextScore(abstain="few_function_words", tokens=20)
    assert isinstance(tokens(PROSE + "xyz " * 900, TOKENIZERS["falcon"], ENGLISH), list)


def test_other_languages_are_read_on_demand() -> None:
    """Without english_only a German text, and one in another script, are read."""
    assert all(isinstance(ids, list) for ids in tokenise([GERMAN, "漢字" * 200], TOKENIZERS["falcon"], ANY))


@pytest.mark.parametrize("architecture", ["falcon", "llama"])
def test_special_tokens_in_a_text_are_plain_characters(architecture: str) -> None:
    """<|endoftext|> or <s> in a page's text are tokenised as plain characters."""
    tokenizer = TOKENIZERS[architecture]
    special = {0} if architecture == "falcon" else {0, 1}
    for text in (f"The {END} end", "The <s> end </s> of it"):
        found = tokens(text, tokenizer, ANY)
        assert isinstance(found, list)
        own = found[1:] if architecture == "llama" else found  # the tokenizer's own <s>
        assert not special & set(own)
        assert tokenizer.decode(own) == text


@settings(max_examples=200)
@given(
    st.text(alphabet=st.sampled_from("ab  the,.\n\t'é漢😀\u00a0"), max_size=200),
    st.sampled_from(["falcon", "llama"]),
    st.integers(2, 20),
)
def test_cutting_the_characters_changes_no_token(text: str, architecture: str, max_tokens: int) -> None:
    """The head of a text has the same first max_tokens tokens as the whole text."""
    tokenizer = TOKENIZERS[architecture]
    tokenizer.no_truncation()
    assert tokenizer.encode(head(text, max_tokens)).ids[:max_tokens] == tokenizer.encode(text).ids[:max_tokens]
    tokenizer.enable_truncation(20)


def test_tokens_that_span_words_are_counted() -> None:
    """A tokenizer whose tokens span several words reads until it has max_tokens of them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    spanning = Tokenizer(models.BPE())
    spanning.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    spanning.train_from_iterator([PROSE] * 3, trainer)
    text = PROSE * 20
    found = tokens(text, plain_tokenizer(spanning, 20), ANY)
    assert isinstance(found, list)
    assert len(found) == 20
    assert len(spanning.encode(head(text, 20)).ids) < 20


@given(st.text(max_size=50))
def test_any_text_is_read_or_abstained_from(text: str) -> None:
    """No string fails; a text that is read has 2 to max_tokens tokens."""
    found = tokens(text, TOKENIZERS["llama"], ANY)
    assert isinstance(found, TextScore) or 2 <= len(found) <= 20


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(1, 2000))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    """Each text is in one batch; a batch's padded tokens are within the budget unless it is one text."""
    planned = batches(lengths, budget)
    assert sorted(index for batch in planned for index in batch) == list(range(len(lengths)))
    for batch in planned:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget


@settings(max_examples=25)
@given(st.lists(st.integers(64, 512), min_size=100, max_size=400))
def test_large_batches_have_little_padding(lengths: list[int]) -> None:
    """For texts of mixed lengths, padding is at most a ninth of the tokens plus a quarter of the budget per batch."""
    planned = batches(lengths, 4096)
    cells = sum(len(batch) * max(lengths[index] for index in batch) for batch in planned)
    assert cells - sum(lengths) <= sum(lengths) / 9 + len(planned) * 4096 / 4
