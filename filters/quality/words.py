"""Number, length and content of a text's words, for Gopher's quality rules and for DOLMa's.

- Gopher quality (datatrove): a token is a word if it has a character other than punctuation. The mean length is over
  words, all other divisors are all tokens. Symbols are # and ellipses (… or `...`) anywhere in the text, with one rule
  each. The paper's rule uses the mean length; the median is measured as well.
- DOLMa: every token is a word, and the rule uses the median length. A symbol is a word that contains # or …, with one
  share for both. All occurrences of stop words are counted: `the the` has two.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from filters.quality.characters import ALPHABETIC, SYMBOL, WORDLIKE
from filters.quality.lines import Share
from filters.quality.tokens import Hashes, Tokens

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Gopher's stop words, in lower case."""

_SLOT_BITS = 5


def word_measures(text: str, tokens: Tokens) -> tuple[list[Share], list[Share]]:
    """The word measures of Gopher and DOLMa.

    Gopher's: words, mean and median length, # per token, ellipses per token, share with a letter, different stop words.
    DOLMa's: words, share of them with a symbol, stop words.
    """
    count = len(tokens)
    if not count:
        return [0.0, None, None, None, None, None, 0.0], [0.0, None, 0.0]
    wordlike = tokens.kinds & WORDLIKE
    words = int(np.count_nonzero(wordlike))
    chars = tokens.chars if words == count else int(tokens.lengths[wordlike != 0].sum())
    hashes = text.count("#") if "#" in text else 0
    ellipses = text.count("…") if "…" in text else 0
    symbols = int(np.count_nonzero(tokens.kinds & SYMBOL)) if hashes or ellipses else 0
    slots, factor = _stop_word_table()
    at = tokens.hashes * factor >> np.uint64(64 - _SLOT_BITS)
    stop_words: list[int] = at[slots[at] == tokens.hashes].tolist()  # the slot of each
    ordered = np.sort(tokens.lengths)
    gopher: list[Share] = [
        float(words),
        chars / words if words else None,
        (ordered.item((count - 1) // 2) + ordered.item(count // 2)) / 2,
        hashes / count,
        (text.count("...") + ellipses) / count,
        int(np.count_nonzero(tokens.kinds & ALPHABETIC)) / count,
        float(len(set(stop_words))),
    ]
    return gopher, [float(count), symbols / count, float(len(stop_words))]


@lru_cache(maxsize=1)
def _stop_word_table() -> tuple[Hashes, np.uint64]:
    """A perfect hash table of the stop words' hashes, and its odd factor: upper bits of a product = slot."""
    hashes = Tokens.of(" ".join(STOP_WORDS)).hashes
    for odd in range(0x9E3779B9, 1 << 40, 2):
        factor = np.uint64(odd)
        at: npt.NDArray[np.uint64] = hashes * factor >> np.uint64(64 - _SLOT_BITS)
        if len(set(at.tolist())) == len(hashes):
            slots = np.zeros(1 << _SLOT_BITS, np.uint64)
            slots[at] = hashes
            return slots, factor
    raise AssertionError("eight hashes fall into eight of 32 slots for some factor")
