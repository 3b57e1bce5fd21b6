"""Articles of a run that have no score, and whose text nobody has asked for: found from keys and digests alone.

A run that was judged while SCORE ran another detector has such articles. Asked for is a text that stands in a request
which SCORE has not dealt with; so one that SCORE has dealt with, and left without a score, is unasked again. Held are
some sixteen bytes for each article that is unasked, of the partitions at hand.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

import xxhash

from filters.known_scores import KnownScores, sorted_once


class ArticleText(NamedTuple):
    """What a verdict says of an article's text."""

    site: str
    text_digest: str
    fetch_id: str


Articles = Callable[[int], Iterable[ArticleText]]
"""partition -> the articles in it"""


class _Found(NamedTuple):
    """Digests of one partition, each array in order."""

    fetches: array[int]
    texts: array[int]
    taken: bytearray  # of each text, whether it was


class UnrequestedTexts:
    """Texts to ask for, each once a site, by partition; and the fetches at which they stand."""

    def __init__(self, articles: Articles, known: Callable[[], KnownScores]) -> None:
        """Of `articles` those that are not in `known`: texts that have a score, or are asked for, as it stands now."""
        self._articles = articles
        self._known = known
        self._found: dict[int, _Found] = {}

    def count(self, partition: int) -> int:
        """Texts to ask for in the partition. Raises what `articles` and `known` raise."""
        return len(self._of(partition).texts)

    def stands_at(self, partition: int, fetch_id: str) -> bool:
        """Whether a text to ask for stands at this fetch. Raises as `count`."""
        return _place(self._of(partition).fetches, fetch_id) is not None

    def take(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether this text is to be asked for; it is not any more then. Raises as `count`."""
        found = self._of(partition)
        place = _place(found.texts, f"{site} {text_digest}")
        if place is None or found.taken[place]:
            return False
        found.taken[place] = True
        return True

    def forget(self, partitions: Iterable[int]) -> None:
        """Find out anew what is unasked in these partitions when they are looked at next."""
        for partition in partitions:
            self._found.pop(partition, None)

    def _of(self, partition: int) -> _Found:
        found = self._found.get(partition)
        if found is None:
            found = self._found[partition] = self._find(partition)
        return found

    def _find(self, partition: int) -> _Found:
        known = self._known()
        texts, fetches = array("Q"), array("Q")
        for article in self._articles(partition):
            if not known.has(partition, article.site, article.text_digest):
                texts.append(_digest(f"{article.site} {article.text_digest}"))
                fetches.append(_digest(article.fetch_id))
        texts = sorted_once(texts)
        return _Found(sorted_once(fetches), texts, bytearray(len(texts)))


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


def _place(digests: array[int], text: str) -> int | None:
    wanted = _digest(text)
    place = bisect_left(digests, wanted)
    return place if place < len(digests) and digests[place] == wanted else None
