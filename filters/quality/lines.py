"""Shares of a text's lines and paragraphs. Each corpus builder cuts and counts lines differently.

- Gopher quality (datatrove): `splitlines`, empty lines included; bullets are • and -, white space before them is
  skipped; ellipses are … and `...`, white space behind is skipped.
- Gopher repetition (datatrove): lines are cut at runs of line feeds, so at most the first and last are empty;
  paragraphs of the stripped text are cut at two or more line feeds. A line is a duplicate if it occurred before.
  Divisors: all lines; all characters of the text.
- FineWeb (datatrove): cut at line feeds, without lines of white space. Divisors: those lines; the text's characters
  without line feeds; all tokens.
- DOLMa (gopher_v1, c4_v2): cut at line feeds, empty lines included. Bullets are * and -, at the very start; the only
  ellipsis is …, at the very end. All occurrences of a line that occurs twice are duplicates, and their characters are
  divided by the characters of the words. A line without . ? ! or " at its end is unpunctuated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import compress

from filters.quality.characters import TERMINAL_PUNCTUATION
from filters.quality.tokens import Tokens

Share = float | None

SHORT_LINE_CHARS = 30  # FineWeb's longest short line
_END_MARKS = '.?!"'  # DOLMa's, and those of C4's paper
_PARAGRAPH_BREAK = re.compile(r"\n{2,}")
_LINE_BREAK = re.compile(r"\n+")


def line_measures(
    text: str, tokens: Tokens, ellipses: bool
) -> tuple[list[Share], list[Share], list[Share], list[Share]]:
    """Gopher quality: bullets, ellipses. Gopher repetition: duplicate paragraphs, lines, each with their characters.

    FineWeb: punctuated, short, characters of duplicates, line feeds per token. DOLMa: bullets, ellipses, duplicates and
    their characters, unpunctuated. `ellipses` says whether the text has any.
    """
    if not text:
        return [None] * 2, [None] * 4, [None] * 4, [None] * 5
    lines = text.split("\n")
    distinct = len(set(lines)) == len(lines)
    lasts = [line[-1:] for line in lines]
    visible = lines
    if not all(lasts) or any(map(str.isspace, lasts)):  # rare
        visible = [line for line in lines if line and not line.isspace()]
        lasts = [line[-1:] for line in map(str.rstrip, lines)]
    return (
        _gopher_quality(text, ellipses),
        [0.0] * 4 if distinct and "" not in lines[1:-1] else _gopher_repetition(text, lines),
        _fineweb(text, visible, len(lines) - 1, tokens, distinct),
        _dolma(text, lines, lasts, tokens, distinct),
    )


def punctuated_lines(text: str) -> list[bool]:
    """Whether each line (cut at line feeds) ends in . ? ! or ", white space aside: the lines that NoPunc keeps."""
    return [line.endswith(tuple(_END_MARKS)) for line in map(str.rstrip, text.split("\n"))]


def punctuated_text(text: str) -> str:
    """The text without its unpunctuated lines, as DOLMa removes them ("C4 NoPunc")."""
    return "\n".join(compress(text.split("\n"), punctuated_lines(text)))


def _gopher_quality(text: str, ellipses: bool) -> list[Share]:
    bullets = dotted = 0
    lines = text.splitlines()
    if "•" in text or "-" in text:
        bullets = _of_any([line[:1] for line in map(str.lstrip, lines)], "•-")
    if ellipses:
        dotted = sum([line.endswith(("...", "…")) for line in map(str.rstrip, lines)])
    return [bullets / len(lines), dotted / len(lines)]


def _gopher_repetition(text: str, lines: list[str]) -> list[Share]:
    paragraphs = [""]
    if "" in lines[1:-1]:
        paragraphs, lines = _PARAGRAPH_BREAK.split(text.strip()), _LINE_BREAK.split(text)
    shares: list[Share] = []
    for parts in (paragraphs, lines):
        repeats, chars = _later_occurrences(parts)
        shares += [repeats / len(parts), chars / len(text)]
    return shares


def _fineweb(text: str, lines: list[str], feeds: int, tokens: Tokens, distinct: bool) -> list[Share]:
    per_token = feeds / len(tokens) if len(tokens) else None
    if not lines:
        return [None, None, None, per_token]
    return [
        sum(map(TERMINAL_PUNCTUATION.__contains__, [line[-1] for line in lines])) / len(lines),
        sum(map(SHORT_LINE_CHARS.__ge__, map(len, lines))) / len(lines),
        0.0 if distinct else _later_occurrences(lines)[1] / (len(text) - feeds),
        per_token,
    ]


def _dolma(text: str, lines: list[str], lasts: list[str], tokens: Tokens, distinct: bool) -> list[Share]:
    repeats = chars = 0
    if not distinct:
        for line, count in Counter(lines).items():
            if count > 1:
                repeats += count
                chars += count * len(line)
    return [
        _of_any([line[:1] for line in lines], "*-") / len(lines) if "*" in text or "-" in text else 0.0,
        _of_any([line[-1:] for line in lines], "…") / len(lines) if "…" in text else 0.0,
        repeats / len(lines),
        chars / tokens.chars if tokens.chars else None,
        (len(lines) - _of_any(lasts, _END_MARKS)) / len(lines),
    ]


def _of_any(characters: list[str], some: str) -> int:
    return sum(map(characters.count, some))


def _later_occurrences(parts: Sequence[str]) -> tuple[int, int]:
    distinct = set(parts)
    return len(parts) - len(distinct), sum(map(len, parts)) - sum(map(len, distinct))
