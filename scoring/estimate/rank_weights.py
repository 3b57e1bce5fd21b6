"""The weight of a search result by its rank: 1 / log2(1 + rank), as in discounted cumulative gain.

Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20, 2002. The first result weighs 1,
the tenth .29, the fiftieth .18.
"""

from __future__ import annotations

import math

_UNRANKED = 100  # a result of unknown rank weighs as much as this one


def rank_weight(rank: int) -> float:
    """The weight of a result; rank 0 is unknown."""
    return 1 / math.log2(1 + (rank if rank > 0 else _UNRANKED))
