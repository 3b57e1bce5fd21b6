"""Pages written by people, taken at run time from the language reference in every Python.

`pydoc_data.topics` has the texts of `help("topic")`: about fifty thousand words by the authors of the Python
documentation, so the demo needs neither a download nor a copy. Only prose is used, without markup; headings become the
titles of pages. A passage in several topics is used once, because a page that repeats its site is not an article. The
code depends on no particular topic: they differ between versions.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

PAGE_WORDS = 300  # a page ends with the paragraph that reaches this number
_MIN_PARAGRAPH_WORDS = 12  # shorter ones are signatures, captions and connecting lines between examples

_FUNCTION_WORDS = re.compile(
    r"\b(?:an?|the|and|or|but|if|is|are|be|was|as|at|by|for|from|in|into|its?|not?|of|on|tha[nt]|then|this|to|when|which"
    r"|with)\b",
    re.IGNORECASE,
)
_MIN_FUNCTION_WORD_SHARE = 0.22  # English prose has about .35, code and tables under .1

_UNDERLINE = re.compile(r"([*=\-~^+\"'#])\1{2,}")
_ITEM = re.compile(r"[*\-+] +|(?:\d+|[A-Za-z#]|[ivx]+)\. +")
_LABEL = re.compile(
    r"(?:Changed|Added|New|Deprecated)\b.{0,30}\bversion\b|(?:Note|Warning|See also):|\W*CPython implementation detail"
)
_NOT_PROSE = re.compile(r"::=|>>>|\.\.\.\s|\s{3,}|\||[{}=<>]{2,}|^#|\b(?:def|class|return) \w+[(:]")
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,2}(\w(?:[\w .()-]*[\w)])?)\*{1,2}(?![\w*])")
_LITERAL = re.compile(r'"([^"\n]+)"')
_FOOTNOTE = re.compile(r"\s*\[\d+\]")
_SECTION_REFERENCE = re.compile(r"\s*\((?:see|See)[^()]*\)")


class HumanPage(NamedTuple):
    """One page of prose."""

    title: str  # the heading of its first paragraph, numbered if several pages start under it
    paragraphs: tuple[str, ...]  # one line each


def prose(topics: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (heading, paragraph) for each distinct paragraph of prose, in the order of the topic names."""
    seen: set[str] = set()
    for name in sorted(topics):
        heading = name.capitalize()
        for block in re.split(r"\n[ \t]*\n", topics[name].expandtabs()):
            lines = textwrap.dedent(block.strip("\n")).splitlines()
            if len(lines) >= 2 and _UNDERLINE.fullmatch(lines[-1].strip()):
                heading = _plain(" ".join(lines[:-1]))
                continue
            paragraph = _paragraph(lines)
            if paragraph and paragraph not in seen:
                seen.add(paragraph)
                yield heading, paragraph


def human_pages(topics: Mapping[str, str] | None = None, *, page_words: int = PAGE_WORDS) -> list[HumanPage]:
    """Cut the prose of `topics` (default: those of the running Python) into pages of at least `page_words` words."""
    pages: list[HumanPage] = []
    titles: Counter[str] = Counter()
    title, paragraphs, words = "", list[str](), 0
    if topics is None:
        from pydoc_data import topics as of_python  # 700 KB, only for the demo

        topics = of_python.topics
    for heading, paragraph in prose(topics):
        title = title or heading
        paragraphs.append(paragraph)
        words += len(paragraph.split())
        if words >= page_words:
            titles[title] += 1
            part = f", part {titles[title]}" if titles[title] > 1 else ""
            pages.append(HumanPage(title + part, tuple(paragraphs)))
            title, paragraphs, words = "", [], 0
    return pages


def _paragraph(lines: list[str]) -> str:
    """The block as one line of plain prose; "" if it is not prose or its lines differ in indent."""
    item = _ITEM.match(lines[0]) if lines else None
    if item:  # without its mark
        lines = [lines[0][item.end() :], *(line.removeprefix(" " * item.end()) for line in lines[1:])]
    elif len(lines) > 1 and all(line.startswith(" ") for line in lines[1:]):  # a definition, without its term
        lines = textwrap.dedent("\n".join(lines[1:])).splitlines()
    if any(line.startswith((" ", "* ")) for line in lines):
        return ""
    text = _FOOTNOTE.sub("", " ".join(line.strip() for line in lines))
    if not text or _NOT_PROSE.search(text) or _LABEL.match(text) or not text[0].isupper() or text[-1] not in ".!?":
        return ""
    text = _plain(text)
    words = len(text.split())
    if words < _MIN_PARAGRAPH_WORDS or len(_FUNCTION_WORDS.findall(text)) < _MIN_FUNCTION_WORD_SHARE * words:
        return ""
    return text


def _plain(text: str) -> str:
    for pattern, replacement in ((_SECTION_REFERENCE, ""), (_EMPHASIS, r"\1"), (_LITERAL, r"\1")):
        text = pattern.sub(replacement, text)
    return " ".join(text.split())
