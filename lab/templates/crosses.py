"""The pages of a site that a page is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from lab.templates.similarity import Candidates, Tokens, jaccard


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


def without_scheme(url: str) -> str:
    """A page that is there by http and by https is one."""
    return url.partition("://")[2]


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
