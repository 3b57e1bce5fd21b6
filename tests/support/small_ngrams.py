"""A small n-gram model whose shares are written by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from filters.perplexity.model import NgramModel, read_model
from filters.perplexity.model_file import VERSION, Card, NgramHeader, Tables, encode
from filters.perplexity.words import NUMBER, START, hash_of

CARD = Card(corpus="a few words", licence="CC0-1.0")
NAMED = {"<s>": int(START), "<number>": int(NUMBER)}
UNKNOWN, UNSEEN = 0.1, 50


def tables_of(
    words: Mapping[str, float], bigrams: Mapping[tuple[str, str], float], trigrams: Mapping[tuple[str, str, str], float]
) -> Tables:
    """The tables of a model with these shares."""
    keys = {NAMED.get(word, hash_of(word)): share for word, share in words.items()}
    rising = sorted(keys)
    place = {word: rising.index(NAMED.get(word, hash_of(word))) for word in words}
    pairs = {place[a] << 32 | place[b]: share for (a, b), share in bigrams.items()}
    of_pairs = sorted(pairs)
    triples = {
        of_pairs.index(place[a] << 32 | place[b]) << 32 | place[c]: share for (a, b, c), share in trigrams.items()
    }
    of_orders = [keys, pairs, triples][: 3 if trigrams else 2]
    return Tables(
        NgramHeader(version=VERSION, counts=tuple(map(len, of_orders)), unknown=UNKNOWN, unseen=UNSEEN, card=CARD),
        tuple(np.array(sorted(of), np.uint64) for of in of_orders),
        tuple(np.array([of[key] for key in sorted(of)], np.float32) for of in of_orders),
    )


def model_of(
    words: Mapping[str, float],
    bigrams: Mapping[tuple[str, str], float],
    trigrams: Mapping[tuple[str, str, str], float] | None = None,
) -> NgramModel:
    """The model with these shares, read from a file's content."""
    return read_model(encode(tables_of(words, bigrams, trigrams or {})), "small")


WORDS = {"<s>": 0.25, "the": 0.4, "dog": 0.2, "barks": 0.2, "<number>": 0.1}
BIGRAMS = {("<s>", "the"): 0.75, ("the", "dog"): 0.5, ("dog", "barks"): 0.25, ("the", "<number>"): 0.125}
TRIGRAMS = {("<s>", "the", "dog"): 0.75, ("the", "dog", "barks"): 0.5}
