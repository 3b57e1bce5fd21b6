"""The methods, their features, and the labels of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from filters.settings import MeasureSettings
from lab.templates.classes import CUR, DOWN, PREV, UP, NodeClass, nodes_of
from lab.templates.features import LAYER, features_of
from lab.templates.learning import LEARNED, Method, classes_of
from lab.templates.words import Words, page_tree, words_of
from tests.bench.studies.node_labels import TruthMismatch, read_truth, run_labels

CONTENT, BOILERPLATE, INVALID = NodeClass
CROSS = CUR | UP | DOWN | PREV


def page(body: str) -> Words:
    return words_of(page_tree(f"<html><body>{body}</body></html>".encode(), "utf-8", MeasureSettings()))


PAGE = page('<div class=x><p>one two three</p><a href="/">four</a></div><p>five</p>')
NODES = nodes_of(PAGE, [CUR | PREV, CUR | PREV, CROSS, CUR | DOWN | PREV, CROSS])


def test_the_bits_decide() -> None:
    """T001 gives each node the class of its bits, `joint` by its rule; T002 makes invalid ones boilerplate."""
    nodes = nodes_of(PAGE, [CUR | PREV, CUR | PREV, CUR, CUR | DOWN | PREV, CROSS])
    assert classes_of(PAGE, nodes, CROSS, Method.T001) == [CONTENT, INVALID, INVALID, BOILERPLATE]
    assert classes_of(PAGE, nodes, CROSS, Method.JOINT) == [CONTENT, BOILERPLATE, INVALID, BOILERPLATE]
    assert classes_of(PAGE, nodes, CROSS, Method.T002) == [CONTENT, *[BOILERPLATE] * 3]


def test_a_run_has_the_class_of_most_of_it() -> None:
    """`runs` turns the third word of a paragraph, which another page has by chance, into content."""
    short = nodes_of(PAGE, [CUR | PREV, CROSS, CROSS, CROSS, CROSS])
    assert classes_of(PAGE, NODES, CROSS, Method.RUNS) == [CONTENT, CONTENT, BOILERPLATE, BOILERPLATE]
    assert set(classes_of(PAGE, short, CROSS, Method.RUNS)) == {BOILERPLATE}


@pytest.mark.parametrize(("method", "layers"), [("t003", 1), ("t004", 2), ("t005", 3), ("t006", 3)])
def test_a_learner_is_trained_on_valid_nodes_and_classifies_all(method: str, layers: int) -> None:
    """The learner gets the rows and labels of the valid nodes, 20 features a layer, and the rows of all nodes."""
    seen: list[int] = []

    def learner(rows: Sequence[Sequence[float]], labels: Sequence[str], others: Sequence[Sequence[float]]) -> list[str]:
        assert list(labels) == ["content", "boilerplate", "boilerplate"]
        seen.extend(map(len, [*rows, *others]))
        return ["content"] * len(others)

    assert classes_of(PAGE, NODES, CROSS, Method(method), learner) == [CONTENT] * 4
    assert seen == [LAYER * layers] * 7


def test_equal_features_of_both_classes_teach_nothing() -> None:
    """Texts that differ in class alone are left out; if nothing of one class is left, the page needs no learner."""
    words = page("<ul>" + "<li>same <b>x</b></li>" * 6 + "</ul><p>other words</p>")
    bits = [CROSS] * len(words.words)
    bits[2] = bits[-1] = bits[-2] = CUR | PREV
    seen: list[str] = []

    def learner(rows: Sequence[Sequence[float]], labels: Sequence[str], others: Sequence[Sequence[float]]) -> list[str]:
        seen.extend(labels)
        return ["content"] * len(others)

    nodes = nodes_of(words, bits)
    assert classes_of(words, nodes, CROSS, Method.T003, learner) == [CONTENT] * len(nodes)
    # of the six `same`, the first has no text before it, and the five others are alike
    assert Counter(seen) == {"boilerplate": 1 + 6, "content": 1}
    bits[-1] = bits[-2] = CROSS
    found = classes_of(words, nodes_of(words, bits), CROSS, Method.T003, pytest.fail)  # type: ignore[arg-type]
    assert Counter(found) == {BOILERPLATE: len(nodes) - 1, CONTENT: 1}


@pytest.mark.parametrize("method", sorted(LEARNED))
def test_a_page_with_one_class_needs_no_learner(method: Method) -> None:
    """If all valid nodes are of one class there is nothing to learn."""
    nodes = nodes_of(PAGE, [CROSS] * 5)
    assert set(classes_of(PAGE, nodes, CROSS, method, pytest.fail)) == {BOILERPLATE}  # type: ignore[arg-type]
    assert classes_of(page(""), [], CROSS, method, pytest.fail) == []  # type: ignore[arg-type]


def test_the_features_of_a_layer() -> None:
    """Tags, class; link density, words a line, words, characters, elements of the text, then of those beside it;
    characters an element."""
    first, second, link, last = features_of(PAGE, NODES, 3)
    a, _, div, _, p = range(5)  # of a, body, div, html, p
    assert [row[:3] for row in (first, second, link, last)] == [[p, -1, p], [p, p, a], [a, p, p], [p, a, -1]]
    assert first[3] == second[3] == link[3] == last[3] != first[43]
    assert first[4:9] == [0.0, 2.0, 2.0, 6.0, 1.0] and first[19] == 6.0
    assert first[9:14] == [0.0] * 5 and first[14:19] == second[4:9]
    assert link[4:9] == [1.0, 1.0, 1.0, 4.0, 1.0]
    assert first[20:23] == [p, -1, a]  # p: two nodes and itself
    assert first[24:29] == [0.0, 3.0, 3.0, 11.0, 3.0] and first[39] == 11.0 / 3
    assert first[34:39] == [1.0, 1.0, 1.0, 4.0, 2.0]  # a
    assert first[44:49] == [4 / 15, 4.0, 4.0, 15.0, 6.0] and first[59] == 2.5  # div
    assert first[40:43] == [div, -1, p] and last[40:] == [0.0] * LAYER  # outside the body


def test_labels_lead_to_runs() -> None:
    """A path leads to a run of words, which may be several adjacent nodes and have images; blanks do not count."""
    words = page("<div> <p>a <img src=x>b</p> c <!-- --> d <b>e</b></div>")
    lines = [
        "content\tdiv > p > dbce\n",
        "content\tdiv > p > dbce:nth-child(3)\n",
        "boilerplate\tdiv > dbce:nth-child(3)\n",
        "content\tdiv > b:nth-child(5) > dbce\n",
    ]
    assert run_labels(words, read_truth(lines)) == [CONTENT, BOILERPLATE, CONTENT]


@pytest.mark.parametrize(
    ("lines", "labels"),
    [
        (["content\tp > dbce"], [CONTENT, None]),
        (["content\tp > dbce", "content\tp:nth-child(5) > dbce"], [CONTENT, None]),
        (
            ["content\tp > dbce", "boilerplate\tp > dbce:nth-child(3)", "content\tp:nth-child(3) > dbce"],
            [None, CONTENT],
        ),
    ],
)
def test_a_run_without_one_label_has_none(lines: list[str], labels: list[NodeClass | None]) -> None:
    """A run that no path leads to, or whose parts have different labels, keeps the others."""
    assert run_labels(page("<p>a</p><p>b</p>"), read_truth(lines)) == labels


@pytest.mark.parametrize(
    "lines",
    [
        ["content\tp > dbce", "content\tp:nth-child(5) > dbce", "content\tdiv > dbce"],
        ["maybe\tp > dbce"],
        ["content p > dbce"],
        ["content\tp >> dbce"],
        ["content\tp:nth-child(x) > dbce"],
        [""],
    ],
)
def test_labels_of_another_page_are_refused(lines: list[str]) -> None:
    """Most paths lead nowhere, or lines have another form."""
    with pytest.raises(TruthMismatch):
        run_labels(page("<p>a</p><p>b</p>"), read_truth(lines))
