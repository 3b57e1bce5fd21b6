"""Coverage of the intervals of `farmwatch compare`, by simulation: the table of docs/explanation/compare.md.

Run by `python -m tests.bench.bench_compare [samples, default 1000]`; it takes some minutes. Coverage is the share of
samples of sites whose 95% interval covers the true difference of two rulesets, at RESAMPLES resamples each; with 1,000
samples a coverage of .95 has a standard error of .007. Rates of sites take three times as many. The first six lines use
the samples of the tests, which require .94 with fewer samples. The mean width of the interval, in points, is in
brackets.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from scoring.estimate.paired_bootstrap import RESAMPLES
from tests.bench.timing import argument
from tests.support.paired_sites import PAGES, SITES, coverage, of_pages, of_sites, small_sites, uneven_sites

SIZES = (20, 40, 150, 600, 2000)
_PAGES_SIZES = SIZES[:-1]  # a sample of 2,000 different sites takes a second


class Row(NamedTuple):
    """A line of the table: a change of rules."""

    title: str
    probabilities: list[float] | None = None  # of sites with a verdict
    shares: tuple[float, float, float, float] | None = None  # of sites with pages
    uneven: bool = False  # a few sites have most of the pages


ROWS = (
    Row("rate of sites: 3% flip to llm, 3% away from it", SITES["as many in as out"]),
    Row("rate of sites: 6% flip to llm, 0.5% away", SITES["nearly all one way"]),
    Row("rate of sites: 0.6% flip to llm, 0.2% away", SITES["few flips"]),
    Row("share of articles: 10% of the others come in, 2% of the articles go", shares=PAGES["a rule is loosened"]),
    Row(
        "share of articles: 10% of the articles go, 2% of the others come, in few sites",
        shares=PAGES["a rule is tightened, in few sites"],
    ),
    Row("share of articles: 2% of the others come in, all from few sites", shares=PAGES["hardly a flip"]),
    Row("share of articles: 10% either way, spread evenly", shares=(0.5, 0.10, 0.10, 1000.0)),
    Row("the sixth line, with sites of 1 to 200 pages by Pareto's law", shares=PAGES["hardly a flip"], uneven=True),
)


def main() -> None:
    simulations = argument(1, 1000)
    print(
        f"Coverage of the 95% interval, its mean width in points; {simulations:,} samples, of rates {3 * simulations:,}"
    )
    print("| share and flips | " + " | ".join(f"{size:,} sites" for size in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    with ProcessPoolExecutor() as pool:
        cells = [[pool.submit(cell, row, size, simulations) for size in SIZES] for row in ROWS]
        for row, line in zip(ROWS, cells, strict=True):
            print(f"| {row.title} | " + " | ".join(one.result() for one in line) + " |", flush=True)


def cell(row: Row, sites: int, simulations: int) -> str:
    """One figure of the table; "-" where it is not computed."""
    if row.probabilities is not None:
        sample, truth = of_sites(row.probabilities)
        simulations *= 3
    elif row.shares is not None and sites in _PAGES_SIZES:
        sample, truth = of_pages(*row.shares, uneven_sites if row.uneven else small_sites)
    else:
        return "-"
    held, width = coverage(sample, truth, sites, simulations, RESAMPLES)
    return f"{held:.3f} ({100 * width:.1f})".removeprefix("0")


if __name__ == "__main__":
    main()
