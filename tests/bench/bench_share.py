"""The direct estimate of the share beside classify-and-count, over many simulated webs; and what it costs.

Run by `python -m tests.bench.bench_share [DRAWS]`, and with `looks` in place of a number for the alarm of a changed
share. The truth is the share of LLM sites among those drawn. Lengths are
geometric with mean 4, cut at 20 articles. A site's flagged share is a draw of a beta: of human sites with mean .045, of
LLM sites with mean .8. Known sites have 5 to 19 articles. Classify-and-count is `llm / (llm + human + undecided)` by
the test of Binoculars, uncorrected, with Wilson's interval.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.rates.change_alarm import find_change
from scoring.rates.mixture import WIDE, CellCounts, KnownSites, estimate_share
from scoring.rates.site_rates import site_rate
from scoring.sites.sprt import SiteTest, SprtParams, of_flags
from tests.bench.bench_sites import ACCURACY, Site, read_sites
from tests.bench.timing import cpu_s
from tests.conftest import data_root

YEARS = 20

Ints = npt.NDArray[np.int64]
IsAlarmed = Callable[[list[CellCounts], KnownSites], bool]
_TEST = SiteTest(SprtParams())


class Web(NamedTuple):
    """A web to draw sites from."""

    sites: int
    share: float
    known: int = 40  # sites of either truth
    human: float = 0.045  # mean flagged share
    llm: float = 0.8
    mixed: float = 0.0  # sites of which 40% of the pages are flagged
    human_mean: float = 4.0  # articles of a site
    llm_mean: float = 4.0


WEBS = (
    *(Web(sites, share) for sites in (50, 300, 1000) for share in (0.02, 0.05, 0.15, 0.3, 0.5)),
    Web(300, 0.3, known=0),
    Web(300, 0.3, known=20),
    Web(300, 0.15, llm=0.62),
    Web(300, 0.3, llm=0.62),
    Web(300, 0.3, human=0.08),
    Web(600, 0.3, human_mean=5, llm_mean=2),
    Web(600, 0.2, mixed=0.1),
)


def main() -> None:
    """Print every table."""
    if sys.argv[1:] == ["looks"]:
        return looks()
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{draws} draws a row: bias, RMSE, coverage and width of 95% intervals")
    print(" sites share known  human   llm mixed      direct                       classify-and-count")
    for web in WEBS:
        rng = np.random.default_rng(1)
        _row([_drawn(rng, web) for _ in range(draws)], web)
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
        _row(found, web._replace(known=len(sites) // 3))


def looks() -> None:
    """The alarm beside intervals that do not overlap: false alarms of a year of daily looks, days until a jump is seen.

    Jumps come on day 120; a year without one is looked at every third day by the alarm, every seventh by intervals.
    """
    print(f"{YEARS} years: 50 sites a day, share .15; a jump of +.05")
    for name, is_alarmed, every in (("alarm", _is_alarmed, 3), ("overlap", _is_apart, 7)):
        quiet = [_first_alarm(np.random.default_rng(seed), 365, is_alarmed, every) for seed in range(YEARS)]
        jumps = [_first_alarm(np.random.default_rng(seed), 120, is_alarmed, 1) for seed in range(YEARS)]
        seen = sorted(1000 if day is None else day - 119 for day in jumps)
        false = sum(day is not None for day in quiet)
        print(f"  {name:8} false alarms {false} of {YEARS}; days until a jump is seen: {seen[YEARS // 2]}, {seen}")


def _first_alarm(rng: np.random.Generator, jump: int, is_alarmed: IsAlarmed, every: int) -> int | None:
    """The day of the first alarm of a year; before a jump on day 120 nothing is looked at."""
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
    """Seconds of an estimate: what counts is the number of cells, not of sites."""
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
    is_llm = rng.random(web.sites) < web.share
    means = np.where(is_llm, web.llm_mean, web.human_mean)
    lengths = np.minimum(rng.geometric(1 / means), 20)
    flags = np.where(is_llm, _flags(rng, lengths, web.llm, 24.0), _flags(rng, lengths, web.human, 11.5))
    flags = np.where(rng.random(web.sites) < web.mixed, rng.binomial(lengths, 0.4), flags)
    sizes = rng.integers(5, 20, web.known)
    known = KnownSites(_cells(sizes, _flags(rng, sizes, 0.045, 11.5)), _cells(sizes, _flags(rng, sizes, 0.8, 24.0)))
    return _Draw(_cells(lengths, flags), known, float(is_llm.mean()))


def _flags(rng: np.random.Generator, lengths: Ints, mean: float, precision: float) -> Ints:
    found: Ints = rng.binomial(lengths, rng.beta(mean * precision, (1 - mean) * precision, len(lengths)))
    return found


def _cells(n: Ints, k: Ints) -> Counter[tuple[int, int]]:
    return Counter(zip(n.tolist(), k.tolist(), strict=True))


def _sample(rng: np.random.Generator, flags: npt.NDArray[np.bool_], pages: int) -> tuple[int, int]:
    chosen = rng.choice(flags, min(pages, len(flags)), replace=False)
    return len(chosen), int(chosen.sum())


def _row(draws: list[_Draw], web: Web) -> None:
    started = time.process_time()
    direct = []
    for draw in draws:
        fit = estimate_share(draw.cells, WIDE, draw.known)
        assert fit is not None
        direct.append((fit.share, fit.low, fit.high, draw.truth))
    took_ms = (time.process_time() - started) / len(draws) * 1000
    judged = []
    for draw in draws:
        verdicts = [verdict for (n, k), sites in draw.cells.items() for verdict in [_verdict(n, k)] * int(sites)]
        rate = site_rate(verdicts).rate
        if rate.rate is not None and rate.low is not None and rate.high is not None:
            judged.append((rate.rate, rate.low, rate.high, draw.truth))
    print(
        f"{web.sites:6} {web.share:5.2f} {web.known:5} {web.human:6.3f} {web.llm:5.2f} {web.mixed:5.2f}"
        f"  {_said(direct)}  {_said(judged)}  {took_ms:5.0f} ms"
    )


def _said(found: list[tuple[float, float, float, float]]) -> str:
    share, low, high, truth = np.array(found).T
    covered = ((low <= truth) & (truth <= high)).mean()
    errors = share - truth
    return f"{errors.mean():+.3f} {np.sqrt((errors**2).mean()):.3f} {covered:.3f} {(high - low).mean():.3f}"


@cache
def _verdict(n: int, k: int) -> str:
    """Of k flagged pages of n, spread evenly."""
    flags: list[bool | None] = [((place + 1) * k) // n > (place * k) // n for place in range(n)]
    return str(_TEST.decide(of_flags(flags)).verdict)


if __name__ == "__main__":
    main()
