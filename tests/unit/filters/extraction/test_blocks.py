"""Blocks of an extracted tree, and the two definitions of a block for judging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from filters.extraction.blocks import (
    ITEM_SHIFT,
    JOINED,
    KIND_MASK,
    LISTED,
    Block,
    BlockKind,
    Definition,
    PageBlocks,
    Sizes,
    link_code_share,
    pack,
    unpack,
)
from filters.extraction.main_text import read, read_flat

WORDS = st.text(alphabet="ab \n\t\xa0é", max_size=12)
TAGS = st.sampled_from(["p", "div", "list", "item", "table", "row", "cell", "head", "quote", "code", "hi", "ref", "lb"])


class BlockChars(NamedTuple):
    """Characters of a page: of each block, and of each list item and table cell."""

    blocks: list[int]
    listed: list[int]


def chars_of(rows: Sequence[Block], definition: Definition = Definition.PARAGRAPH) -> BlockChars:
    found = PageBlocks([pack(rows)], definition)
    return BlockChars(found.blocks.chars.tolist(), found.listed.chars.tolist())


def row_by_row(rows: Sequence[Block], definition: Definition) -> BlockChars:
    """The definitions in words of a loop."""
    blocks, listed = list[int](), list[int]()
    place_of, last_kind = dict[int, int](), -1
    for row in rows:
        kind, number = row.kind & KIND_MASK, row.kind >> ITEM_SHIFT
        goes_on = kind == last_kind and bool(row.kind & JOINED)
        if definition == Definition.RUN and (goes_on or kind == last_kind == BlockKind.PARAGRAPH):
            blocks[-1] += row.chars
        else:
            blocks.append(row.chars)
        if kind in LISTED:
            place = place_of.setdefault(number, len(listed)) if number else len(listed) - goes_on
            listed[place:] = [sum(listed[place : place + 1]) + row.chars, *listed[place + 1 :]]
        last_kind = kind
    return BlockChars(blocks, listed)


def tree(xml: str) -> etree._Element:
    return etree.fromstring(f"<body>{xml}</body>")


@st.composite
def bodies(draw: st.DrawFn, depth: int = 3) -> str:
    """Any nesting of the tags that occur."""
    parts = [draw(WORDS)]
    for tag in draw(st.lists(TAGS, max_size=3)) if depth else []:
        parts.append(f"<{tag}>{draw(bodies(depth - 1))}</{tag}>{draw(WORDS)}")
    return "".join(parts)


def kinds(xml: str) -> dict[str, str]:
    """The lines of each kind, for a body in which each row is a line."""
    text, rows = read(tree(xml))
    found: dict[str, str] = {}
    for row, line in zip(rows, text.split("\n"), strict=True):
        name = BlockKind(row.kind & KIND_MASK).name
        found[name] = f"{found.get(name, '')} {line}".strip()
    return found


def test_every_boundary_of_the_definition_ends_a_block() -> None:
    """Header, paragraph, div, text, cell, item, code, quote and line break end a block, of the nearest kind."""
    assert kinds(
        "start<head>h</head>tail<p>p1<lb/>p2</p><div>d1<div>d2</div>d3</div><list><item>i1</item><item>i2</item></list>"
        "<table><row><cell>c1</cell><cell>c2</cell></row></table><code>x = 1</code><quote>q</quote>end"
    ) == {
        "PARAGRAPH": "start tail p1 p2 d1 d2 d3 end",
        "HEADING": "h",
        "ITEM": "i1 i2",
        "CELL": "c1 c2",
        "CODE": "x = 1",
        "QUOTE": "q",
    }
    nested = kinds("<item>a<p>b</p></item><cell>c<list><item>d</item></list>e</cell><quote><p>f</p></quote>")
    assert nested == {"ITEM": "a b d", "CELL": "c e", "QUOTE": "f"}


def test_formatting_and_links_are_within_a_block() -> None:
    """hi and ref do not end a block; whitespace counts once; all inside ref is link text, also nested blocks."""
    text, rows = read(tree("<p>Read  <hi>all\n of</hi> <ref>this <hi>good</hi> book</ref> now</p>"))
    assert text == "Read all of this good book now"
    assert rows == [Block(BlockKind.PARAGRAPH, len(text), len("this good book"), 0)]
    _, rows = read(tree("<ref><head>abc</head><p>defg</p></ref><p>h</p>"))
    assert [(row.chars, row.link_chars) for row in rows] == [(3, 3), (4, 4), (1, 0)]


def test_code_within_a_line_is_a_boundary_but_no_line_break() -> None:
    """Code or a quotation inside a line ends a row of the block table, but the line stays whole, also in a run."""
    text, rows = read(tree("<p>Use <code>ls -l</code> as in <quote>this</quote>, then</p><p>go on</p>"))
    assert text == "Use ls -l as in this, then\ngo on"
    assert [(row.kind, row.chars, row.code_chars) for row in rows] == [
        (BlockKind.PARAGRAPH, 3, 0),
        (BlockKind.PARAGRAPH | JOINED, 5, 5),
        (BlockKind.PARAGRAPH | JOINED, 5, 0),
        (BlockKind.PARAGRAPH | JOINED, 4, 0),
        (BlockKind.PARAGRAPH | JOINED, 6, 0),
        (BlockKind.PARAGRAPH, 5, 0),
    ]
    assert chars_of(rows, Definition.RUN).blocks == [28]
    assert len(chars_of(rows, Definition.PARAGRAPH).blocks) == 6


def test_code_block_of_several_lines_is_one_code_block() -> None:
    """A listing, nested as Trafilatura leaves it, is one block of code."""
    _, rows = read(tree("<p>Run</p><code><code>a = 1\nb = 2</code></code>"))
    assert rows == [Block(BlockKind.PARAGRAPH, 3, 0, 0), Block(BlockKind.CODE, 11, 0, 11)]


@pytest.mark.parametrize(
    ("xml", "chars"),
    [
        ("<list><item>aaaa<lb/>bbb</item><item>cc</item></list>", [7, 2]),
        ("<list><item><p>aaaa</p><p>bbb</p></item><item>cc</item></list>", [7, 2]),
        ("<list><item>aa <code>bb</code> cc</item><item>d <quote>eeee</quote></item></list>", [6, 5]),
        ("<list><item>aaa <hi>b</hi> <ref>c</ref><lb/>d<div>e<div>f</div></div>g</item></list>", [11]),
        (
            "<list><item>aaaa<list><item>bb</item><item>c<lb/>c</item></list>dd</item><item>e</item></list>",
            [6, 2, 2, 1],
        ),
        ("<table><row><cell>aa<lb/>bb</cell><cell><p>c</p><p>d</p></cell></row></table>", [4, 2]),
        ("<table><row><cell>aa<list><item>b</item></list>cc</cell></row></table>", [4, 1]),
        ("<list><item>aa<head>heading</head><p>bb</p></item></list><p>prose</p>", [4]),
    ],
)
def test_an_item_or_cell_of_several_rows_has_the_characters_of_all_of_them(xml: str, chars: list[int]) -> None:
    """Line breaks, paragraphs, code, quotations and a nested list do not cut an item; a nested item is its own."""
    assert chars_of(read(tree(xml))[1]).listed == chars


def test_a_table_of_an_earlier_version_has_an_item_for_each_line() -> None:
    """Rows without numbers are items of their own, but for those that continue a line."""
    item = int(BlockKind.ITEM)
    rows = [Block(item, 3, 0, 0), Block(item | JOINED, 4, 0, 4), Block(item, 5, 0, 0), Block(0, 9, 0, 0)]
    assert chars_of([*rows, Block(JOINED, 1, 0, 0), Block(item, 6, 0, 0)]).listed == [7, 5, 6]


def test_runs_end_at_other_kinds() -> None:
    """Adjacent paragraphs merge; headings, items, cells, code and quotes stay single and end the run."""
    rows = [Block(kind, 10, 0, 0) for kind in (0, 0, 1, 0, 2, 2, 0, 3, 0, 0, 4, 5, 0)]
    assert chars_of(rows, Definition.RUN).blocks == [20, 10, 10, 10, 10, 10, 10, 20, 10, 10, 10]


def test_line_feeds_of_a_dumped_page_end_blocks() -> None:
    """A flat fallback has all lines of the page in one paragraph; each line is a block of its own."""
    body = tree("<p>Entry one\n Entry  two\n\nEntry three</p><p>four</p><p/>")
    text, rows = read_flat(body)
    assert text == "Entry one\nEntry two\nEntry three\nfour"
    assert rows == [Block(BlockKind.PARAGRAPH, chars, 0, 0) for chars in (9, 9, 11, 4)]
    assert len(read(body)[1]) == 2


def test_deep_nesting_costs_no_stack() -> None:
    """Text 10,000 elements deep is read."""
    body = etree.Element("body")
    inner = body
    for _ in range(10_000):
        inner = etree.SubElement(inner, "div")
    inner.text = "deep"
    assert read(body)[0] == "deep"


@given(bodies())
def test_no_text_is_lost_or_counted_twice(xml: str) -> None:
    """The words are those of the tree, in order; rows cover every character but the spaces between rows."""
    body = tree(xml)
    text, rows = read(body)
    assert "".join(text.split()) == "".join("".join(body.itertext()).split())
    assert all(line.strip() == line and line for line in text.split("\n")) or not text
    assert text.count("\n") == max(0, sum(not row.kind & JOINED for row in rows) - 1)
    joints = sum(bool(row.kind & JOINED) for row in rows)
    assert len(text) - text.count("\n") - joints <= sum(row.chars for row in rows) <= len(text) - text.count("\n")
    assert all(row.chars > 0 and 0 <= row.link_chars + row.code_chars <= row.chars for row in rows)


@given(bodies())
def test_definitions_share_the_characters(xml: str) -> None:
    """Both definitions have the same characters in total; runs are never more than rows; packing loses nothing."""
    _, rows = read(tree(xml))
    table = pack(rows)
    assert unpack(table) == rows
    rowwise, runs = (chars_of(rows, definition).blocks for definition in Definition)
    assert sum(rowwise) == sum(runs)
    assert len(runs) <= len(rowwise) == len(rows)


@given(bodies())
def test_items_share_the_characters_of_their_rows(xml: str) -> None:
    """Items and cells have every character of such rows once, each has one at least, and a lone row has no number."""
    _, rows = read(tree(xml))
    listed = [row for row in rows if row.kind & KIND_MASK in LISTED]
    found = chars_of(rows).listed
    assert sum(found) == sum(row.chars for row in listed)
    assert all(found) and len(found) <= len(listed)
    numbers = [row.kind >> ITEM_SHIFT for row in listed]
    assert all(number == 0 or numbers.count(number) > 1 for number in numbers)


ROWS = st.builds(
    lambda kind, is_joined, number, chars: Block(kind | JOINED * is_joined | number << ITEM_SHIFT, chars, 0, 0),
    st.integers(0, 5) | st.sampled_from(LISTED),
    st.booleans(),
    st.sampled_from([0, 0, 1, 2, 2**27]),
    st.integers(0, 2**32 - 1),
)


@given(st.lists(st.lists(ROWS, max_size=12), max_size=5), st.sampled_from(Definition))
def test_pages_together_have_the_characters_of_a_loop(pages: list[list[Block]], definition: Definition) -> None:
    """Whatever the rows, those of a damaged record too, a batch gives each page what a loop over its rows does."""
    together = PageBlocks([pack(rows) for rows in pages], definition)

    def of_page(sizes: Sizes, place: int) -> list[int]:
        chars: list[int] = sizes.chars[sizes.page == place].tolist()
        return chars

    for place, rows in enumerate(pages):
        alone = row_by_row(rows, definition)
        assert (of_page(together.blocks, place), of_page(together.listed, place)) == alone
        assert together.chars[place] == sum(alone.blocks)
        assert together.longest[place] == max(alone.blocks, default=None)
        for limit in (1, 200, 2**31):
            assert together.in_large[limit][place] == sum(chars for chars in alone.blocks if chars >= limit)
            assert together.in_small_listed[limit][place] == sum(chars for chars in alone.listed if chars <= limit)


def test_link_code_share_is_of_characters() -> None:
    """The share is link and code characters over all characters; it is unknown without characters."""
    assert link_code_share([Block(0, 80, 10, 0), Block(4, 20, 0, 20)]) == 0.3
    assert link_code_share([]) is None


def test_cut_off_table_is_an_error() -> None:
    """A table with a partial row is refused, and the error has its length."""
    with pytest.raises(ValueError, match="17 bytes"):
        unpack(bytes(17))
