"""What a word is, by name: the tokens that the quality measures count."""

from __future__ import annotations

import difflib
import re
from types import MappingProxyType

from filters.errors import UnknownTokenizer
from filters.quality.tokens import Tokenizer

_WORD_OR_MARK = re.compile(r"\w+(?:['’.,\-]\w+)*+|[^\w\s]")


def words_and_marks(text: str) -> list[str]:
    """Words, and each punctuation mark or symbol as a token of its own; any script that has spaces between words.

    A word is letters, digits and _, and ' ’ . , or - between two of them (`don't`, `3.5`, `well-kept`), near to rules
    WB5 to WB13 of Unicode's annex 29.
    """
    return _WORD_OR_MARK.findall(text)


TOKENIZERS: MappingProxyType[str, Tokenizer] = MappingProxyType({"whitespace": str.split, "words": words_and_marks})
"""Name -> tokens of a text. `whitespace` is what the rules' thresholds were set with in DOLMa; datatrove's default is
spaCy's English tokenizer, which cuts punctuation off as `words` does."""


def find_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name. Raises UnknownTokenizer with the nearest one."""
    try:
        return TOKENIZERS[name]
    except KeyError:
        near = difflib.get_close_matches(name, TOKENIZERS, n=1, cutoff=0.0)
        raise UnknownTokenizer(f"unknown tokenizer {name!r}; the nearest is {near[0]!r}") from None
