from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from filters.perplexity.words import NUMBER, hash_of, sentences_of


def _sentences(text: str) -> list[list[int]]:
    found = []
    for sentences in sentences_of(text):
        hashes = sentences.hashes.tolist()
        for words in sentences.words.tolist():
            found.append(hashes[:words])
            hashes = hashes[words:]
        assert not hashes
    return found


def _hashes(*words: str) -> list[int]:
    return [int(NUMBER) if word == "#" else hash_of(word) for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The DOG barks", ["the", "dog", "barks"]),
        ("don't DON’T 'quoted' dogs'", ["don't", "don't", "quoted", "dogs"]),
        ("3 3,000.5 v2 2nd e.g.", ["#", "#", "v2", "2nd", "e", "g"]),
        ("well-known|x_y 10% A.I.", ["well", "known", "x", "y", "#", "a", "i"]),
        ("Élan ÇA cafe\u0301", ["élan", "ça", "cafe\u0301"]),
        ("\ud800lone \U0010ffff\U00040000", ["lone"]),
    ],
)
def test_words(text: str, words: Sequence[str]) -> None:
    """Words are runs of letters and digits in lower case, with inner apostrophes; all numbers are one word."""
    assert _sentences(text) == [_hashes(*words)]


@pytest.mark.parametrize("text", ["", "\n \n", "|", ". ! ?"])
def test_no_words(text: str) -> None:
    """A text without words has sentences without words."""
    assert not any(map(len, _sentences(text)))


def test_sentences() -> None:
    """Sentences end at marks and lines; a title ends none; white space belongs to the sentence before it."""
    text = 'Mr. Fox ran. "No!" he said…\n\n  Menu\nIs it?  Yes.'
    found = [bound for sentences in sentences_of(text) for bound in sentences.bounds.tolist()]
    assert [text[start:end] for start, end in pairwise(found)] == [
        "Mr. Fox ran. ",
        '"No!" he said…\n\n  ',
        "Menu\n",
        "Is it?  ",
        "Yes.",
    ]


def test_batches_are_not_seen() -> None:
    """A word has the same hash wherever it stands in a long text, in batches and in a sentence longer than one."""
    long = "word " * 30_000
    text = "A first line.\n" * 10_000 + long + "\nThe end."
    found = _sentences(text)
    assert found[:10_000] == [_hashes("a", "first", "line")] * 10_000
    assert set(found[10_000]) == {hash_of("word")} and len(found[10_000]) == 30_000
    assert found[10_001:] == [_hashes("the", "end")]


@pytest.mark.parametrize("part", ["\n", " ", ".", ". ", '."', ".\n", "\n.", "'", "a'", "1,", "\ud800"])
def test_time_is_linear(part: str) -> None:
    """A long text of one mark, which a page may have, takes no more than its share of time."""
    text = part * 200_000
    assert sum(len(sentences.words) for sentences in sentences_of(text)) >= 1
