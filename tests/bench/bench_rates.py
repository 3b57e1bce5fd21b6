"""Coverage of the rate's intervals, by simulation and exactly, and the time to compute rates of many sites.

Run by `python -m tests.bench.bench_rates`. Coverage is the share of studies whose 95% interval covers the true rate. A
simulated study draws n sites at the true rate, judges them with Se and Sp, and measures Se and Sp anew on n1 LLM and n0
human sites; ROUNDS of them per setting have a standard error of .0022 at a coverage of .95. Exact figures sum over
every outcome of x, a and b that is likelier than 1e-10.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.estimate.intervals import Interval, Known, interval_of, wilson
from scoring.rates.canary import CanaryName
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.schema.records import SiteState

ROUNDS = 10_000
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SITES = (20, 50, 100, 300, 1000, 5000)
VERDICTS = ((0.975, 0.98), (0.9, 0.99), (0.9, 0.95), (0.8, 0.9), (0.95, 0.999), (0.999, 0.999))  # Se, Sp
MEASURED = ((20, 20), (40, 76), (100, 100), (20, 300), (300, 20), (300, 300), (2000, 2000))  # n1, n0
GOAL = 0.94
Z95 = 1.959963984540054
_UNLIKELY = 1e-10


class Setting(NamedTuple):
    """The parameters of simulated studies."""

    rate: float
    n: int
    se: float
    sp: float
    n1: int
    n0: int


def main() -> None:
    """Print every table."""
    uncorrected_exactly()
    corrected()
    widths()
    speed()


def uncorrected_exactly() -> None:
    """Every n up to 1,000 and each 23rd to 3,000, with the plain forms of Wilson and Agresti-Coull."""
    sizes = [*range(1, 1001), *range(1001, 3001, 23)]
    forms: dict[str, Callable[[float, float, float], Interval]] = {
        "Wilson, corrected for continuity (in use)": wilson,
        "Wilson": plain_wilson,
        "Agresti-Coull": agresti_coull,
    }
    print(f"Uncorrected: least exact coverage over n = 1..1,000 and {len(sizes) - 1000} sizes up to 3,000")
    print(f"{'':44}" + "".join(f"{rate:>9}" for rate in RATES))
    for name, form in forms.items():
        least = dict.fromkeys(RATES, (1.0, 0))
        for n in sizes:
            bounds = [form(x, n, Z95) for x in range(n + 1)]
            low, high = np.array([i.low for i in bounds]), np.array([i.high for i in bounds])
            for rate in RATES:
                covered = float(binomial(n, rate)[(low <= rate) & (rate <= high)].sum())
                least[rate] = min(least[rate], (covered, n))
        print(f"{name:44}" + "".join(f"{least[rate][0]:>9.4f}" for rate in RATES))
        print(f"{'  at n =':44}" + "".join(f"{least[rate][1]:>9}" for rate in RATES))
    print()


def corrected() -> None:
    """Simulated coverage by size, then exactly where it is near the goal or below."""
    print(
        f"Corrected (Lang-Reiczigel): least simulated coverage over rates {RATES[0]} to {RATES[-1]}, {ROUNDS:,} rounds"
    )
    print(f"{'Se':>6}{'Sp':>7}{'n1':>6}{'n0':>6}  " + "".join(f"{f'n={n:,}':>9}" for n in SITES))
    rng = np.random.default_rng(29)
    near: list[Setting] = []
    settings = 0
    for se, sp in VERDICTS:
        for n1, n0 in MEASURED:
            least = []
            for n in SITES:
                found = {}
                for rate in RATES:
                    setting = Setting(rate, n, se, sp, n1, n0)
                    found[setting] = simulated(setting, rng)
                    settings += 1
                near += [setting for setting, coverage in found.items() if coverage < GOAL + 0.004]
                least.append(min(found.values()))
            print(f"{se:>6}{sp:>7}{n1:>6}{n0:>6}  " + "".join(f"{coverage:>9.4f}" for coverage in least))
    below = sorted((exact(setting), setting) for setting in near)
    below = [(coverage, setting) for coverage, setting in below if coverage < GOAL]
    print(f"\nexactly below {GOAL}: {len(below)} of {settings} settings ({len(near)} near it were summed)")
    print(f"{'coverage':>9}{'rate':>6}{'n':>6}{'Se':>7}{'Sp':>7}{'n1':>6}{'n0':>6}")
    for coverage, setting in below:
        rate, n, se, sp, n1, n0 = setting
        print(f"{coverage:>9.4f}{rate:>6}{n:>6}{se:>7}{sp:>7}{n1:>6}{n0:>6}")
    print()


def simulated(setting: Setting, rng: np.random.Generator) -> float:
    """Share of simulated studies that cover the rate; one with measured errors no better than chance covers none."""
    rate, n, se, sp, n1, n0 = setting
    p = rate * se + (1 - rate) * (1 - sp)
    drawn = np.stack([rng.binomial(n, p, ROUNDS), rng.binomial(n1, se, ROUNDS), rng.binomial(n0, sp, ROUNDS)], axis=1)
    outcomes, counts = np.unique(drawn, axis=0, return_counts=True)
    held = sum(
        count for (x, a, b), count in zip(outcomes.tolist(), counts.tolist(), strict=True) if holds(setting, x, a, b)
    )
    return float(held) / ROUNDS


def exact(setting: Setting) -> float:
    """The coverage summed over all outcomes except the least likely ones, which count as not covered."""
    rate, n, se, sp, n1, n0 = setting
    of_x, of_a, of_b = binomial(n, rate * se + (1 - rate) * (1 - sp)), binomial(n1, se), binomial(n0, sp)
    total = 0.0
    for a in likely(of_a):
        for b in likely(of_b):
            weight = of_a[a] * of_b[b]
            if weight > _UNLIKELY:
                total += weight * sum(of_x[x] for x in likely(of_x) if holds(setting, x, a, b))
    return float(total)


def holds(setting: Setting, x: int, a: int, b: int) -> bool:
    """Whether the interval of this outcome covers the true rate."""
    known = Known(setting.n1, a, setting.n0, b)
    if (a + 1) / (setting.n1 + 2) + (b + 1) / (setting.n0 + 2) <= 1:
        return False
    found = interval_of(x, setting.n, known, Z95)
    return found.low <= setting.rate <= found.high


def likely(chances: npt.NDArray[np.float64]) -> Iterator[int]:
    """The outcomes that are likely enough to count."""
    yield from np.flatnonzero(chances > _UNLIKELY).tolist()


@lru_cache(maxsize=64)
def factorials(n: int) -> npt.NDArray[np.float64]:
    """log k! for k = 0..n."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def binomial(n: int, p: float) -> npt.NDArray[np.float64]:
    """P(X = x) for x = 0..n."""
    logs, x = factorials(n), np.arange(n + 1)
    chances: npt.NDArray[np.float64] = np.exp(
        logs[n] - logs[x] - logs[n - x] + x * math.log(p) + (n - x) * math.log1p(-p)
    )
    return chances


