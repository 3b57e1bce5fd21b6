"""The lines of a page: by example, by a walk over any tree, and on pages built to be slow."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from filters.extraction.html_tree import MAX_DEPTH, parse
from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE, characters_of, page_lines, visible_bytes, visible_text

CUT = "\x00"
TAGS = st.sampled_from(["p", "div", "a", "b", "span", "li", "br", "td", "x-y", "svg:g", *UNSEEN])
TREES = st.recursive(
    st.text("ab \n\t\u00a0é&<", max_size=6).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    lambda inner: st.tuples(TAGS, st.lists(inner, max_size=4)).map(lambda of: f"<{of[0]}>{''.join(of[1])}</{of[0]}>"),
    max_leaves=25,
)


def _lines(html: str) -> set[str]:
    return page_lines(characters_of(visible_text(parse(html))))


def walked(element: Any) -> str:
    """The visible text by a walk through the tree, cut where lines end."""
    pieces: list[str] = []

    def walk(element: Any) -> None:
        edge = [] if element.tag in INLINE else [CUT]
        pieces.extend([*edge, element.text or ""])
        for child in element:
            if child.tag not in UNSEEN:
                walk(child)
            pieces.append(child.tail or "")
        pieces.extend(edge)

    walk(element)
    return "".join(pieces)


def test_lines_end_at_block_elements_only() -> None:
    """Inline elements stay in their line; blocks, cells and `br` end it; scripts, styles and titles have none."""
    html = (
        "<title>t</title><style>s</style><p>One <b>two</b>\n three<a href='/'>!</a></p>tail<script>x</script> goes on"
        "<ul><li>Home<li>&lt;About&gt;</ul>a<br>b<noscript>no</noscript><table><td>1<td>2</table><i>c<div>d</div>e</i>f"
    )
    lines = {"One two three!", "tail goes on", "Home", "<About>", "a", "b", "1", "2", "c", "d", "ef"}
    assert _lines(html) == lines


@given(st.lists(TREES, max_size=4))
def test_lines_and_size_are_those_of_a_walk_and_the_tree_stays(trees: list[str]) -> None:
    """For any tree, the lines and the size are those that a walk finds, and the tree is as before."""
    root = parse(f"<body>{''.join(trees)}</body>")
    before = etree.tostring(root)
    visible, text = visible_text(root), walked(root)
    assert page_lines(characters_of(visible)) == {
        line for piece in text.split(CUT) if (line := " ".join(piece.split()))
    }
    assert visible_bytes(visible) == len(re.sub(f"[ \n\t\r{CUT}]", "", text).encode())
    assert etree.tostring(root) == before


def test_large_and_deep_trees() -> None:
    """The deepest tree, 50,000 elements, and a long text have all their lines."""
    deep = MAX_DEPTH - 10
    assert _lines("".join(f"<div>{number}" for number in range(deep))) == set(map(str, range(deep)))
    assert len(_lines("".join(f"<p>{number}</p>" for number in range(50_000)))) == 50_000
    assert _lines(f"<p>{'word ' * 400_000}") == {("word " * 400_000).strip()}
