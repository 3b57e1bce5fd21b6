"""Which texts a detector has scored, and which articles nobody has asked for: eight bytes each, in memory.

Of a score's key, `site digest:identity`, a 64-bit digest is kept, sorted, per partition. Two of ten million are equal
by chance once in 370,000 times, at the cost of one article that stays `unscored`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import xxhash

ScoreKeys = Callable[[Mapping[int, int]], Iterable[tuple[int, int, bytes]]]
"""partition -> offset to read on from, 0 = the first; gives (partition, offset, key) of any detector's scores

A key may be empty: it says that the partition was read so far. One of a score that will come has the offset -1.
"""


class SortedDigests:
    """Different 64-bit numbers in order."""

    def __init__(self, numbers: array[int]) -> None:
        self.numbers = array("Q")
        self.numbers.frombytes(np.unique(np.frombuffer(numbers, dtype=np.uint64)).tobytes())

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, number: int) -> int | None:
        place = bisect_left(self.numbers, number)
        return place if place < len(self.numbers) and self.numbers[place] == number else None


class KnownScores:
    """The texts that one detector has scored, by partition and site."""

    def __init__(self, detector: str, keys: ScoreKeys, most_unsorted: int = 4096) -> None:
        """Look for scores of the identity `detector` among `keys`; a partition is read when it is first asked for.

        At most `most_unsorted` digests, of some sixty bytes each, are held beside the sorted ones.
        """
        self._end = f":{detector}"
        self._keys = keys
        self._most_unsorted = most_unsorted
        self._digests: dict[int, SortedDigests] = {}
        self._later: dict[int, set[int]] = {}  # of these partitions, what came since they were sorted
        self._next: dict[int, int] = {}  # offset up to which each was read

    def has(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether the text was scored for the site, which lies in this partition. Raises what `keys` raises."""
        self.load([partition])
        wanted = xxhash.xxh3_64_intdigest(f"{site} {text_digest}{self._end}".encode())
        return self._digests[partition].place(wanted) is not None or wanted in self._later[partition]

    def load(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            if partition not in self._digests:
                self._read({partition: 0})

    def read_on(self) -> None:
        """Take in what came since, in the partitions that were asked for. Raises what `keys` raises."""
        self._read(self._next)

    def _read(self, after: Mapping[int, int]) -> None:
        reached = dict(after)
        found = {partition: array("Q") for partition in after}
        end = self._end.encode()
        for partition, offset, key in self._keys(dict(after)):
            reached[partition] = max(reached[partition], offset + 1)
            if key.endswith(end):
                found[partition].append(xxhash.xxh3_64_intdigest(key))
        self._next.update(reached)
        for partition, digests in found.items():
            later = self._later.get(partition, set())
            if partition in self._digests and len(later) + len(digests) <= self._most_unsorted:
                later.update(digests)
                continue
            if partition in self._digests:
                digests += self._digests[partition].numbers + array("Q", later)
            self._digests[partition], self._later[partition] = SortedDigests(digests), set()


class ArticleText(NamedTuple):
    """An article's text, as its verdict has it."""

    site: str
    text_digest: str
    fetch_id: str


Articles = Callable[[int], Iterable[ArticleText]]
"""partition -> the articles in it"""


class _Found(NamedTuple):
    """Digests of one partition."""

    fetches: SortedDigests
    texts: SortedDigests
    taken: bytearray  # of each text, whether it was


class UnrequestedTexts:
    """Texts to ask for, each once a site, by partition, and their fetches: SCORE ran another detector, or left them."""

    def __init__(self, articles: Articles, known: Callable[[], KnownScores]) -> None:
        """Of `articles` those that are not in `known`: texts that have a score, or are asked for, as it stands now."""
        self._articles = articles
        self._known = known
        self._found: dict[int, _Found] = {}

    def count(self, partition: int) -> int:
        return len(self._of(partition).texts)

    def stands_at(self, partition: int, fetch_id: str) -> bool:
        """Whether a text to ask for stands at this fetch. Raises as `count`."""
        return self._of(partition).fetches.place(_digest(fetch_id)) is not None

    def take(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether this text is to be asked for; it is not any more then. Raises as `count`."""
        found = self._of(partition)
        place = found.texts.place(_digest(f"{site} {text_digest}"))
        if place is None or found.taken[place]:
            return False
        found.taken[place] = True
        return True

    def forget(self, partitions: Iterable[int]) -> None:
        """Find out anew what is unasked in these partitions when they are looked at next."""
        for partition in partitions:
            self._found.pop(partition, None)

    def _of(self, partition: int) -> _Found:
        if partition not in self._found:
            known = self._known()
            texts, fetches = array("Q"), array("Q")
            for article in self._articles(partition):
                if not known.has(partition, article.site, article.text_digest):
                    texts.append(_digest(f"{article.site} {article.text_digest}"))
                    fetches.append(_digest(article.fetch_id))
            different = SortedDigests(texts)
            self._found[partition] = _Found(SortedDigests(fetches), different, bytearray(len(different)))
        return self._found[partition]


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())
