"""Coverage of the interval of the judged share that is corrected by measured errors: docs/explanation/rates.md.

Run by `python -m tests.bench.studies.rates`; it takes a minute. Coverage is the share of studies whose 95% interval
covers the true rate. A study draws n sites at that rate, judges them with Se and Sp, and measures Se and Sp anew on n1
LLM and n0 human sites. ROUNDS of them have a standard error of .0022 at a coverage of .95; where they come near GOAL,
the coverage is summed over every outcome that is likelier than 1e-10.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from scoring.estimate.intervals import Z95, Known, interval_of

ROUNDS = 10_000
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SITES = (20, 50, 100, 300, 1000, 5000)
VERDICTS = ((0.975, 0.98), (0.9, 0.99), (0.9, 0.95), (0.8, 0.9), (0.95, 0.999), (0.999, 0.999))  # Se, Sp
MEASURED = ((20, 20), (40, 76), (100, 100), (20, 300), (300, 20), (300, 300), (2000, 2000))  # n1, n0
GOAL, NEAR = 0.94, 0.004
UNLIKELY = 1e-10


class Setting(NamedTuple):
    """The parameters of simulated studies."""

    rate: float
    n: int
    se: float
    sp: float
    n1: int
    n0: int

    @property
    def called(self) -> float:
        """The probability that a site is called llm."""
        return self.rate * self.se + (1 - self.rate) * (1 - self.sp)


def main() -> None:
    """Print the settings with a coverage below the goal."""
    rng, near, total = np.random.default_rng(29), list[Setting](), 0
    for (se, sp), (n1, n0), n, rate in product(VERDICTS, MEASURED, SITES, RATES):
        setting, total = Setting(rate, n, se, sp, n1, n0), total + 1
        if simulated(setting, rng) < GOAL + NEAR:
            near.append(setting)
    below = sorted((coverage, setting) for setting in near if (coverage := exact(setting)) < GOAL)
    print(f"exactly below {GOAL}: {len(below)} of {total} settings ({len(near)} near it were summed)")
    for coverage, setting in below:
        print(f"{coverage:.4f} {setting}")


def simulated(setting: Setting, rng: np.random.Generator) -> float:
    """Share of simulated studies that cover the rate; one with measured errors no better than chance covers none."""
    _, n, se, sp, n1, n0 = setting
    drawn = [rng.binomial(*of, ROUNDS) for of in ((n, setting.called), (n1, se), (n0, sp))]
    outcomes, counts = np.unique(np.stack(drawn, axis=1), axis=0, return_counts=True)
    held = [holds(setting, *outcome) for outcome in outcomes.tolist()]
    return float(counts[held].sum()) / ROUNDS


def exact(setting: Setting) -> float:
    """The coverage summed over all outcomes but the least likely ones, which count as not covered."""
    _, n, se, sp, n1, n0 = setting
    of_x, of_a, of_b = (binom.pmf(np.arange(m + 1), m, p) for m, p in ((n, setting.called), (n1, se), (n0, sp)))
    total = 0.0
    for a, b in product(likely(of_a), likely(of_b)):
        weight = of_a[a] * of_b[b]
        if weight > UNLIKELY:
            total += weight * sum(of_x[x] for x in likely(of_x) if holds(setting, x, a, b))
    return float(total)


def holds(setting: Setting, x: int, a: int, b: int) -> bool:
    """Whether the interval of this outcome covers the true rate."""
    if (a + 1) / (setting.n1 + 2) + (b + 1) / (setting.n0 + 2) <= 1:
        return False
    found = interval_of(x, setting.n, Known(setting.n1, a, setting.n0, b), Z95)
    return found.low <= setting.rate <= found.high


def likely(chances: npt.NDArray[np.float64]) -> Iterator[int]:
    """The outcomes that are likely enough to count."""
    yield from np.flatnonzero(chances > UNLIKELY).tolist()


if __name__ == "__main__":
    main()
