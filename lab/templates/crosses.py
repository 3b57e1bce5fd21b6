"""The pages of a site that a page is compared with: those whose sets of tokens have the highest Jaccard similarity.

A token is the path of tags to an element. The tokens of the thesis add the element's number among its siblings, the
number of its group of siblings within the level, and the level: one more element changes the tokens of all that follow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np
import xxhash
from lxml import etree

from filters.duplicates.shingles import sketch
from filters.structure import tag_paths as structure

Tokens = frozenset[int]

EXACT_PAGES = 2_000
"""Pages of a site that are compared each with each; of more, those that share a band of their MinHashes."""

_BANDS, _ROWS = 37, 3  # of a MinHash: a similarity of .2 is found with probability .26, of .3 .64, of .5 .99
_MOST_TOKENS = 4096  # of a page; the smallest are a sample of both pages (bottom-k sketch)
_NEAREST = 8  # pages before and after a page in a band's bucket: bounds the time of sites whose pages are all alike


def tag_paths(tree: Any) -> Tokens:
    """The paths of tags of a page, as hashes."""
    return frozenset(nsmallest(_MOST_TOKENS, structure.tag_paths(tree.iter(etree.Element), unseen=())))


def positional_tokens(tree: Any) -> Tokens:
    """The tokens of the thesis, as hashes: a path, with the numbers of sibling, group and level.

    Siblings, and the groups of a level, are numbered from the last to the first. Every element has a group of children,
    which may be empty.
    """
    groups = Counter({0: 1})  # level -> groups so far
    above = [(b"[document]", 0, 1)]  # path, number of the group of children from the first, children to come
    tokens = []
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if event == "end":
            above.pop()
            continue
        path, group, left = above[-1]
        level = len(above) - 1
        above[-1] = (path, group, left - 1)
        path = xxhash.xxh3_64_digest(path + b"/" + element.tag.encode())
        tokens.append((left - 1, group, level, path))
        above.append((path, groups[level + 1], len(element)))
        groups[level + 1] += 1
    hashes = {
        xxhash.xxh3_64_intdigest(path + b"%d_%d_%d" % (number, groups[level] - 1 - group, level))
        for number, group, level, path in tokens
    }
    return frozenset(nsmallest(_MOST_TOKENS, hashes))


def jaccard(one: Tokens, other: Tokens) -> float:
    """Shared tokens / all tokens."""
    shared = len(one & other)
    return shared / ((len(one) + len(other) - shared) or 1)


class Candidates:
    """The pages that may be similar to a page: all, or those that share a band of their MinHashes."""

    def __init__(self, pages: Sequence[Tokens]) -> None:
        self._all = range(len(pages))
        self._bands: list[list[bytes]] = []  # of each page
        if len(pages) <= EXACT_PAGES:
            return
        self._buckets: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)
        for number, tokens in enumerate(pages):
            values = sketch(np.fromiter(tokens, np.uint64, len(tokens)), _BANDS * _ROWS).reshape(_BANDS, _ROWS)
            self._bands.append([band.tobytes() for band in values])
            for band in enumerate(self._bands[-1]):
                self._buckets[band].append(number)

    def of(self, page: int) -> Iterable[int]:
        """Numbers of pages, the page itself among them."""
        if not self._bands:
            return self._all
        candidates = set[int]()
        for band in enumerate(self._bands[page]):
            bucket = self._buckets[band]
            place = bisect_left(bucket, page)
            candidates.update(bucket[max(0, place - _NEAREST) : place + _NEAREST + 1])
        return sorted(candidates)


class Snapshot(NamedTuple):
    """A page of a site: its URL without the scheme, its time, the tokens of its tree, and a hash of its text."""

    url: str
    at_ms: int
    tokens: Tokens
    text: int


class Cross(NamedTuple):
    """The pages that page `cur` is compared with, by their numbers.

    `up` and `down` are the most similar pages at two other URLs; of equally similar ones, the nearest in time. A page
    with the same text is not one of them: it is this page at another address, which would make all boilerplate. `prev`
    and `next` are the snapshots of the same URL before and after. None: there is none.
    """

    cur: int
    up: int | None
    down: int | None
    prev: int | None
    next: int | None
    similarity: float  # of `up`


def crosses_of(pages: Sequence[Snapshot], threshold: float = 0.0) -> list[Cross]:
    """The cross of each page of a site; `up` and `down` have this similarity at least."""
    of_url: defaultdict[str, list[int]] = defaultdict(list)
    order = sorted(range(len(pages)), key=lambda number: pages[number].at_ms)
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for number in order:
        if earlier := of_url[pages[number].url]:
            before[number], after[earlier[-1]] = earlier[-1], number
        of_url[pages[number].url].append(number)
    candidates = Candidates([pages[number].tokens for number in order])
    crosses: list[Cross | None] = [None] * len(pages)
    for place, number in enumerate(order):
        page = pages[number]
        best: dict[str, tuple[float, int, int]] = {}  # URL -> similarity, minus the time between, page
        for other in map(order.__getitem__, candidates.of(place)):
            url, at_ms, tokens, text = pages[other]
            if url != page.url and text != page.text:
                rank = (jaccard(page.tokens, tokens), -abs(at_ms - page.at_ms), other)
                if rank[0] >= threshold and (url not in best or rank > best[url]):
                    best[url] = rank
        ranked = sorted(best.values(), reverse=True)[:2]
        up, down = ([rank[2] for rank in ranked] + [None, None])[:2]
        crosses[number] = Cross(
            number, up, down, before.get(number), after.get(number), ranked[0][0] if ranked else 0.0
        )
    return [cross for cross in crosses if cross is not None]
