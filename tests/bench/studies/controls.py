"""The share of LLM sites with control pages as known human sites, over many simulated webs.

Run by `python -m tests.bench.studies.controls [DRAWS]`. Webs are those of `bench_share`: 300 sites, a site's flagged
share a draw of a beta. Known are 40 LLM sites; and human ones: none, 47 made by hand, flagged in 4.5% of their pages as
elsewhere, or these and the control pages of C human sites: either sites of the web itself, about half of whose scored
pages are controls and count in both places, or an arm of other sites of the same kind from an archive (5 to 19 pages).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scoring.estimate.fit import WIDE, CellCounts, KnownSites
from scoring.estimate.mixture import estimate_share
from tests.bench.bench_share import Web, flags_of

Cells = Counter[tuple[int, int]]
WEBS = Web(300, 0.3, human=0.1, llm=0.6), Web(300, 0.15)
CONTROLS = 15, 50, 200


class _Truth(NamedTuple):
    share: float
    human: list[tuple[int, int]]


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{draws} draws a row: bias, RMSE, coverage and width of 95% intervals")
    for web in WEBS:
        print(f"{web.sites} sites, share {web.share}, flagged: human {web.human}, LLM {web.llm}")
        known: dict[str, Callable[[np.random.Generator, Web, _Truth], CellCounts]] = {
            "none": lambda *_: {},
            "47 by hand": lambda rng, web, of: _by_hand(rng),
        }
        for number in CONTROLS:
            known[f"and {number} of the web"] = lambda rng, web, of, number=number: (  # type: ignore[misc]
                _by_hand(rng) + _of_web(rng, of, number)
            )
            known[f"only {number} of an arm"] = lambda rng, web, of, number=number: (  # type: ignore[misc]
                _known(rng, number, web.human, 11.5)
            )
        for name, human in known.items():
            print(f"  {name:18} {_row(web, human, draws)}", flush=True)


def _row(web: Web, human: Callable[[np.random.Generator, Web, _Truth], CellCounts], draws: int) -> str:
    rng, found = np.random.default_rng(5), []
    for _ in range(draws):
        cells, is_llm = flags_of(rng, web)
        truth = float(is_llm.mean())
        of = _Truth(truth, [cell for cell, llm in zip(cells, is_llm, strict=True) if not llm])
        known = KnownSites(human(np.random.default_rng(rng.integers(2**32)), web, of), _known(rng, 40, 0.8, 24.0))
        fit = estimate_share(Counter(cells), WIDE, known)
        assert fit is not None
        found.append((fit.share - truth, fit.low <= truth <= fit.high, fit.high - fit.low))
    error, covered, width = np.array(found).T
    return f"{error.mean():+.3f} {np.sqrt((error**2).mean()):.3f} {covered.mean():.3f} {width.mean():.3f}"


def _by_hand(rng: np.random.Generator) -> Cells:
    return _known(rng, 47, 0.045, 11.5)


def _known(rng: np.random.Generator, sites: int, mean: float, precision: float) -> Cells:
    sizes = rng.integers(5, 20, sites)
    flagged = rng.binomial(sizes, rng.beta(mean * precision, (1 - mean) * precision, sites))
    return Counter(zip(sizes.tolist(), flagged.tolist(), strict=True))


def _of_web(rng: np.random.Generator, of: _Truth, number: int) -> Cells:
    """Control pages of human sites of the web: about half of the pages of each, flags as they fall."""
    cells: Cells = Counter()
    for place in rng.permutation(len(of.human))[:number]:
        n, k = of.human[place]
        old = max(1, int(rng.binomial(n, 0.5)))
        cells[old, int(rng.hypergeometric(k, n - k, old))] += 1
    return cells


if __name__ == "__main__":
    main()
