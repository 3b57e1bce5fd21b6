"""What a fit of the mixture takes and gives: sites by their flags, sites of known truth, a prior, and the share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from scoring.estimate.beta_binomial import Floats, Ints
from stream.schema.records import SiteState

Cell = tuple[int, int]  # pages with a usable score, of them flagged
CellCounts = Mapping[Cell, float]  # -> sites
BETAS = 4  # log a and log b of the human and of the LLM component; then the log odds of each bucket
_BETA_SD = 1.5  # of log a and log b around their prior means
_PRECISION = 10.0  # a + b of the prior means: pages of a site agree


class Components(NamedTuple):
    """A normal prior of log a and log b of the two betas, human first."""

    mean: Floats  # (4,)
    precision: Floats  # (4, 4), inverse of the covariance

    @classmethod
    def of_shares(cls, human: float, llm: float) -> Self:
        """Wide, around shares of pages that a detector is expected to flag."""
        means = _PRECISION * np.array([human, 1 - human, llm, 1 - llm])
        return cls(np.log(means), np.eye(BETAS) / _BETA_SD**2)

    @property
    def flagged(self) -> tuple[float, float]:
        """The expected flagged share of the articles of a human and of an LLM site."""
        a, b, c, d = np.exp(self.mean).tolist()
        return a / (a + b), c / (c + d)


WIDE = Components.of_shares(human=0.05, llm=0.75)  # about as measured; the width covers every detector's shares


class KnownSites(NamedTuple):
    """Sites of known truth by (n, k), or a number of each.

    Of the sites whose share is estimated they have control pages alone, which count in both places.
    """

    human: CellCounts
    llm: CellCounts


class Fit(NamedTuple):
    """A share of LLM sites with its interval, and its mixture."""

    share: float
    low: float
    high: float
    sites: int  # with at least one usable score
    components: Components  # from these sites: the prior for a part of them
    posterior: dict[tuple[int, int], float]  # (n, k) -> probability that such a site is an LLM site
    cautious: dict[tuple[int, int], float]  # the same where the share is at the low end of its interval
    chance: dict[int, float]  # n -> share of LLM sites among those of its bucket
    misfit: float  # factor by which the sites scatter more than the mixture; 1 = they fit
    influence: dict[tuple[int, int], float]  # (n, k) -> first-order effect of one more such site on the share
    known_influence: KnownSites  # the same for one more site of known truth
    known: KnownSites  # the sites of known truth it uses

    def moves(self, rows: Sequence[SiteState]) -> Floats:
        """The effect of each of these sites on the share."""
        return np.array([self.influence.get((row.scored, row.flagged), 0.0) for row in rows])


class Cells(NamedTuple):
    """Sites by (n, k), as arrays over the cells."""

    n: Ints
    k: Ints
    sites: Floats

    @classmethod
    def of(cls, counts: CellCounts) -> Self:
        cells = sorted((n, k) for n, k in counts if counts[n, k] and 0 <= k <= n > 0)
        pairs = np.array(cells, dtype=np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1], np.array([counts[cell] for cell in cells], dtype=np.float64))

    def named(self, values: Floats) -> dict[tuple[int, int], float]:
        """(n, k) -> the value of the cell."""
        return dict(zip(zip(self.n.tolist(), self.k.tolist(), strict=True), values.tolist(), strict=True))
