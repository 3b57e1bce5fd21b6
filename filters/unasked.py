"""Articles of a run that have no score, and whose text nobody has asked for: found from keys and digests alone.

A run that was judged while SCORE ran another detector has such articles. Asked for is a text that stands in a request
which SCORE has not dealt with; so one that SCORE has dealt with, and left without a score, is unasked again. Held are
sixteen bytes for each article that is unasked, of the partitions at hand.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import xxhash

from filters.known_scores import KnownScores


class Article(NamedTuple):
    """What a verdict says of an article's text."""

    site: str
    text_digest: str
    fetch_id: str


Articles = Callable[[int], Iterable[Article]]
"""partition -> the articles in it"""


class Unasked:
    """Fetches to ask for, one a site and text, by partition; each is given out once."""

    def __init__(self, articles: Articles, known: Callable[[], KnownScores]) -> None:
        """Of `articles` those that are not in `known`: texts that have a score, or are asked for, as it stands now."""
        self._articles = articles
        self._known = known
        self._fetches: dict[int, array[int]] = {}
        self._given: dict[int, bytearray] = {}  # of each fetch, whether it was taken

    def count(self, partition: int) -> int:
        """Texts to ask for in the partition. Raises what `articles` and `known` raise."""
        return len(self._of(partition))

    def take(self, partition: int, fetch_id: str) -> bool:
        """Whether this fetch is to be asked for; it is taken then. Raises as `count`."""
        fetches = self._of(partition)
        wanted = xxhash.xxh3_64_intdigest(fetch_id.encode())
        place = bisect_left(fetches, wanted)
        if place == len(fetches) or fetches[place] != wanted or self._given[partition][place]:
            return False
        self._given[partition][place] = True
        return True

    def forget(self, partitions: Iterable[int]) -> None:
        """Find out anew what is unasked in these partitions when they are looked at next."""
        for partition in partitions:
            self._fetches.pop(partition, None)
            self._given.pop(partition, None)

    def _of(self, partition: int) -> array[int]:
        found = self._fetches.get(partition)
        if found is None:
            found = self._fetches[partition] = self._find(partition)
            self._given[partition] = bytearray(len(found))
        return found

    def _find(self, partition: int) -> array[int]:
        known = self._known()
        texts, fetches = array("Q"), array("Q")
        for article in self._articles(partition):
            if not known.has(partition, article.site, article.text_digest):
                texts.append(xxhash.xxh3_64_intdigest(f"{article.site} {article.text_digest}".encode()))
                fetches.append(xxhash.xxh3_64_intdigest(article.fetch_id.encode()))
        texts.reverse()
        fetches.reverse()  # of a text's fetches the newest, which retention takes last
        _, last = np.unique(np.frombuffer(texts, dtype=np.uint64), return_index=True)
        chosen = np.unique(np.frombuffer(fetches, dtype=np.uint64)[last])
        found = array("Q")
        found.frombytes(chosen.tobytes())
        return found
