"""The direct estimate of the share against classify-and-count, over many simulated webs, and its cost.

Run by `python -m tests.bench.bench_share [DRAWS]`; with `looks [YEARS]` instead of a number for the alarm of a changed
share, with `lists [DRAWS]` for the lists of certain LLM sites. The truth is the share of LLM sites among those drawn.
Lengths are geometric with mean 4, cut at 20 articles; a site that the test of Binoculars has decided gets no further
article. A site's flagged share is a draw of a beta: of human sites with mean .045, of LLM sites with mean .8. Known
sites have 5 to 19 articles. The oracle knows both betas. Classify-and-count is `llm / (llm + human + undecided)` by the
same test, uncorrected, with Wilson's interval. A row is marked if its coverage is below .94 by more than chance
(one-sided 1%, Holm over the rows).
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom

from scoring.estimate.doubts import doubts
from scoring.estimate.fit import WIDE, CellCounts, Components, KnownSites
from scoring.estimate.mixture import estimate_share
from scoring.rates.certain_sites import certain_cells
from scoring.rates.change_alarm import FALSE_ALARMS, find_change, likelihoods, log_evidence
from scoring.rates.site_rates import site_rate
from scoring.sites.sprt import SiteTest, SprtParams
from tests.bench.timing import cpu_s
from tests.support.listed_farms import false_farms
from tests.support.paths import data_root
from tests.support.real_sites import ACCURACY, Site, of_flags, read_sites

YEARS = 20

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
IsAlarmed = Callable[[list[CellCounts], KnownSites], bool]
_TEST = SiteTest(SprtParams())


class Web(NamedTuple):
    sites: int
    share: float
    known: int = 40  # sites of each truth
    human: float = 0.045  # mean flagged share
    llm: float = 0.8
    mixed: float = 0.0  # sites with 40% of their pages flagged
    mixed_as: bool | None = None  # these are LLM sites, or not; None: as if they were not mixed
    human_mean: float = 4.0  # articles per site
    llm_mean: float = 4.0


WEBS = (
    *(Web(sites, share) for sites in (50, 300, 600, 5000) for share in (0.02, 0.05, 0.15, 0.3, 0.5)),
    Web(300, 0.3, known=0),
    Web(300, 0.3, known=20),
    Web(300, 0.3, known=100),
    Web(300, 0.15, llm=0.62),
    Web(300, 0.3, llm=0.62),
    Web(300, 0.3, human=0.08),
    Web(600, 0.3, human_mean=5, llm_mean=2),
    Web(600, 0.2, mixed=0.1),
    *(Web(2000, 0.2, mixed=0.1, mixed_as=are) for are in (None, False, True)),
    *(Web(sites, 0.3, known, human=0.1, llm=0.6) for sites, known in ((300, 40), (300, 200), (2000, 40), (2000, 200))),
)


def main() -> None:
    if sys.argv[1:2] == ["looks"]:
        return looks(int(sys.argv[2]) if len(sys.argv) > 2 else 400)
    if sys.argv[1:2] == ["lists"]:
        return lists(int(sys.argv[2]) if len(sys.argv) > 2 else 100)
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{draws} draws a row: bias, RMSE, coverage and width of 95% intervals; RMSE in parts of the oracle's")
    print(" sites share known  human   llm mixed  direct                   / oracle  classify-and-count       warned")
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(_simulated, WEBS, [draws] * len(WEBS)))
    low = _too_low([row.covered for row in rows], draws)
    for web, row, is_low in zip(WEBS, rows, low, strict=True):
        _print(web, row, "  TOO LOW" if is_low else "")
    path = data_root() / "data" / "scores" / "page_scores.csv"
    if path.is_file():
        held_out(read_sites(path, 0), draws)
    cost()


def held_out(sites: list[Site], draws: int) -> None:
    """Flags of Binoculars on real pages: a third of the sites are known, the others are drawn at a known share."""
    kinds = [[np.array(site.scores) < ACCURACY for site in sites if site.llm is llm] for llm in (False, True)]
    print(f"\nreal pages of {len(sites)} sites, a third of them known")
    for web in (Web(200, 0.05), Web(200, 0.15), Web(200, 0.3), Web(1000, 0.3)):
        rng, found = np.random.default_rng(2), []
        for _ in range(draws):
            order = [[kind[place] for place in rng.permutation(len(kind))] for kind in kinds]
            known = KnownSites(*(Counter(_sample(rng, flags, 20) for flags in of[: len(of) // 3]) for of in order))
            llm = int(rng.binomial(web.sites, web.share))
            cells: Counter[tuple[int, int]] = Counter()
            for of, count in zip(order, (web.sites - llm, llm), strict=True):
                rest = of[len(of) // 3 :]
                for place in rng.integers(len(rest), size=count):
                    cells[_sample(rng, rest[place], min(int(rng.geometric(0.25)), 20))] += 1
            found.append(_Draw(cells, known, llm / web.sites))
        _print(web._replace(known=len(sites) // 3), _estimated(found, web))


def lists(draws: int) -> None:
    """Sites that are listed as certain LLM sites, of those in the web, and the share of false ones over all draws."""
    print(
        f"{draws} draws a row\n sites share known  human   llm  LLM sites   at 1%: listed  false   at 5%: listed  false"
    )
    webs = [Web(60, 0.3), Web(300, 0.3, known=0), Web(300, 0.3), Web(300, 0.05), Web(1000, 0.15)]
    for web in (*webs, Web(300, 0.3, human=0.1, llm=0.6)):
        rng, llm, of_list = np.random.default_rng(4), 0, {0.01: [0, 0], 0.05: [0, 0]}
        for _ in range(draws):
            cells, is_llm = flags_of(rng, web)
            fit = estimate_share(Counter(cells), WIDE, _drawn(rng, web).known)
            llm += int(is_llm.sum())
            for most_false, (listed, false) in of_list.items():
                certain = certain_cells(Counter(cells), fit.cautious if fit else {}, most_false)
                wrong = [not truth for truth, cell in zip(is_llm, cells, strict=True) if cell in certain]
                of_list[most_false] = [listed + len(wrong), false + sum(wrong)]
        shown = "  ".join(f"{n / draws:14.1f} {k / max(n, 1):6.2%}" for n, k in of_list.values())
        print(
            f"{web.sites:6} {web.share:5} {web.known:5} {web.human:6} {web.llm:5} {llm / draws:10.1f} {shown}",
            flush=True,
        )
    for most_false in (0.01, 0.05):
        errors, number = false_farms(range(draws), most_false)
        print(
            f"farms, with ads on .2 of LLM sites and .6 of others, at {most_false:.0%}: {number} listed, {errors} false"
        )


def looks(years: int) -> None:
    """False alarms of a year by the alarm, which looks hourly, and by non-overlapping intervals; days until a jump."""
    with ProcessPoolExecutor(2) as pool:
        false = sum(pool.map(_year, range(years), chunksize=5))
    most = beta.ppf(0.95, false + 1, years - false)
    print(f"hourly looks: {false} of {years} years with a false alarm, at most {most:.1%} of years (95%)", flush=True)
    print(f"{YEARS} years: 50 sites a day, share .15; a jump of +.05")
    for name, is_alarmed in (("alarm", _is_alarmed), ("overlap", _is_apart)):
        jumps = [_first_alarm(np.random.default_rng(seed), 120, is_alarmed, 1) for seed in range(YEARS)]
        seen = sorted(1000 if day is None else day - 119 for day in jumps)
        print(f"  {name:8} days until a jump is seen: {seen[YEARS // 2]}, {seen}")
    quiet = [_first_alarm(np.random.default_rng(seed), 365, _is_apart, 7) for seed in range(YEARS)]
    print(f"  overlap  false alarms {sum(day is not None for day in quiet)} of {YEARS}")


def _year(seed: int) -> bool:
    """Whether a year without a change has an alarm: 50 sites a day at random hours.

    The fit of the kinds of sites is renewed weekly, after a quarter monthly. A day that ends with evidence of 1 or more
    is checked hour by hour, any other day at its end.
    """
    rng = np.random.default_rng(10_000 + seed)
    known = _drawn(rng, Web(1, 0.15)).known
    days: list[CellCounts] = []
    of_day = np.empty((0, 0))
    fit = None
    for day in range(365):
        days.append(_drawn(rng, Web(int(rng.poisson(50)) + 1, 0.15)).cells)
        is_new = day >= 7 and day % (7 if day < 91 else 28) == 0
        if is_new:
            fit = estimate_share(_sum(days), WIDE, known)
        if fit is None:
            continue
        sites = [cell for cell in Counter(days[-1]).elements() if cell in fit.posterior]
        if is_new:
            cells = list(fit.posterior)
            each = likelihoods(fit, cells)
            of_day = np.array([[one.get(cell, 0.0) for cell in cells] for one in days]) @ each
        else:
            of_day = np.vstack([of_day, likelihoods(fit, sites).sum(axis=0)])
        if np.logaddexp.reduce(log_evidence(of_day)) < 0:
            continue
        hours, of_site, evening = rng.integers(24, size=len(sites)), likelihoods(fit, sites), of_day[-1].copy()
        for hour in range(24):
            of_day[-1] = of_site[hours <= hour].sum(axis=0)
            if np.logaddexp.reduce(log_evidence(of_day)) >= math.log(1 / FALSE_ALARMS):
                return True
        of_day[-1] = evening
    return False


def _first_alarm(rng: np.random.Generator, jump: int, is_alarmed: IsAlarmed, every: int) -> int | None:
    """The day of the first alarm of a year; checks begin with a jump on day 120."""
    known = _drawn(rng, Web(1, 0.15)).known
    days: list[CellCounts] = []
    for day in range(365):
        days.append(_drawn(rng, Web(int(rng.poisson(50)), 0.15 if day < jump else 0.2)).cells)
        is_look = day >= 120 if jump == 120 else day > 14
        if is_look and day % every == 0 and is_alarmed(days, known):
            return day
    return None


def _is_alarmed(days: list[CellCounts], known: KnownSites) -> bool:
    fit = estimate_share(_sum(days), WIDE, known)
    return fit is not None and find_change(dict(enumerate(days)), fit) is not None


def _is_apart(days: list[CellCounts], known: KnownSites) -> bool:
    before, last = (estimate_share(_sum(some), WIDE, known) for some in (days[:-7], days[-7:]))
    return before is not None and last is not None and (before.high < last.low or last.high < before.low)


def _sum(days: list[CellCounts]) -> CellCounts:
    cells: Counter[tuple[int, int]] = Counter()
    for day in days:
        cells.update(day)
    return cells


def cost() -> None:
    """Seconds of an estimate, which depend on the number of cells, not of sites."""
    print("\nCPU seconds of an estimate")
    for sites in (300, 10_000, 1_000_000):
        found = _drawn(np.random.default_rng(3), Web(sites, 0.15))
        took = min(cpu_s(lambda: estimate_share(found.cells, WIDE, found.known)) for _ in range(3))  # noqa: B023
        print(f"  {sites:9,} sites, {len(found.cells)} cells: {took:.3f}")


class _Draw(NamedTuple):
    cells: CellCounts
    known: KnownSites
    truth: float


def _drawn(rng: np.random.Generator, web: Web) -> _Draw:
    cells, is_llm = flags_of(rng, web)
    sizes = rng.integers(5, 20, web.known)
    human, llm = (rng.binomial(sizes, _shares(rng, web.known, *of)) for of in ((0.045, 11.5), (0.8, 24.0)))
    known = KnownSites(_cells(sizes, human), _cells(sizes, llm))
    return _Draw(Counter(cells), known, float(is_llm.mean()))


def flags_of(rng: np.random.Generator, web: Web) -> tuple[list[tuple[int, int]], npt.NDArray[np.bool_]]:
    """Scored and flagged articles of each site, and whether it is an LLM site."""
    is_llm = rng.random(web.sites) < web.share
    means = np.where(is_llm, web.llm_mean, web.human_mean)
    lengths = np.minimum(rng.geometric(1 / means), 20)
    shares = np.where(is_llm, _shares(rng, web.sites, web.llm, 24.0), _shares(rng, web.sites, web.human, 11.5))
    is_mixed = rng.random(web.sites) < web.mixed
    shares = np.where(is_mixed, 0.4, shares)
    flags = (rng.random((web.sites, 20)) < shares[:, None]).cumsum(axis=1)  # among the first articles
    stopped = _decided()[np.arange(1, 21), flags] | (np.arange(1, 21) >= lengths[:, None])
    lengths = stopped.argmax(axis=1) + 1
    flags = flags[np.arange(web.sites), lengths - 1]
    if web.mixed_as is not None:
        is_llm = np.where(is_mixed, web.mixed_as, is_llm)
    return list(zip(lengths.tolist(), flags.tolist(), strict=True)), is_llm


def _shares(rng: np.random.Generator, sites: int, mean: float, precision: float) -> npt.NDArray[np.float64]:
    return rng.beta(mean * precision, (1 - mean) * precision, sites)


@cache
def _decided() -> npt.NDArray[np.bool_]:
    """[n, k]: whether the test decides a site with k flagged of n articles."""
    decided = np.zeros((21, 21), dtype=bool)
    for n in range(1, 21):
        decided[n, : n + 1] = [_verdict(n, k) in ("llm", "human") for k in range(n + 1)]
    return decided


def _cells(n: Ints, k: Ints) -> Counter[tuple[int, int]]:
    return Counter(zip(n.tolist(), k.tolist(), strict=True))


def _sample(rng: np.random.Generator, flags: npt.NDArray[np.bool_], pages: int) -> tuple[int, int]:
    chosen = rng.choice(flags, min(pages, len(flags)), replace=False)
    return len(chosen), int(chosen.sum())


class _Row(NamedTuple):
    """Per draw of a web: (share, low, high, truth) by each estimate."""

    direct: list[tuple[float, float, float, float]]
    oracle: list[float]  # errors of the share
    judged: list[tuple[float, float, float, float]]
    warned: list[bool]  # the share comes with a doubt

    @property
    def covered(self) -> int:
        """Draws whose interval covers the truth."""
        return sum(low <= truth <= high for _, low, high, truth in self.direct)


def _simulated(web: Web, draws: int) -> _Row:
    rng = np.random.default_rng(1)
    return _estimated([_drawn(rng, web) for _ in range(draws)], web)


def _estimated(draws: list[_Draw], web: Web) -> _Row:
    betas = [11.5 * web.human, 11.5 * (1 - web.human), 24 * web.llm, 24 * (1 - web.llm)]
    sure = Components(np.log(betas), np.eye(4) * 1e9)
    row = _Row([], [], [], [])
    for draw in draws:
        fit, best = estimate_share(draw.cells, WIDE, draw.known), estimate_share(draw.cells, sure)
        assert fit is not None and best is not None
        row.direct.append((fit.share, fit.low, fit.high, draw.truth))
        row.oracle.append(best.share - draw.truth)
        row.warned.append(bool(doubts(draw.cells, fit)))
        verdicts = [verdict for (n, k), sites in draw.cells.items() for verdict in [_verdict(n, k)] * int(sites)]
        rate = site_rate(Counter(verdicts))
        if rate.rate is not None and rate.low is not None and rate.high is not None:
            row.judged.append((rate.rate, rate.low, rate.high, draw.truth))
    return row


def _too_low(covered: list[int], draws: int) -> list[bool]:
    """Holm's step-down test that the coverage of a row is below .94, at 1% over all rows."""
    is_low = [False] * len(covered)
    for rank, place in enumerate(sorted(range(len(covered)), key=lambda at: covered[at])):
        if binom.cdf(covered[place], draws, 0.94) > 0.01 / (len(covered) - rank):
            break
        is_low[place] = True
    return is_low


def _print(web: Web, row: _Row, remark: str = "") -> None:
    error, oracle = (float(np.sqrt(np.mean(np.square(of)))) for of in ([f[0] - f[3] for f in row.direct], row.oracle))
    print(
        f"{web.sites:6} {web.share:5.2f} {web.known:5} {web.human:6.3f} {web.llm:5.2f} {web.mixed:5.2f}"
        f"  {_said(row.direct)}  {error / oracle:5.2f}  {_said(row.judged)}  {np.mean(row.warned):.2f}{remark}",
        flush=True,
    )


def _said(found: list[tuple[float, float, float, float]]) -> str:
    share, low, high, truth = np.array(found).T
    covered = ((low <= truth) & (truth <= high)).mean()
    errors = share - truth
    return f"{errors.mean():+.3f} {np.sqrt((errors**2).mean()):.3f} {covered:.3f} {(high - low).mean():.3f}"


@cache
def _verdict(n: int, k: int) -> str:
    """The verdict for k flagged pages of n, spread evenly."""
    flags: list[bool | None] = [((place + 1) * k) // n > (place * k) // n for place in range(n)]
    return str(_TEST.decide(of_flags(flags)).verdict)


if __name__ == "__main__":
    main()
