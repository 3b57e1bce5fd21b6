"""Indexes in memory, eight bytes per text: the texts with a score, and the articles without a score or a request.

Each partition has the sorted 64-bit digests of its scores' keys, `site digest:identity`. The chance that two of ten
million digests are equal is 1 in 370,000; the cost is one article that stays `unscored`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import xxhash

ScoreKeys = Callable[[Mapping[int, int]], Iterable[tuple[int, int, bytes]]]
"""partition -> first offset to read; yields (partition, offset, key) of the scores of all detectors.

An empty key only reports progress. A requested score that does not exist yet has the offset -1.
"""


class SortedDigests:
    """Distinct 64-bit numbers, sorted."""

    def __init__(self, numbers: array[int]) -> None:
        self.numbers = array("Q")
        self.numbers.frombytes(np.unique(np.frombuffer(numbers, dtype=np.uint64)).tobytes())

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, number: int) -> int | None:
        place = bisect_left(self.numbers, number)
        return place if place < len(self.numbers) and self.numbers[place] == number else None


class KnownScores:
    """Index of the texts that one detector has scored, by partition and site."""

    def __init__(self, detector: str, keys: ScoreKeys, most_unsorted: int = 4096) -> None:
        """Index the scores of the identity `detector` among `keys`; the first query for a partition loads it.

        At most `most_unsorted` digests, of some sixty bytes each, are kept outside the sorted array.
        """
        self._end = f":{detector}"
        self._keys = keys
        self._most_unsorted = most_unsorted
        self._digests: dict[int, SortedDigests] = {}
        self._later: dict[int, set[int]] = {}  # new digests, not sorted in yet
        self._next: dict[int, int] = {}  # next offset to read

    def has(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether the text was scored for this site of this partition. Raises as `keys`."""
        self.load([partition])
        wanted = xxhash.xxh3_64_intdigest(f"{site} {text_digest}{self._end}".encode())
        return self._digests[partition].place(wanted) is not None or wanted in self._later[partition]

    def load(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            if partition not in self._digests:
                self._read({partition: 0})

    def read_on(self) -> None:
        """Read new scores of the loaded partitions. Raises as `keys`."""
        self._read(self._next)

    def _read(self, after: Mapping[int, int]) -> None:
        reached = dict(after)
        new = {partition: array("Q") for partition in after}
        end = self._end.encode()
        for partition, offset, key in self._keys(dict(after)):
            reached[partition] = max(reached[partition], offset + 1)
            if key.endswith(end):
                new[partition].append(xxhash.xxh3_64_intdigest(key))
        self._next.update(reached)
        for partition, digests in new.items():
            later = self._later.get(partition, set())
            if partition in self._digests and len(later) + len(digests) <= self._most_unsorted:
                later.update(digests)
                continue
            if partition in self._digests:
                digests += self._digests[partition].numbers + array("Q", later)
            self._digests[partition], self._later[partition] = SortedDigests(digests), set()


class ArticleText(NamedTuple):
    """The text of an article, from its verdict."""

    site: str
    text_digest: str
    fetch_id: str


Articles = Callable[[int], Iterable[ArticleText]]
"""partition -> its articles"""


class _Unrequested(NamedTuple):
    """Digests of one partition."""

    fetches: SortedDigests
    texts: SortedDigests
    taken: bytearray  # 1 = the text was taken


class UnrequestedTexts:
    """Article texts without a score or a request, each once per site, with their fetches; by partition."""

    def __init__(self, articles: Articles, known: Callable[[], KnownScores]) -> None:
        """Find the texts of `articles` that are not in `known`, the index of texts with a score or a request."""
        self._articles = articles
        self._known = known
        self._digests: dict[int, _Unrequested] = {}

    def count(self, partition: int) -> int:
        return len(self._of(partition).texts)

    def has_fetch(self, partition: int, fetch_id: str) -> bool:
        """Whether this fetch has a text without a request. Raises as `articles` and `known`."""
        return self._of(partition).fetches.place(_digest(fetch_id)) is not None

    def take(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether to request this text now: true once per text. Raises as `articles` and `known`."""
        unrequested = self._of(partition)
        place = unrequested.texts.place(_digest(f"{site} {text_digest}"))
        if place is None or unrequested.taken[place]:
            return False
        unrequested.taken[place] = True
        return True

    def forget(self, partitions: Iterable[int]) -> None:
        """Recompute the unrequested texts of these partitions at their next use."""
        for partition in partitions:
            self._digests.pop(partition, None)

    def _of(self, partition: int) -> _Unrequested:
        if partition not in self._digests:
            known = self._known()
            texts, fetches = array("Q"), array("Q")
            for article in self._articles(partition):
                if not known.has(partition, article.site, article.text_digest):
                    texts.append(_digest(f"{article.site} {article.text_digest}"))
                    fetches.append(_digest(article.fetch_id))
            different = SortedDigests(texts)
            self._digests[partition] = _Unrequested(SortedDigests(fetches), different, bytearray(len(different)))
        return self._digests[partition]


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())
