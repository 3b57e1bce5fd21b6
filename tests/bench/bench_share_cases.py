"""The published share with little knowledge: few queries, labels of people, no sites of known truth.

Run by `python -m tests.bench.bench_share_cases [DRAWS]`, or `labels [DRAWS]` for the table of labels alone, or `without
[DRAWS]` for shares without one of the guards: without clusters, without the rule that flags separate the kinds, and
without a review if the detector fails. Webs are those of `tests.bench.bench_share`.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from scoring.estimate.doubts import doubts
from scoring.estimate.fit import WIDE, KnownSites
from scoring.estimate.mixture import estimate_share
from scoring.estimate.reviewed_share import Review
from scoring.rates.direct_share import WIDEST, DirectShare, by_review, cells_of, direct_share, share_of_rows
from stream.schema.records import SiteState
from tests.bench.bench_share import Web, _cells, _drawn, _flags_of, _shares

QUERIES = (3, 5, 8, 12, 40)
SITES = (("30", (30,)), ("5 to 100", (5, 10, 20, 40, 100)))  # per query


class Reviewed(NamedTuple):
    """A web of which people label some sites: these shares of the human and of the LLM ones."""

    web: Web
    drawn: int
    labelled: tuple[float, float] = (1.0, 1.0)


REVIEWS = (
    *(Reviewed(Web(600, share), drawn) for share in (0.05, 0.15, 0.3) for drawn in (50, 100)),
    *(Reviewed(Web(600, share, llm=0.25), drawn) for share in (0.15, 0.3) for drawn in (50, 100)),
    Reviewed(Web(600, 0.05, llm=0.6), 100),
    Reviewed(Web(600, 0.05, human=0.08), 100),
    Reviewed(Web(300, 0.3, human=0.08), 100),
    Reviewed(Web(200, 0.3), 160),
    Reviewed(Web(600, 0.15, llm=0.25), 100, (0.9, 0.5)),
)


def main() -> None:
    """Print every table."""
    if sys.argv[1:2] == ["labels"]:
        return _labels(int(sys.argv[2]) if len(sys.argv) > 2 else 400)
    if sys.argv[1:2] == ["without"]:
        return _without(int(sys.argv[2]) if len(sys.argv) > 2 else 100)
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{draws} draws a row: part with a number, coverage, width\nqueries  sites     share of a query")
    for share, spread in (("beta(.9, 2.1)", (0.9, 2.1)), ("beta(3, 7)", (3.0, 7.0)), ("the same", (3e4, 7e4))):
        for queries in QUERIES:
            for name, sizes in SITES:
                found = [_of_queries(np.random.default_rng(seed), queries, sizes, spread) for seed in range(draws)]
                print(f"{queries:7}  {name:8}  {share:13}  {_said(found)}", flush=True)
    _labels(draws)
    print("no known sites: sites share")
    for sites in (300, 1000):
        for part in (0.0, 0.02, 0.05, 0.15, 0.3):
            webs = [_drawn(np.random.default_rng(seed), Web(sites, part, known=0)) for seed in range(draws)]
            found = [(direct_share(web.cells)[0], web.truth) for web in webs]
            named = [one for one in found if one[0].share is not None]
            print(f"{sites:5} {part:5}  {_said(found)}  of the named: {_said(named)}", flush=True)


def _labels(draws: int) -> None:
    print(f"{draws} draws: sites share human llm drawn (labelled)")
    for case in REVIEWS:
        pairs, web = [_by_labels(np.random.default_rng(seed), case) for seed in range(draws)], case.web
        what = f"{web.sites} {web.share} {web.human} {web.llm} {case.drawn} {case.labelled}"
        print(f"{what:38}  {_said([pair[0] for pair in pairs])}", flush=True)
        print(f"{'without the labels':38}  {_said([pair[1] for pair in pairs])}", flush=True)


def _without(draws: int) -> None:
    print(f"{draws} draws; queries of 30 sites, taken as independent sites")
    for queries in (5, 8):
        found = [
            _of_queries(np.random.default_rng(seed), queries, (30,), (0.9, 2.1), clustered=False)
            for seed in range(draws)
        ]
        print(f"{queries:5}  {_said(found)}", flush=True)
    print("no LLM sites, no known ones, and no rule that flags tell the kinds apart: named, mean share of these")
    for sites in (300, 1000):
        fits = [
            estimate_share(_drawn(np.random.default_rng(seed), Web(sites, 0.0, known=0)).cells, WIDE)
            for seed in range(draws)
        ]
        named = [fit.share for fit in fits if fit is not None and fit.high - fit.low <= WIDEST]
        print(f"{sites:5}  {len(named) / draws:.2f}, {np.mean(named) if named else math.nan:.3f}", flush=True)
    print("300 sites, LLM pages flagged in 25 %, known ones in 80 %: warned; the others")
    for share in (0.15, 0.3):
        silent = []
        for seed in range(draws):
            web = _drawn(np.random.default_rng(seed), Web(300, share, llm=0.25))
            direct, fit = direct_share(web.cells, web.known)
            if fit is not None and not doubts(web.cells, fit):
                silent.append((direct, web.truth))
        print(f"{share:5}  {1 - len(silent) / draws:.2f}  {_said(silent)}", flush=True)


def _of_queries(
    rng: np.random.Generator,
    queries: int,
    sizes: tuple[int, ...],
    spread: tuple[float, float],
    *,
    clustered: bool = True,
) -> tuple[DirectShare, float]:
    known = _drawn(rng, Web(1, 0.3)).known
    rows = []
    for query in range(queries):
        web = Web(int(rng.choice(sizes)), rng.beta(*spread))
        cells, _ = _flags_of(rng, web)
        rows += [_row(f"q{query}s{at}.com", cell, [f"q{query}"]) for at, cell in enumerate(cells)]
    return (share_of_rows(rows, known) if clustered else direct_share(cells_of(rows), known))[0], 0.3


def _by_labels(rng: np.random.Generator, case: Reviewed) -> tuple[tuple[DirectShare, float], tuple[DirectShare, float]]:
    web = case.web
    cells, is_llm = _flags_of(rng, web)
    sizes = rng.integers(5, 20, web.known)
    of_known = (rng.binomial(sizes, _shares(rng, web.known, *of)) for of in ((0.045, 11.5), (0.8, 24.0)))
    known = KnownSites(*(_cells(sizes, k) for k in of_known))
    rows = [_row(f"s{at}.com", cell) for at, cell in enumerate(cells)]
    direct, fit = share_of_rows(rows, known)
    assert fit is not None
    drawn = rng.choice(web.sites, case.drawn, replace=False).tolist()
    said = [at for at in drawn if rng.random() < case.labelled[int(is_llm[at])]]
    review = Review({f"s{at}.com": float(is_llm[at]) for at in said}, case.drawn, 0, 1)
    truth = float(is_llm.mean())
    return (by_review(direct, fit, rows, review, 0.95), truth), (direct, truth)


def _row(site: str, cell: tuple[int, int], queries: list[str] | None = None) -> SiteState:
    return SiteState(id=site, site=site, scored=cell[0], flagged=cell[1], queries=queries or [])


def _said(found: list[tuple[DirectShare, float]]) -> str:
    if not found:
        return "none"
    ends = [(share.low or 0.0, math.inf if share.high is None else share.high, truth) for share, truth in found]
    covered = sum(low <= truth <= high for low, high, truth in ends) / len(ends)
    errors = [share.share - truth for share, truth in found if share.share is not None]
    width = sum(high - low for low, high, _ in ends) / len(ends)
    bias = f"{sum(errors) / len(errors):+.3f}" if errors else "-"
    return f"{len(errors) / len(found):.2f} named, bias {bias}, covered {covered:.3f}, width {width:.3f}"


if __name__ == "__main__":
    main()
