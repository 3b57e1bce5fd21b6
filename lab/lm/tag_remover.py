"""The text of a page without its tags, scripts and styles, with the lines of its block elements: no other cleaning."""

from __future__ import annotations

import numpy as np

from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.structure.page_lines import characters_of, lines_of_parts, visible_text


def text_without_tags(html: str) -> str:
    """The visible lines of a page in order; "" for what cannot be parsed."""
    try:
        characters = characters_of(visible_text(parse(readable(html))))
    except ParseFailed:
        return ""
    (lines,) = lines_of_parts(characters, np.ones(len(characters), np.uint32), 1)
    return "\n".join(lines)
