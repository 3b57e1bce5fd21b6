"""Finds the records of a page: posts, comments, teasers, rows of a list.

Records are siblings of one tag and first class, whatever digits it has. Of all groups of a page, the one whose records
but the largest have most text outside links wins: a page's header, body and footer are siblings too, but one of them
has nearly all text. By the class it finds exactly the posts of 29 of 33 labelled threads (.92 of all); by the shape of
subtrees (tags to a depth of three) and most text, .63 of the posts, for they differ in what they hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np

from filters.segments.text_tree import TextTree

LEAST_SHARE = 0.05  # of a page's text outside links, in the records but the largest
MOST_GROUPS = 4
MOST_NAME_CHARS = 1_000  # of an attribute

_DIGITS = re.compile(r"\d+")


def record_groups(tree: TextTree) -> list[list[int]]:
    """The places of the records of each group with enough text, in order; the group with most text first."""
    sizes = tree.prose[tree.ends] - tree.prose[tree.starts]
    order = tree.parents.argsort(kind="stable")
    children, parents = tree.blocks[order], tree.parents[order]
    if not len(parents):
        return []
    firsts = np.flatnonzero(np.concatenate(([True], parents[1:] != parents[:-1])))
    beside = np.add.reduceat(sizes[children], firsts) - np.maximum.reduceat(sizes[children], firsts)
    least, groups = max(LEAST_SHARE * int(tree.prose[-1]), 1), list[tuple[int, list[int]]]()
    bounds = [*firsts.tolist(), len(children)]
    for group in (beside >= least).nonzero()[0].tolist():
        by_name: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place in children[bounds[group] : bounds[group + 1]].tolist():
            by_name[name_of(tree.elements[place])].append(place)
        for places in by_name.values():
            of_each = sizes[places]
            if (size := int(of_each.sum() - of_each.max())) >= least:
                groups.append((-size, places))
    return [places for _, places in sorted(groups)[:MOST_GROUPS]]


def name_of(element: Any) -> tuple[str, str]:
    """Tag and first class of an element, whatever its digits."""
    return element.tag, _first_of(element.get("class", "")[:MOST_NAME_CHARS])


@lru_cache(maxsize=1024)  # siblings have the same
def _first_of(classes: str) -> str:
    return _DIGITS.sub("", next(iter(classes.split(None, 1)), ""))
