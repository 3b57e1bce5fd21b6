"""Coverage of calibration's intervals for the true false-positive rate, by site and by page, if pages of a site agree.

Run by `python -m tests.bench.studies.calibration [rounds a setting, default 400]`. No times are measured. The clustered
interval is compared with the exact one that takes every page for an independent text. Scores are normal, so that the
true rate beyond any threshold is known; pages of a site correlate by `rho`.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from scoring.calibration.labelled_scores import LabelledScores
from scoring.calibration.threshold import choose_threshold, measure
from scoring.thresholds.threshold_set import ThresholdSet
from tests.bench.timing import argument

DETECTOR = "fast-detectgpt/x+y@00000000/float32/512"


def main() -> None:
    rounds = argument(1, 400)
    rng = np.random.default_rng(1)
    found: list[tuple[float, float]] = []
    print(f"coverage of the 95% interval of the false-positive rate, {rounds} calibrations a setting")
    for sites in (20, 47, 100):
        for rho in (0.1, 0.3, 0.5):
            for fpr in (0.01, 0.05):
                by_site, by_page = coverage(rng, sites, rho, fpr, rounds)
                found.append((by_site, by_page))
                print(f"  {sites:3d} sites  rho {rho}  fpr {fpr:<4}  by site {by_site:6.1%}  by page {by_page:6.1%}")
    for name, held in zip(("by site", "by page"), zip(*found, strict=True), strict=True):
        print(f"{name}: {min(held):.0%} to {max(held):.0%}")


def coverage(rng: np.random.Generator, sites: int, rho: float, fpr: float, rounds: int) -> tuple[float, float]:
    """Shares of calibrations whose interval covers the true rate, clustered by site and not."""
    held = [0, 0]
    for _ in range(rounds):
        of = np.repeat(np.arange(sites), rng.integers(15, 60, sites))
        value = rng.normal(0, math.sqrt(rho), sites)[of] + rng.normal(0, math.sqrt(1 - rho), len(of))
        for place, names in enumerate(([f"s{number}" for number in of], [""] * len(of))):
            scores = LabelledScores(
                detector=DETECTOR,
                number="score",
                llm_below=False,
                value=value,
                llm=np.zeros(len(of), bool),
                words=np.full(len(of), -1),
                sites=names,
                genres=[""] * len(of),
            )
            threshold = choose_threshold(scores, fpr)
            chosen = ThresholdSet(name="x", detector=DETECTOR, threshold=threshold, llm_below=False)
            share = measure(scores, chosen, "").false_positives
            held[place] += (share.low or 0) <= 1 - NormalDist().cdf(threshold) <= (share.high or 1)
    return held[0] / rounds, held[1] / rounds


if __name__ == "__main__":
    main()
