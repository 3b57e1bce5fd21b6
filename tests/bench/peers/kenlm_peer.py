"""The shipped n-gram model for kenlm: the same probabilities, written as a model that backs off.

The interpolated share of a bigram is its probability, and what a history leaves is its weight of backing off, so both
libraries give a sentence the same sum. Words are written as their hashes.
"""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from filters.perplexity.model_file import decoded, mapped, sums_by_beginning
from filters.perplexity.words import START, sentences_of

_PART = 0.8  # of bigrams, as `filters.perplexity.model` has it


def write_arpa(path: Path) -> None:
    with resources.as_file(resources.files("filters.perplexity").joinpath("english.ngrams")) as file:
        header, keys, shares = decoded(mapped(file), "english")
    rest = 1 - _PART * sums_by_beginning(keys[1], shares[1], len(keys[0])).astype(float)
    words = ["<s>" if key == START else f"{key:x}" for key in keys[0].tolist()]
    firsts, lasts = (keys[1] >> np.uint64(32)).astype(int), (keys[1] & np.uint64(0xFFFFFFFF)).astype(int)
    probabilities = _PART * shares[1].astype(float) + rest[firsts] * shares[0][lasts].astype(float)
    with path.open("w") as file_:
        print(f"\\data\\\nngram 1={len(words) + 2}\nngram 2={len(firsts)}\n\n\\1-grams:", file=file_)
        print(f"{math.log10(header.unknown / header.unseen):.7f}\t<unk>\t0\n-99\t</s>", file=file_)
        for word, share, weight in zip(words, shares[0].tolist(), np.log10(rest).tolist(), strict=True):
            print(f"{-99 if word == '<s>' else math.log10(share):.7f}\t{word}\t{weight:.7f}", file=file_)
        print("\n\\2-grams:", file=file_)
        for first, last, logarithm in zip(firsts, lasts, np.log10(probabilities).tolist(), strict=True):
            print(f"{logarithm:.7f}\t{words[first]} {words[last]}", file=file_)
        print("\n\\end\\", file=file_)


def spoken(text: str) -> list[str]:
    """The sentences of a text for kenlm."""
    lines = list[str]()
    for sentences in sentences_of(text):
        words, place = [f"{word:x}" for word in sentences.hashes.tolist()], 0
        for count in sentences.words.tolist():
            lines.append(" ".join(words[place : place + count]))
            place += count
    return lines


def bits(model: Any, lines: list[str]) -> list[float]:
    """The surprisals of sentences by kenlm, in bits."""
    score = model.score
    return [-score(line, bos=True, eos=False) * math.log2(10) for line in lines]
