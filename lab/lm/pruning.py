"""Leaves out the n-grams that a model needs least.

An n-gram's worth is its share of all words times the bits that it saves, beside the share of its last word alone: the
first term of the relative entropy of A. Stolcke, "Entropy-based pruning of backoff language models", 1998.
"""

from __future__ import annotations

import msgspec
import numpy as np

from filters.perplexity.model_file import Tables
from lab.lm.errors import TooLittleText

_PLACE = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def pruned(tables: Tables, most: int) -> Tables:
    """The model with at most `most` bigrams, and as many trigrams that begin with one of them. Raises TooLittleText."""
    keys, shares = [tables.keys[0]], [tables.shares[0]]
    of_beginnings = tables.shares[0].astype(np.float64)  # of all words
    places = np.arange(len(keys[0]))  # of a beginning that is kept, among those kept
    for of_order, of_shares in zip(tables.keys[1:], tables.shares[1:], strict=True):
        begins = (of_order >> _SHIFT).astype(np.intp)
        share_of_all = of_beginnings[begins] * of_shares
        bits = np.log2(of_shares / tables.shares[0][(of_order & _PLACE).astype(np.intp)])
        worth = np.where(places[begins] >= 0, share_of_all * bits, -1)
        best = np.sort(np.argsort(-worth, kind="stable")[:most])
        best = best[worth[best] > 0]
        if not len(best):
            raise TooLittleText("no word is more likely after another one: this is too little text")
        keys.append(places[begins[best]].astype(np.uint64) << _SHIFT | (of_order[best] & _PLACE))
        shares.append(of_shares[best])
        places = np.full(len(of_order), -1)
        places[best] = np.arange(len(best))
        of_beginnings = share_of_all
    counts = tuple(len(of_order) for of_order in keys)
    return Tables(msgspec.structs.replace(tables.header, counts=counts), tuple(keys), tuple(shares))
