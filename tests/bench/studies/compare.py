"""Coverage of the intervals of `farmwatch compare`, by simulation: the table of docs/explanation/compare.md.

Run by `python -m tests.bench.studies.compare [samples, default 1000]`; it takes some minutes. Coverage is the share of
samples of sites whose 95% interval covers the true difference of two rulesets, at RESAMPLES resamples each. Rates of
sites take three times as many samples. The mean width of the interval, in points, is in brackets. The last row is of
sites of 1 to 200 pages by Pareto's law.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

from scoring.estimate.paired_bootstrap import RESAMPLES
from tests.bench.timing import argument
from tests.support.paired_sites import PAGES, SITES, Sample, coverage, of_pages, of_sites, uneven_sites

SIZES = (20, 40, 150, 600, 2000)
_UNEVEN = "hardly a flip, uneven sites"


def main() -> None:
    """Print the table."""
    samples = argument(1, 1000)
    print("| share and flips | " + " | ".join(f"{size:,} sites" for size in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    with ProcessPoolExecutor() as pool:
        cells = {row: pool.map(_cell, repeat(row), SIZES, repeat(samples)) for row in (*SITES, *PAGES, _UNEVEN)}
        for row, line in cells.items():
            print(f"| {row} | " + " | ".join(line) + " |", flush=True)


def _cell(row: str, sites: int, samples: int) -> str:
    """One figure of the table; "-" for 2,000 sites with pages, of which a sample takes a second."""
    if row not in SITES and sites == SIZES[-1]:
        return "-"
    sample, truth = _sample_of(row)
    held, width = coverage(sample, truth, sites, 3 * samples if row in SITES else samples, RESAMPLES)
    return f"{held:.3f} ({100 * width:.1f})".removeprefix("0")


def _sample_of(row: str) -> tuple[Sample, float]:
    if row in SITES:
        return of_sites(SITES[row])
    return of_pages(*PAGES["hardly a flip"], uneven_sites) if row == _UNEVEN else of_pages(*PAGES[row])


if __name__ == "__main__":
    main()
