"""Groups sketches of templates (`filters.structure.tag_paths`) that are alike, so that sites which share one are found.

The most frequent sketch leads the first group. Each further one joins the most similar leader, or leads a group of its
own. Only leaders with a band of equal places are compared, of each band the first few: time is linear in the sketches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from filters.structure.tag_paths import PLACES, SAME_TEMPLATE

_ROWS = 4
"""Places of a band, and bytes of its number: of templates with a similarity of .6, 89% share a band, of .7 99%."""
_NEAREST = 8  # leaders of a band that are compared


def alike(sites_of: Mapping[bytes, Collection[str]]) -> list[list[bytes]]:
    """Group sketches, each with the sites that have it. The first of a group leads it: it has the most sites."""
    order = sorted(sites_of, key=lambda sketch: (-len(sites_of[sketch]), sketch))
    places = np.frombuffer(b"".join(order), np.uint8).reshape(len(order), PLACES)
    bands = places.view("<u4") + (np.arange(PLACES // _ROWS, dtype=np.uint64) << np.uint64(32))  # unlike for each place
    _, band_of, frequency = np.unique(bands, return_inverse=True, return_counts=True)
    shared = (frequency[band_of] > 1).reshape(bands.shape)  # most bands are of one sketch, and lead to no other
    groups: dict[int, list[bytes]] = {}  # number of the leader -> sketches
    leaders_of: dict[int, list[int]] = {}  # of a band
    for number, sketch in enumerate(order):
        of_sketch = bands[number][shared[number]].tolist()
        leaders = sorted({leader for band in of_sketch for leader in leaders_of.get(band, ())})
        if leaders:
            equal = np.count_nonzero(places[leaders] == places[number], axis=1)
            nearest = int(np.argmax(equal))
            if equal[nearest] >= SAME_TEMPLATE * PLACES:
                groups[leaders[nearest]].append(sketch)
                continue
        groups[number] = [sketch]
        for band in of_sketch:
            known = leaders_of.setdefault(band, [])
            if len(known) < _NEAREST:
                known.append(number)
    return list(groups.values())
