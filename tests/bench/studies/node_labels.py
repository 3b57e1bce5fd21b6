"""Labels of a page's text by people, in the form of the thesis's tool.

A line is LABEL, a tab, and the path of an annotated node: `div:nth-child(3) > p > dbce`, from a child of the body. The
tool counts the n-th child that is an element or a text as 2n - 1, and leaves `nth-child(1)` out. It puts words of equal
annotation with no tag between them into one element `dbce`, and images as if they were words. So a run of words is one
or several adjacent `dbce`, and the children after it are counted accordingly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lab.templates.classes import NodeClass
from lab.templates.words import Words, steps

_STEP = re.compile(r"([^\s:>]+)(?::nth-child\((\d{1,9})\))?")
_NODE = "dbce"

Path = tuple[tuple[str, int], ...]


class TruthMismatch(ValueError):
    """The labels are of another page, or have another form."""


def read_truth(lines: Iterable[str]) -> dict[Path, NodeClass]:
    """Path -> label. Raises TruthMismatch."""
    labels = {}
    for number, line in enumerate(lines, start=1):
        label, _, path = line.rstrip("\r\n").partition("\t")
        steps = [_STEP.fullmatch(step) for step in path.split(" > ")]
        if label not in ("content", "boilerplate") or not all(steps):
            raise TruthMismatch(f"line {number}: give `content` or `boilerplate`, a tab, and a path that ends in dbce")
        labels[tuple((step[1], int(step[2] or 1)) for step in steps if step)] = NodeClass(label)
    return labels


def run_labels(words: Words, truth: dict[Path, NodeClass]) -> list[NodeClass | None]:
    """The label of each run of a page; None if it has none, or two. Raises TruthMismatch if most paths lead to no run.

    A run has two where the pages that the labels were made with cut it, and people labelled its parts differently.
    """
    is_node = {path for path in truth if path[-1][0] == _NODE}
    labels_of_runs: list[NodeClass | None] = []
    used = 0
    around: list[tuple[Path, int]] = [((), 1)]  # path of each open element, place of its next child
    in_run = False

    def begin_run() -> None:
        nonlocal in_run, used
        if in_run:
            return
        in_run = True
        path, place = around[-1]
        labels = set()
        while (node := (*path, (_NODE, place))) in is_node:
            labels.add(truth[node])
            used, place = used + 1, place + 2
        around[-1] = (path, place)
        labels_of_runs.append(labels.pop() if len(labels) == 1 else None)

    body = words.tree.find("body")
    for begins, element, text in steps(words.tree):
        if element.tag == "img":
            if begins:
                begin_run()
        else:
            in_run = False
            if not begins:
                around.pop()
            elif element is not body:
                path, place = around[-1]
                around[-1] = (path, place + 2)
                around.append(((*path, (element.tag, place)), 1))
        if text and not text.isspace():
            begin_run()
    if 2 * used < len(truth):
        raise TruthMismatch(f"{len(truth) - used} of {len(truth)} paths lead to no text of the page")
    return labels_of_runs
