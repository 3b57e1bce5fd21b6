"""Coverage of the interval where sites are of operators with several domains, for docs/explanation/signals.md.

Run by `python -m tests.bench.studies.operators [DRAWS]`. An operator writes all of its sites by a model, or none; the
truth is the part of operators that do. Half of the sites are of operators, the others alone; each has 1 to 12 articles.
"""

from __future__ import annotations

import numpy as np

from scoring.estimate.fit import KnownSites
from scoring.rates.direct_share import share_of_rows
from stream.schema.records import SiteState
from tests.bench.timing import argument

_SITES, _SHARE = 400, 0.3
_FLAGGED = {False: 0.04, True: 0.85}
_KNOWN = KnownSites(
    {(8, k): n for k, n in enumerate((30, 8, 2))}, {(8, k): n for k, n in ((5, 4), (6, 9), (7, 14), (8, 13))}
)


def draw(rng: np.random.Generator, of_operator: int, part: float, *, linked: bool) -> list[SiteState]:
    """The rows of a draw, with the operators' ids or without."""
    rows: list[SiteState] = []
    while len(rows) < _SITES:
        together = of_operator if rng.random() < part / (part + (1 - part) * of_operator) else 1
        is_llm, account = bool(rng.random() < _SHARE), f"analytics:ga4:G{len(rows)}"
        for _ in range(together):
            scored, name = int(rng.integers(1, 13)), f"s{len(rows)}.com"
            flagged = int(rng.binomial(scored, _FLAGGED[is_llm]))
            signals = {account: 1} if linked and together > 1 else {}
            rows.append(SiteState(id=name, site=name, scored=scored, flagged=flagged, signals=signals))
    return rows


def main() -> None:
    """Print the coverage of the 95% interval at one look, by sites an operator, and its mean width."""
    draws = argument(1, 100)
    print("| sites an operator | of sites | by domain | by operator |\n|---|---|---|---|")
    for of_operator in (4, 10):
        for part in (0.5, 1.0):
            cells = []
            for linked in (False, True):
                rng = np.random.default_rng(1)
                ends = [share_of_rows(draw(rng, of_operator, part, linked=linked), _KNOWN)[0] for _ in range(draws)]
                held = sum(of.low <= _SHARE <= of.high for of in ends if of.low is not None and of.high is not None)
                width = np.mean([of.high - of.low for of in ends if of.low is not None and of.high is not None])
                cells.append(f"{held / draws:.2f} ({width:.3f})")
            print("|", " | ".join([str(of_operator), f"{part:.0%}", *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
