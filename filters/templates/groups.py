"""Groups sketches of templates (`filters.structure.tag_paths`) that are alike, so that sites which share one are found.

The most frequent sketch leads the first group. Each further one joins the most similar leader, or leads a group of its
own. Only leaders with a band of equal places are compared, of each band the first few: time is linear in the sketches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import numpy as np

from filters.structure.tag_paths import PLACES, SAME_TEMPLATE

_ROWS = 4  # places of a band: of 16 bands, templates with a similarity of .6 share one in 89% of cases, of .7 in 99%
_NEAREST = 8  # leaders of a band that are compared


def alike(sites_of: Mapping[bytes, Collection[str]]) -> list[list[bytes]]:
    """Group sketches, each with the sites that have it. The first of a group leads it, and is most like the others."""
    order = sorted(sites_of, key=lambda sketch: (-len(sites_of[sketch]), sketch))
    places = np.frombuffer(b"".join(order), np.uint8).reshape(len(order), PLACES)
    groups: dict[int, list[bytes]] = {}  # number of the leader -> sketches
    bands: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)
    for number, sketch in enumerate(order):
        found = [bands[start, sketch[start : start + _ROWS]] for start in range(0, PLACES, _ROWS)]
        leaders = sorted({leader for band in found for leader in band})
        if leaders:
            equal = np.count_nonzero(places[leaders] == places[number], axis=1)
            nearest = int(np.argmax(equal))
            if equal[nearest] >= SAME_TEMPLATE * PLACES:
                groups[leaders[nearest]].append(sketch)
                continue
        groups[number] = [sketch]
        for band in found:
            if len(band) < _NEAREST:
                band.append(number)
    return list(groups.values())
