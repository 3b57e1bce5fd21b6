"""The published share with little knowledge: few queries, no sites of known truth, labels of people.

Run by `python -m tests.bench.studies.share_cases [draws, default 100; of labels four times as many]`. The webs are
those of `tests.bench.bench_share`: docs/explanation/rates.md has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scoring.estimate.doubts import doubts
from scoring.estimate.fit import KnownSites
from scoring.estimate.reviewed_share import Review
from scoring.rates.direct_share import DirectShare, by_review, cells_of, direct_share, share_of_rows
from stream.schema.records import SiteState
from tests.bench.bench_share import Web, _drawn, flags_of
from tests.bench.timing import argument

Found = tuple[DirectShare, float]  # beside the truth


class Reviewed(NamedTuple):
    """A web of which people label some sites: these shares of the human and of the LLM ones."""

    web: Web
    drawn: int
    labelled: tuple[float, float] = (1.0, 1.0)


REVIEWS = (
    *(Reviewed(Web(600, share), drawn) for share in (0.05, 0.3) for drawn in (20, 50, 100)),
    *(Reviewed(Web(600, 0.3, llm=0.25), drawn) for drawn in (20, 50, 100)),
    Reviewed(Web(600, 0.05, llm=0.6), 100),
    Reviewed(Web(600, 0.15, llm=0.25), 100, (0.9, 0.5)),
)


def main() -> None:
    """Print a line for each case."""
    draws = argument(1, 100)
    seeds = range(draws)
    sizes = (5, 10, 20, 40, 100)
    for queries in (3, 5, 8, 40):
        _print(f"{queries} queries of 5 to 100 sites", [_of_queries(seed, queries, sizes) for seed in seeds])
    independent = [_of_queries(seed, 5, (30,), clustered=False) for seed in seeds]
    _print("5 queries of 30 sites, counted as independent", independent)
    for sites, share in ((300, 0.0), (1000, 0.0), (300, 0.02)):
        webs = [_drawn(np.random.default_rng(seed), Web(sites, share, known=0)) for seed in seeds]
        _print(f"{sites} sites, share {share}, none known", [(direct_share(web.cells)[0], web.truth) for web in webs])
    for share in (0.15, 0.3):
        _print(f"300 sites, share {share}, LLM pages flagged in 25 %: of the silent", _silent(share, draws))
    for case in REVIEWS:
        pairs = [_by_labels(np.random.default_rng(seed), case) for seed in range(4 * draws)]
        _print(f"share {case.web.share}, LLM pages {case.web.llm}, {case.drawn} drawn", [pair[0] for pair in pairs])
        _print("  without the labels", [pair[1] for pair in pairs])


def _of_queries(seed: int, queries: int, sizes: Sequence[int], *, clustered: bool = True) -> Found:
    rng = np.random.default_rng(seed)
    known, rows = _known(rng), list[SiteState]()
    for query in range(queries):
        cells, _ = flags_of(rng, Web(int(rng.choice(sizes)), rng.beta(0.9, 2.1)))
        rows += [_row(f"q{query}s{at}.com", cell, [f"q{query}"]) for at, cell in enumerate(cells)]
    return (share_of_rows(rows, known) if clustered else direct_share(cells_of(rows), known))[0], 0.3


def _silent(share: float, draws: int) -> list[Found]:
    """Webs without a doubt about the share."""
    found = []
    for seed in range(draws):
        web = _drawn(np.random.default_rng(seed), Web(300, share, llm=0.25))
        direct, fit = direct_share(web.cells, web.known)
        if fit is not None and not doubts(web.cells, fit):
            found.append((direct, web.truth))
    return found


def _by_labels(rng: np.random.Generator, case: Reviewed) -> tuple[Found, Found]:
    """The share by the labels, and by flags alone."""
    cells, is_llm = flags_of(rng, case.web)
    rows = [_row(f"s{at}.com", cell) for at, cell in enumerate(cells)]
    direct, fit = share_of_rows(rows, _known(rng))
    assert fit is not None
    drawn = rng.choice(case.web.sites, case.drawn, replace=False).tolist()
    said = [at for at in drawn if rng.random() < case.labelled[int(is_llm[at])]]
    review = Review({"": {f"s{at}.com": float(is_llm[at]) for at in said}}, case.drawn, 0, 1)
    truth = float(is_llm.mean())
    return (by_review(direct, fit, rows, review, 0.95), truth), (direct, truth)


def _known(rng: np.random.Generator) -> KnownSites:
    return _drawn(rng, Web(1, 0.3)).known


def _row(site: str, cell: tuple[int, int], queries: list[str] | None = None) -> SiteState:
    return SiteState(id=site, site=site, scored=cell[0], flagged=cell[1], queries=queries or [])


def _print(name: str, found: list[Found]) -> None:
    ends = np.array([(share.low or 0, 1 if share.high is None else share.high, truth) for share, truth in found])
    low, high, truth = ends.T
    errors = [share.share - truth for share, truth in found if share.share is not None]
    bias = np.mean(errors) if errors else math.nan
    covered = ((low <= truth) & (truth <= high)).mean()
    print(
        f"{name:64} {len(found)} draws, {len(errors) / len(found):.2f} named, bias {bias:+.3f}, covered {covered:.3f},"
        f" width {(high - low).mean():.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
