"""Real sites with the Binoculars scores of their pages, and simulated sites that take their pages from them.

"Resampled" means that a simulated site takes its pages from one real site: pages of a site stay as similar as they are,
and a site keeps its own share of flagged pages.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.interface import PageScore
from scoring.sites.registry import SiteMethod

ACCURACY = 0.9015310749276843  # a threshold published by Binoculars' authors
DETECTOR = "binoculars/falcon-7b+falcon-7b-instruct"
ARTICLE_WORDS = 150

# Share of a site's pages that lite-ngram flags, and correlation of its pages, for human and for LLM sites. "stated" is
# worse than the measurement, for both; on "worst" alpha and beta are not met.
LITE_WORLDS = (
    ("stated", (0.05, 0.12), (0.83, 0.10)),
    ("measured", (0.026, 0.12), (0.85, 0.075)),
    ("worst", (0.207, 0.10), (0.82, 0.28)),
)

# The same at its threshold set `careful`: measured .003 (.04) and .44 (.10).
CAREFUL_WORLD = (0.01, 0.05), (0.44, 0.10)

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], list[PageScore]]


class Site(NamedTuple):
    """Scores of a real site's pages."""

    name: str
    llm: bool
    scores: list[float]


class Found(NamedTuple):
    """Verdicts on simulated sites of one kind."""

    verdicts: Counter[str]
    pages: list[int]

    def share(self, verdict: str) -> float:
        return self.verdicts[verdict] / self.verdicts.total()


def read_sites(path: Path, words: int) -> list[Site]:
    """Sites with the Binoculars scores of their pages of at least `words` words."""
    found: dict[tuple[str, bool], list[float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if int(row["words"]) >= words:
                found.setdefault((row["site"], row["generated"] == "1"), []).append(float(row["binoculars"]))
    return [Site(name, llm, scores) for (name, llm), scores in found.items()]


def pages_of(scores: Sequence[float], threshold: float = ACCURACY) -> list[PageScore]:
    return [PageScore(score < threshold, score) for score in scores]


def resampled(sites: Sequence[Site], llm: bool, budget: int, threshold: float, replace: bool) -> Iterator[Draw]:
    """Draws of pages, each from one site of a kind; sites take turns."""
    chosen = [np.array(site.scores) for site in sites if site.llm == llm]

    def draw_from(scores: Floats) -> Draw:
        def draw(rng: np.random.Generator) -> list[PageScore]:
            taken = rng.choice(scores, budget if replace else min(budget, len(scores)), replace=replace)
            return [PageScore(score < threshold, score, place) for place, score in enumerate(taken.tolist(), start=1)]

        return draw

    draws = [draw_from(scores) for scores in chosen]
    while True:
        yield from draws


def run_sites(method: SiteMethod, draws: Iterator[Draw], runs: int) -> Found:
    rng, found = np.random.default_rng(3), Found(Counter(), [])
    for _, draw in zip(range(runs), draws, strict=False):
        verdict = method.decide(draw(rng))
        found.verdicts[verdict.verdict] += 1
        found.pages.append(verdict.before_pages or verdict.pages_used)
    return found


def beta_binomial(mean: float, rho: float, budget: int) -> Iterator[Draw]:
    """Flags of sites whose share varies by Beta(mean, 1 - mean) scaled by 1/rho - 1: pages correlate by rho."""

    def draw(rng: np.random.Generator) -> list[PageScore]:
        scale = 1 / rho - 1 if rho else 0.0
        share = rng.beta(mean * scale, (1 - mean) * scale) if rho else mean
        return [PageScore(flag, None, place) for place, flag in enumerate((rng.random(budget) < share).tolist(), 1)]

    while True:
        yield draw


def of_flags(flags: Sequence[bool | None]) -> list[PageScore]:
    """Pages with flags only, in page order; None = the detector abstained."""
    return [PageScore(flag) for flag in flags if flag is not None]
