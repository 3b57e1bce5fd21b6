"""MinHash sketches (A. Z. Broder, "On the resemblance and containment of documents", 1997), by `rensa`.

A sketch is the smallest value of each of so many seeded permutations of a set of hashes. The share of equal places in
two sketches estimates the Jaccard similarity J of the sets, with standard error sqrt(J(1 - J) / permutations).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import rensa

_SEED = 5
_PIECE = 5_000  # hashes at a time: rensa starts threads for more

Sketch = npt.NDArray[np.uint32]


def sketch(hashes: npt.NDArray[np.uint64], permutations: int) -> Sketch:
    """The sketch of a set of at least one hash; the smallest value in each place of its pieces."""
    smallest = np.full(permutations, np.iinfo(np.uint32).max, np.uint32)
    for start in range(0, len(hashes), _PIECE):
        piece = hashes[start : start + _PIECE]
        digests = rensa.RMinHash.digest_matrix_from_flat_token_hashes(piece, [0, len(piece)], permutations, _SEED)
        np.minimum(smallest, np.array(digests.to_rows()[0], np.uint32), out=smallest)
    return smallest
