"""Which texts a detector has scored already: eight bytes a score, so that tens of millions of them fit in memory.

A score's key on its topic is `site digest:identity` (a site's name holds no space). Of the keys of one detector a
64-bit digest each is kept, sorted, per partition. Two keys of n share a digest with a probability below n² / 2^65: of
ten million one in 370,000, and what it would cost is one article that stays `unscored`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable

import numpy as np
import xxhash

ScoreKeys = Callable[[int], Iterable[bytes]]
"""partition -> keys of the scores in it, of any detector, each at least once"""


class KnownScores:
    """The texts that one detector has scored, by partition and site."""

    def __init__(self, detector: str, keys: ScoreKeys) -> None:
        """Look for scores of the identity `detector` among `keys`; a partition is read when it is first asked for."""
        self._end = f":{detector}"
        self._keys = keys
        self._digests: dict[int, array[int]] = {}

    def load(self, partitions: Iterable[int]) -> None:
        """Read these partitions now, those that were read before left out. Raises what `keys` raises."""
        for partition in partitions:
            self._of(partition)

    def has(self, partition: int, site: str, text_digest: str) -> bool:
        """Whether the text was scored for the site, which lies in this partition."""
        digests = self._of(partition)
        wanted = xxhash.xxh3_64_intdigest(f"{site} {text_digest}{self._end}".encode())
        place = bisect_left(digests, wanted)
        return place < len(digests) and digests[place] == wanted

    def __len__(self) -> int:
        """Different scores in the partitions that were read."""
        return sum(len(digests) for digests in self._digests.values())

    def _of(self, partition: int) -> array[int]:
        digests = self._digests.get(partition)
        if digests is None:
            end = self._end.encode()
            found = array("Q", (xxhash.xxh3_64_intdigest(key) for key in self._keys(partition) if key.endswith(end)))
            digests = self._digests[partition] = _sorted_once(found)
        return digests


def _sorted_once(numbers: array[int]) -> array[int]:
    """The different numbers in order."""
    different = np.unique(np.frombuffer(numbers, dtype=np.uint64))
    found = array("Q")
    found.frombytes(different.tobytes())
    return found
