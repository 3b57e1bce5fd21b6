"""C4's line cleaning: the kept lines of a text, and the counts of its document rules.

C4 (Raffel et al., JMLR 21:140, 2020) as datatrove 0.10 does it, line by line, in this order. A line is dropped if it

1. has a word of more than 1,000 characters;
2. without citations (`[1]`, `[edit]`, `[citation needed]`) does not end in one of . ? ! " ' or ends in `...`;
3. has fewer than 3 words with its citations;
4. contains `javascript`, or one of six phrases about policies and cookies.

Kept lines are stripped and lose their citations. The document rules drop a page with `lorem ipsum` or `{` in a line
that passed step 3 (`{`: only without `javascript`), or with fewer than 5 sentences in its kept lines. datatrove stops
at the first such line; this module counts all of them and always cleans the text.

The paper does not list `'` as an end mark. DOLMa uses the share of such lines (`filters.quality.lines`). C4's list of
bad words is not applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from filters.quality.sentences import count_sentences

END_MARKS = (".", "?", "!", '"', "'")
LONGEST_WORD = 1_000
LEAST_WORDS = 3
POLICY_PHRASES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
_CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
_TELLING = (b"lorem ipsum", b"javascript", b"{", b"cookie", b"privacy policy", b"terms of use")
_KELVIN = "\u212a"
"""The only character besides A to Z with a lower case of a to z."""


@dataclass(frozen=True)
class CleanedText:
    """A text after C4's line cleaning.

    `lorem_ipsum_lines` and `curly_bracket_lines` count lines that would drop the page. `kept` marks, for each line of
    the text (cut at line feeds), whether `text` contains it unchanged; None if a kept line was changed, or if C4 cuts
    the lines differently.
    """

    text: str
    lorem_ipsum_lines: int
    curly_bracket_lines: int
    kept: list[bool] | None

    @property
    def sentences(self) -> int:
        return count_sentences(self.text)


def clean(text: str) -> CleanedText:
    """Clean a text as C4 does; kept lines are joined by line feeds. Accepts any text."""
    # Few texts contain such a phrase; the others need no check of lines. Lower-casing only ASCII is faster.
    lowered = text.encode("utf-8", "surrogatepass").lower()
    telling = any(phrase in lowered for phrase in _TELLING) or _KELVIN in text
    whole = True
    lorem_ipsum = curly_bracket = 0
    lines: list[str] = []
    kept: list[bool] = []
    for original in text.splitlines():
        kept.append(False)
        line = original.strip()
        cited = "[" in line
        short = _CITATION.sub("", line) if cited else line
        if not short.endswith(END_MARKS) or short.endswith("..."):
            continue
        if len(line.split(None, LEAST_WORDS - 1)) < LEAST_WORDS:
            continue
        if len(line) > LONGEST_WORD and max(map(len, line.split())) > LONGEST_WORD:
            continue
        if telling:
            line_lowered = short.lower()
            lorem_ipsum += "lorem ipsum" in line_lowered
            if "javascript" in line_lowered:
                continue
            curly_bracket += "{" in short
            if any(phrase in line_lowered for phrase in POLICY_PHRASES):
                continue
        whole = whole and len(short) == len(original)
        kept[-1] = True
        lines.append(short)
    same_lines = len(kept) == text.count("\n") + 1 and not text.endswith("\n")  # as a split at line feeds
    return CleanedText(
        text="\n".join(lines).strip(),
        lorem_ipsum_lines=lorem_ipsum,
        curly_bracket_lines=curly_bracket,
        kept=kept if whole and same_lines else None,
    )
