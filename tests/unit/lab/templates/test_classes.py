"""Bits, the rule, and propagation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.settings import MeasureSettings
from lab.templates.classes import (
    CUR,
    DOWN,
    NEXT,
    PREV,
    UP,
    Node,
    NodeClass,
    bits_of,
    class_of,
    joint_class_of,
    nodes_of,
    propagated,
    text_chars,
)
from lab.templates.words import Words, page_tree, split_text, words_of
from tests.bench.studies.labelled_crosses import chained_bits_of

CONTENT, BOILERPLATE, INVALID = NodeClass
Others = Mapping[int, Sequence[str]]
Compared = Callable[[Sequence[str], Others], list[int]]
WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), max_size=40)
OTHERS = st.dictionaries(st.sampled_from((UP, DOWN, PREV, NEXT)), WORDS, max_size=4)


def page(body: str) -> Words:
    return words_of(page_tree(f"<html><body>{body}</body></html>".encode(), "utf-8", MeasureSettings()))


CROSSES = [CUR | UP | down | prev | next_ for down, prev, next_ in product((0, DOWN), (0, PREV), (0, NEXT))]
PATTERNS = [(bits, cross) for cross in CROSSES for bits in range(CUR, 2 * CUR) if not bits & ~cross]


@pytest.mark.parametrize(("bits", "cross"), PATTERNS)
def test_the_tables_of_the_thesis(bits: int, cross: int) -> None:
    """One pattern of a cross is content, that of its snapshots. With no page down, or no snapshot, all others are
    boilerplate; with both, only that of all pages is, and the others are invalid."""
    others = INVALID if cross & DOWN and cross & (PREV | NEXT) else BOILERPLATE
    table = {CUR | cross & (PREV | NEXT): CONTENT, cross: BOILERPLATE}
    assert class_of(bits, cross) is table.get(bits, others)


def test_the_joint_rule_leaves_less_invalid() -> None:
    """Of the nodes that the tables leave invalid, those on down and in a snapshot are; others are boilerplate."""
    invalid = {pattern for pattern in PATTERNS if class_of(*pattern) is INVALID}
    left = {pattern for pattern in PATTERNS if joint_class_of(*pattern) is INVALID}
    assert {f"{bits:05b}" for bits, _ in left} == {"10111", "11110", "11101", "10110", "10101"}
    assert left == {(bits, cross) for bits, cross in invalid if bits & DOWN and bits & (PREV | NEXT)}
    for pattern in PATTERNS:
        kept = INVALID if pattern in left else BOILERPLATE
        assert joint_class_of(*pattern) is (kept if pattern in invalid else class_of(*pattern))


@given(words=WORDS, others=OTHERS, compared=st.sampled_from((bits_of, chained_bits_of)))
def test_each_word_has_bits_of_pages_that_are_there(words: list[str], others: Others, compared: Compared) -> None:
    """Every word has the bit of its own page, and none of a missing page."""
    bits = compared(words, others)
    assert len(bits) == len(words)
    assert all(of & CUR and not of & ~(CUR | sum(others)) for of in bits)


@given(
    words=WORDS.filter(bool),
    roles=st.sets(st.sampled_from((UP, DOWN, PREV, NEXT))),
    compared=st.sampled_from((bits_of, chained_bits_of)),
)
def test_identical_pages_share_every_word(words: list[str], roles: set[int], compared: Compared) -> None:
    """If all pages are the same, all bits are set, whatever the comparison."""
    assert set(compared(words, dict.fromkeys(roles, words))) == {CUR | sum(roles)}


@given(old=WORDS, new=WORDS)
def test_one_other_page_is_compared_in_the_same_way(old: list[str], new: list[str]) -> None:
    """With one other page, the bits are the same chained and in pairs."""
    assert bits_of(new, {UP: old}) == chained_bits_of(new, {UP: old})


@given(words=WORDS, others=OTHERS)
def test_chained_bits_are_suffixes(words: list[str], others: dict[int, list[str]]) -> None:
    """Chained, a word that a page has is also on every later page of the order up, down, prev, next."""
    patterns = set()
    order = sorted(others, reverse=True)
    for place in range(len(order) + 1):
        patterns.add(CUR | sum(order[place:]))
    assert set(chained_bits_of(words, others)) <= patterns


@given(
    texts=st.lists(st.text("ab \n", max_size=8), min_size=1, max_size=6),
    bits=st.lists(st.integers(16, 31), min_size=60, max_size=60),
)
def test_nodes_cover_every_word_once(texts: list[str], bits: list[int]) -> None:
    """The nodes of a page follow each other without a gap, within their runs, and neighbours in a run differ."""
    words = page("".join(f"<p>{text}<b>{text}</b></p>" for text in texts))
    nodes = nodes_of(words, bits)
    at = 0
    for before, node in zip([None, *nodes], nodes, strict=False):
        run = words.runs[node.run]
        assert run.first <= node.first == at < node.end <= run.end
        assert len({bits[word] for word in range(node.first, node.end)}) == 1
        assert before is None or before.run != node.run or before.bits != node.bits
        at = node.end
    assert at == len(words.words)
    assert sum(text_chars(words, node) for node in nodes) == sum(map(len, words.words))


@given(text=st.text("ab \n\t\u2003\x1c"))
def test_a_text_is_its_words_and_blanks(text: str) -> None:
    """The pieces of a text join to it, and its words are those of `str.split`."""
    blanks, pieces = split_text(text)
    assert blanks + "".join(pieces) == text
    assert [piece.strip() for piece in pieces] == text.split()


def test_runs_end_at_tags_and_images_are_words() -> None:
    """A tag ends a run; an image stands in one, as a word of its address without characters."""
    words = page('<p>one <img src="a.png"> two<b>three</b></p>four<script>no</script> five<!-- no --> six')
    assert words.words == ["one", "\0a.png", "two", "three", "four", "five", "six"]
    assert [(run.element.tag, run.first, run.end) for run in words.runs] == [("p", 0, 3), ("b", 3, 4), ("body", 4, 7)]
    assert text_chars(words, Node(0, 0, 3, CUR)) == len("onetwo")


def test_a_class_goes_up_as_long_as_all_agree() -> None:
    """An element has the class of its nodes if they all have one, and so on upwards; empty elements do not count."""
    words = page("<div id=a><p>x</p><hr><p>y</p></div><div id=b><p>z</p><p>w</p></div>")
    nodes = nodes_of(words, [CUR] * 4)
    of = propagated(words, nodes, [CONTENT, CONTENT, CONTENT, BOILERPLATE])
    by_name = {element.get("id") or element.tag: given for element, given in of.items()}
    assert by_name["a"] is CONTENT
    assert "b" not in by_name and "body" not in by_name
    assert len(of) == 5
    alone = page("<main><p>x</p></main>")
    whole = propagated(alone, nodes_of(alone, [CUR]), [BOILERPLATE])
    assert {element.tag for element in whole} == {"p", "main", "body"}
