"""The sentences of a text; `filters.quality.sentences` only counts them."""

from __future__ import annotations

import re

from filters.quality.sentences import AFTER_MARK, ends_sentence

_END = re.compile(r"[.!?…]" + AFTER_MARK)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them."""
    found: list[str] = []
    for line in text.split("\n"):
        ends = [match.end() for match in _END.finditer(line) if ends_sentence(line, match)]
        found += [line[start:end].strip() for start, end in zip([0, *ends], [*ends, len(line)], strict=True)]
    return [sentence for sentence in found if sentence]
