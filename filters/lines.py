"""What share of a text's lines and paragraphs is what; each corpus builder cuts and counts lines its own way.

- Gopher quality (datatrove): `splitlines`, empty lines included; bullets are • and -, white space before them is
  skipped; ellipses are … and `...`, white space behind is skipped. RedPajama has ten bullets, •
  and – among them and - not, and NeMo Curator asks the sentences that its splitter finds in place of lines.
- Gopher repetition (datatrove): lines are cut at runs of line feeds, so that at most the first and last are empty;
  paragraphs of the stripped text at two line feeds or more. A line is a duplicate where it stood before. Divisors: all
  lines; all characters of the text.
- FineWeb (datatrove): cut at line feeds, lines of white space left out. Divisors: those lines; the text's characters
  without line feeds; all tokens.
- DOLMa (gopher_v1, c4_v2): cut at line feeds, empty lines included. Bullets are * and -, at the very start; the only
  ellipsis is …, at the very end. All occurrences of a line that occurs twice are duplicates, and their characters are
  divided by the characters of the words. A line without . ? ! or " at its end is unpunctuated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from filters.characters import TERMINAL_PUNCTUATION
from filters.tokens import Tokens

Share = float | None

SHORT_LINE_CHARS = 30
"""FineWeb's longest short line."""

_DOLMA_END_MARKS = frozenset('.?!"')
_PARAGRAPH_BREAK = re.compile(r"\n{2,}")
_LINE_BREAK = re.compile(r"\n+")


def line_measures(text: str, tokens: Tokens) -> tuple[list[Share], list[Share], list[Share], list[Share]]:
    """Of a text, in this order:

    Gopher quality: shares of lines that start with a bullet, and that end in an ellipsis.
    Gopher repetition: duplicate paragraphs, their characters, duplicate lines, their characters.
    FineWeb: punctuated and short lines, characters of duplicate lines, line feeds per token.
    DOLMa: lines with a bullet, with an ellipsis, duplicate ones, their characters; and unpunctuated ones.
    """
    if not text:
        return [None] * 2, [None] * 4, [None] * 4, [None] * 5
    lines = text.split("\n")
    stripped = list(map(str.strip, lines))
    distinct = len(set(lines)) == len(lines)
    return (
        _gopher_quality(text),
        [0.0] * 4 if distinct and "\n\n" not in text else _gopher_repetition(text, lines),
        _fineweb(text, [line for line, inside in zip(lines, stripped, strict=True) if inside], tokens, distinct),
        _dolma(text, lines, stripped, tokens, distinct),
    )


def _gopher_quality(text: str) -> list[Share]:
    bullets = ellipses = 0
    bulleted, dotted = "•" in text or "-" in text, "…" in text or "..." in text
    lines = text.splitlines()
    if bulleted:
        bullets = sum([line.startswith(("•", "-")) for line in map(str.lstrip, lines)])
    if dotted:
        ellipses = sum([line.endswith(("...", "…")) for line in map(str.rstrip, lines)])
    return [bullets / len(lines), ellipses / len(lines)]


def _gopher_repetition(text: str, lines: list[str]) -> list[Share]:
    paragraphs = [""]
    if "\n\n" in text:
        paragraphs, lines = _PARAGRAPH_BREAK.split(text.strip()), _LINE_BREAK.split(text)
    shares: list[Share] = []
    for parts in (paragraphs, lines):
        repeats, chars = _later_occurrences(parts)
        shares += [repeats / len(parts), chars / len(text)]
    return shares


def _fineweb(text: str, lines: list[str], tokens: Tokens, distinct: bool) -> list[Share]:
    feeds = text.count("\n")
    per_token = feeds / len(tokens) if len(tokens) else None
    if not lines:
        return [None, None, None, per_token]
    return [
        sum([line[-1] in TERMINAL_PUNCTUATION for line in lines]) / len(lines),
        sum([len(line) <= SHORT_LINE_CHARS for line in lines]) / len(lines),
        0.0 if distinct else _later_occurrences(lines)[1] / (len(text) - feeds),
        per_token,
    ]


def _dolma(text: str, lines: list[str], stripped: list[str], tokens: Tokens, distinct: bool) -> list[Share]:
    repeats = chars = 0
    if not distinct:
        for line, count in Counter(lines).items():
            if count > 1:
                repeats += count
                chars += count * len(line)
    return [
        sum([line.startswith(("*", "-")) for line in lines]) / len(lines) if "*" in text or "-" in text else 0.0,
        sum([line.endswith("…") for line in lines]) / len(lines) if "…" in text else 0.0,
        repeats / len(lines),
        chars / tokens.chars if tokens.chars else None,
        sum([line[-1:] not in _DOLMA_END_MARKS for line in stripped]) / len(lines),
    ]


def _later_occurrences(parts: Sequence[str]) -> tuple[int, int]:
    """How many parts stood before, and their characters."""
    distinct = set(parts)
    return len(parts) - len(distinct), sum(map(len, parts)) - sum(map(len, distinct))
