"""Finds the records of a page: posts, comments, teasers, rows of a list.

Records are siblings of one tag and first class, whatever digits it has. Of all groups of a page, the one whose records
but the largest have most text outside links wins: a page's header, body and footer are siblings too, but one of them
has nearly all text. By the class it finds exactly the posts of 29 of 33 labelled threads (.92 of all); by the shape of
subtrees (tags to a depth of three) and most text, .63 of the posts, for they differ in what they hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import numpy as np

from filters.segments.text_tree import TextTree

LEAST_SHARE = 0.05  # of a page's text outside links, in the records but the largest

_DIGITS = re.compile(r"\d+")


def record_group(tree: TextTree) -> list[int]:
    """The places of a page's records in order; none if no group has enough text."""
    sizes = tree.prose[tree.ends] - tree.prose[tree.starts]
    order = tree.parents.argsort(kind="stable")
    children = tree.blocks[order]
    parents, firsts = np.unique(tree.parents[order], return_index=True)
    if not len(parents):
        return []
    beside = np.add.reduceat(sizes[children], firsts) - np.maximum.reduceat(sizes[children], firsts)
    best, winner = max(LEAST_SHARE * int(tree.prose[-1]), 1), list[int]()
    bounds = [*firsts.tolist(), len(children)]
    for group in np.argsort(-beside, kind="stable").tolist():
        if beside[group] < best:
            break
        by_name: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place in children[bounds[group] : bounds[group + 1]].tolist():
            by_name[name_of(tree.elements[place])].append(place)
        for places in by_name.values():
            of_each = sizes[places]
            if (size := int(of_each.sum() - of_each.max())) >= best:
                best, winner = size + 1, places
    return winner


def name_of(element: Any) -> tuple[str, str]:
    """Tag and first class of an element, whatever its digits."""
    first = next(iter((element.get("class") or "").split(None, 1)), "")
    return element.tag, _DIGITS.sub("", first)