def plain_wilson(x: float, n: float, z: float) -> Interval:
    """Wilson's interval without the correction for continuity."""
    p, n_z = x / n, n + z * z
    centre = (x + z * z / 2) / n_z
    half = z * math.sqrt(p * (1 - p) * n + z * z / 4) / n_z
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))


def agresti_coull(x: float, n: float, z: float) -> Interval:
    """Agresti and Coull's interval, to which Lang-Reiczigel's reduces if Se and Sp are known to be 1."""
    n_z = n + z * z
    p = (x + z * z / 2) / n_z
    half = z * math.sqrt(p * (1 - p) / n_z)
    return Interval(p, max(0.0, p - half), min(1.0, p + half))


def widths() -> None:
    """Widths with the correction for continuity, of the plain form, and of the exact Clopper-Pearson interval."""
    try:
        from scipy.stats import beta
    except ImportError:
        beta = None
    print("Width of the 95% interval: in use / plain Wilson / Clopper-Pearson (SciPy)")
    for x, n in ((0, 30), (3, 30), (10, 100), (2, 100), (100, 1000), (500, 1000)):
        plain, used = plain_wilson(x, n, Z95), wilson(x, n, Z95)
        peer = "-"
        if beta is not None:
            low = 0.0 if x == 0 else float(beta.ppf(0.025, x, n - x + 1))
            peer = f"{float(beta.ppf(0.975, x + 1, n - x)) - low:.4f}"
        print(f"{x:>5} of {n:>5}: {2 * used.half_width:.4f} / {2 * plain.half_width:.4f} / {peer}")
    print()


def speed() -> None:
    """CPU of `farmwatch rate` without reading the log: 100,000 sites and 60 canaries."""
    rng = np.random.default_rng(3)
    verdicts = ("llm", "human", "undecided", "unclassifiable")
    scored = np.minimum(rng.geometric(0.25, 100_000), 20)
    flagged = rng.binomial(scored, np.where(rng.random(100_000) < 0.15, 0.8, 0.05))
    rows = [
        SiteState(
            id=str(n),
            site=f"s{n}.example",
            verdict=verdicts[int(kind)],
            detector="x/1",
            ruleset="r",
            digest="d",
            sources=[f"source{n % 4}"],
            queries=[f"group{n % 9}-{n % 500}"],
            best_rank=int(n % 60),
            days=[20_000 + n % 90, 20_000 + n % 77],
            scored=int(scored[n]),
            flagged=int(flagged[n]),
        )
        for n, kind in enumerate(rng.choice(4, 100_000, p=[0.05, 0.2, 0.06, 0.69]))
    ]
    for n in range(60):
        truth = "llm" if n % 2 else "human"
        site = CanaryName(f"x{n}", f"{n:016x}", 10, 1, truth).site
        rows.append(SiteState(id=site, site=site, verdict=truth, detector="x/1", ruleset="r", digest="d", updated_at=1))
    settings = RateSettings(groups={f"g{n}": [f"group{n}-*"] for n in range(9)})
    print("CPU of rates over 100,000 sites, median of 3")
    for by in ("", "source", "query-group", "rank", "day", "week", "month"):
        took = []
        for _ in range(3):
            started = time.process_time()
            lines = rate_lines(rows, RateQuery(by=by, settings=settings, now_ms=1))
            took.append(time.process_time() - started)
        print(f"  {by or 'all':12} {statistics.median(took) * 1000:7.0f} ms, {len(lines)} groups")


if __name__ == "__main__":
    main()
