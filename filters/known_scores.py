"""Which texts a detector has scored already: eight bytes a score, so that tens of millions of them fit in memory.

A score's key on its topic is `site digest:identity` (a site's name holds no space). Of the keys of one detector a
64-bit digest each is kept, sorted, per partition. Two keys of n share a digest with a probability below n² / 2^65: of
ten million one in 370,000, and what it would cost is one article that stays `unscored`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import xxhash

ScoreKeys = Callable[[Mapping[int, int]], Iterable[tuple[int, int, bytes]]]
"""partition -> offset to read on from, 0 = the first; gives (partition, offset, key) of any detector's scores

A key may be empty: it says that the partition was read so far. One of a score that will come has the offset -1.
"""

_LATER_MOST = 4096  # digests beside the sorted ones: each takes some sixty bytes there


class KnownScores:
    """The texts that one detector has scored, by partition and site."""

    def __init__(self, detector: str, keys: ScoreKeys) -> None:
        """Look for scores of the identity `detector` among `keys`; a partition is read when it is first asked for."""
        self._end = f":{detector}"
        self._keys = keys
        self._digests: dict[int, array[int]] = {}
        self._later: dict[int, set[int]] = {}  # of these partitions, what came since they were sorted
        self._next: dict[int, int] = {}  # offset up to which each was read

    def has(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether the text was scored for the site, which lies in this partition. Raises what `keys` raises."""
        self.load([partition])
        wanted = xxhash.xxh3_64_intdigest(f"{site} {text_digest}{self._end}".encode())
        digests = self._digests[partition]
        place = bisect_left(digests, wanted)
        return (place < len(digests) and digests[place] == wanted) or wanted in self._later[partition]

    def load(self, partitions: Iterable[int]) -> None:
        """Read these partitions now, those that were read before left out. Raises what `keys` raises."""
        for partition in partitions:
            if partition not in self._digests:
                self._read(partition)

    def read_on(self) -> None:
        """Take in what came since, in the partitions that were asked for. Raises what `keys` raises."""
        end = self._end.encode()
        for partition, offset, key in self._keys(dict(self._next)):
            self._next[partition] = max(self._next[partition], offset + 1)
            if key.endswith(end):
                self._later[partition].add(xxhash.xxh3_64_intdigest(key))
        for partition, later in self._later.items():
            if len(later) > _LATER_MOST:
                self._sort(partition, self._digests[partition] + array("Q", later))

    def __len__(self) -> int:
        """Different scores in the partitions that were read."""
        sorted_ones = sum(len(digests) for digests in self._digests.values())
        return sorted_ones + sum(len(self._later[p].difference(digests)) for p, digests in self._digests.items())

    def _read(self, partition: int) -> None:
        end = self._end.encode()
        found = array("Q")
        after = 0
        for _, offset, key in self._keys({partition: 0}):
            after = max(after, offset + 1)
            if key.endswith(end):
                found.append(xxhash.xxh3_64_intdigest(key))
        self._sort(partition, found)
        self._next[partition] = after

    def _sort(self, partition: int, digests: array[int]) -> None:
        self._digests[partition] = sorted_once(digests)
        self._later[partition] = set()


def sorted_once(numbers: array[int]) -> array[int]:
    """The different numbers in order."""
    different = np.unique(np.frombuffer(numbers, dtype=np.uint64))
    found = array("Q")
    found.frombytes(different.tobytes())
    return found
