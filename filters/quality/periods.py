"""How often a text says the same thing in a row: repeated sequences of tokens, as DOLMa looks for them."""

from __future__ import annotations

import numpy as np

from filters.quality.tokens import Tokens

LONGEST_PERIOD = 13
LEAST_TIMES = 3


def most_repetitions(tokens: Tokens, repeating: int) -> int:
    """How many times the most repeated sequence of 1 to 13 tokens occurs in a row; 0 if none does three times.

    DOLMa's `tokenizer_repetitions` (1.2), whose score of a page it is, looks for the longest stretches in which each
    token equals the one a period before; a part of a period at the end does not count. Its tokens are the GPT-NeoX
    vocabulary's, about 1.3 a word; here they are the text's own, so that a `-` repeated within a word is none.

    `repeating` is the largest n of which an n-gram repeats (`Repeated.longest`): a sequence of p tokens said three
    times has repeated n-grams of 2p tokens, so that most texts need no search.
    """
    times = 0
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // LEAST_TIMES) + 1):
        if repeating < min(2 * period, 10):
            break
        differ = tokens.hashes[period:] != tokens.hashes[:-period]
        if len(differ) - np.count_nonzero(differ) < (LEAST_TIMES - 1) * period:
            continue
        edges = np.concatenate(([-1], differ.nonzero()[0], [len(differ)]))
        times = max(times, (int((edges[1:] - edges[:-1]).max()) - 1) // period + 1)
    return times if times >= LEAST_TIMES else 0
