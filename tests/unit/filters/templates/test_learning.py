"""The methods, their features, and the labels of people."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from filters.settings import MeasureSettings
from filters.templates.classes import CUR, DOWN, PREV, UP, NodeClass, nodes_of
from filters.templates.features import LAYER, features_of
from filters.templates.learning import LEARNED, Method, classes_of
from filters.templates.truth import TruthMismatch, read_truth, run_labels
from filters.templates.words import Words, page_tree, words_of

CONTENT, BOILERPLATE, INVALID = NodeClass
CROSS = CUR | UP | DOWN | PREV


def page(body: str) -> Words:
    return words_of(page_tree(f"<html><body>{body}</body></html>".encode(), "utf-8", MeasureSettings()))


PAGE = page('<div class=x><p>one two three</p><a href="/">four</a></div><p>five</p>')
NODES = nodes_of(PAGE, [CUR | PREV, CUR | PREV, CROSS, CUR | DOWN | PREV, CROSS])


def test_the_bits_decide() -> None:
    """T001 gives each node the class of its bits, T002 makes invalid ones boilerplate."""
    assert classes_of(PAGE, NODES, CROSS, Method.T001) == [CONTENT, BOILERPLATE, INVALID, BOILERPLATE]
    assert classes_of(PAGE, NODES, CROSS, Method.T002) == [CONTENT, *[BOILERPLATE] * 3]


def test_a_run_has_the_class_of_most_of_it() -> None:
    """`runs` turns the third word of a paragraph, which another page has by chance, into content."""
    short = nodes_of(PAGE, [CUR | PREV, CROSS, CROSS, CROSS, CROSS])
    assert classes_of(PAGE, NODES, CROSS, Method.RUNS) == [CONTENT, CONTENT, BOILERPLATE, BOILERPLATE]
    assert set(classes_of(PAGE, short, CROSS, Method.RUNS)) == {BOILERPLATE}


@pytest.mark.parametrize(("method", "layers"), [("t003", 1), ("t004", 2), ("t005", 3), ("t006", 3)])
def test_a_learner_is_trained_on_valid_nodes_and_classifies_all(method: str, layers: int) -> None:
    """The learner gets the rows and labels of the valid nodes, 20 features a layer, and the rows of all nodes."""
    seen: list[int] = []

    def learner(rows: Sequence[list[float]], labels: Sequence[str], others: Sequence[list[float]]) -> list[str]:
        assert list(labels) == ["content", "boilerplate", "boilerplate"]
        seen.extend(map(len, [*rows, *others]))
        return ["content"] * len(others)

    assert classes_of(PAGE, NODES, CROSS, Method(method), learner) == [CONTENT] * 4
    assert seen == [LAYER * layers] * 7


@pytest.mark.parametrize("method", sorted(LEARNED))
def test_a_page_with_one_class_needs_no_learner(method: Method) -> None:
    """If all valid nodes are of one class there is nothing to learn."""
    nodes = nodes_of(PAGE, [CROSS] * 5)
    assert set(classes_of(PAGE, nodes, CROSS, method, pytest.fail)) == {BOILERPLATE}  # type: ignore[arg-type]
    assert classes_of(page(""), [], CROSS, method, pytest.fail) == []  # type: ignore[arg-type]


def test_the_features_of_a_layer() -> None:
    """Link density, words a line, words, characters, elements, characters an element: of the text, then beside it."""
    first, second, link, last = features_of(PAGE, NODES, 3)
    assert first[2:8] == [0.0, 2.0, 2.0, 6.0, 1.0, 6.0]
    assert first[8:14] == [0.0] * 6 and first[14:20] == second[2:8]
    assert link[2:8] == [1.0, 1.0, 1.0, 4.0, 1.0, 4.0]
    assert first[:2] == second[:2] != link[:2] and first[:2] == last[:2]
    assert first[22:28] == [0.0, 3.0, 3.0, 11.0, 3.0, 11.0 / 3]  # p: two nodes and itself
    assert first[34:40] == [1.0, 1.0, 1.0, 4.0, 2.0, 2.0]  # a
    assert first[42:48] == [4 / 15, 4.0, 4.0, 15.0, 6.0, 2.5]  # div
    assert last[40:] == [0.0] * LAYER  # outside the body


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
    "lines",
    [
        ["content\tp > dbce"],
        ["content\tp > dbce", "content\tp:nth-child(3) > dbce", "content\tp:nth-child(5) > dbce"],
        ["content\tp > dbce", "boilerplate\tp > dbce:nth-child(3)", "content\tp:nth-child(3) > dbce"],
        ["maybe\tp > dbce"],
        ["content p > dbce"],
        ["content\tp >> dbce"],
        ["content\tp:nth-child(x) > dbce"],
        [""],
    ],
)
def test_labels_of_another_page_are_refused(lines: list[str]) -> None:
    """A run without a label, with two, a path that leads nowhere, and lines of another form are errors."""
    with pytest.raises(TruthMismatch):
        run_labels(page("<p>a</p><p>b</p>"), read_truth(lines))
