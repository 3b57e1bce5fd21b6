"""Site verdicts of three detectors on the same real pages, for sites that were left out of the choice of all numbers.

    python -m tests.bench.studies.instruments [orders, default 100 [folder for the threshold sets]]

The table of docs/explanation/detectors.md, and the threshold sets in docs/thresholds. `page_scores.csv` has scores of
Binoculars, Fast-DetectGPT and Desklib of 69 sites (2025). Each site is left out once. The others give, for each
false-positive rate of `RATES`, what `farmwatch lab calibrate` makes of them: a threshold and the test's p0 and p1. The
rate counts that leaves the fewest of their verdicts wrong or open. The site left out is then judged by its articles in
random orders, at most 20 of them.

The column of Fast-DetectGPT has the probability of its authors' program. It is turned back into the score, see
`score_of_probability`.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.calibration.labelled_scores import LabelledScores
from scoring.calibration.threshold import calibrate, choose_threshold, measure_sites, measured_on
from scoring.sites.sprt import SiteTest, SprtParams
from scoring.statistics.rounding import significant
from scoring.thresholds.threshold_set import Curve, ThresholdSet, write_thresholds
from stream.schema.vocabulary import SiteClass
from tests.bench.studies.sites import BUDGET, by_method, print_row
from tests.bench.timing import argument
from tests.support.paths import data_root
from tests.support.real_sites import ACCURACY, ARTICLE_WORDS, Found, pages_of

RATES = (0.01, 0.02, 0.05, 0.1)
# Fast-DetectGPT's authors give normal laws of the score of human and of LLM texts for this pair, the second twice as
# wide as the first (`scripts/local_infer.py` of their program): mean and standard deviation of each.
FALCON_HUMAN, FALCON_LLM = (-0.0707, 0.9520), (2.9306, 1.9039)
Floats = NDArray[np.float64]


class Column(NamedTuple):
    """A detector of the file."""

    title: str
    field: str
    detector: str  # identity without its threshold set
    llm_below: bool
    file: str = ""  # its threshold set
    scored_by: str = ""


COLUMNS = (
    Column("Binoculars", "binoculars", "binoculars/falcon-7b+falcon-7b-instruct@00000000/bfloat16/512", True),
    Column(
        "Fast-DetectGPT",
        "fast_detect_gpt",
        "fast-detectgpt/falcon-7b+falcon-7b-instruct@00000000/bfloat16/512",
        False,
        "fast-detectgpt-falcon.json",
        "its authors' program with Falcon-7B",
    ),
    Column(
        "Desklib v1.01",
        "desklib",
        "encoder/ai-text-detector-v1.01@00000000/float32/768x1",
        False,
        "desklib-v1.01.json",
        "Desklib's program",
    ),
)


class Chosen(NamedTuple):
    """The numbers that a set of sites gives."""

    fpr: float
    threshold: float
    test: SprtParams


def main() -> None:
    orders = argument(1, 100)
    path = data_root() / "data" / "scores" / "page_scores.csv"
    for column in COLUMNS:
        scores = read_column(path, column)
        print(f"\n{column.title}, {len(scores.value)} articles of {len(set(scores.sites))} sites")
        if column.field == "binoculars":
            published = Chosen(0.0, ACCURACY, SprtParams())
            print_row("published, in sample", *judged(scores, [published] * len(sites_of(scores)), orders))
        for fpr in RATES:
            chosen = [choose(part, (fpr,), orders) for part in without_each(scores)]
            fitting = [each for each in chosen if each is not None]
            if len(fitting) < len(chosen):
                print(f"fpr {fpr:<4}: no test in {len(chosen) - len(fitting)} of {len(chosen)} choices")
                continue
            print_row(f"fpr {fpr}, left out", *judged(scores, fitting, orders))
        nested = [choose(part, RATES, orders) for part in without_each(scores)]
        print_row("fpr chosen too, left out", *judged(scores, [each for each in nested if each is not None], orders))
        print("  rates chosen:", dict(Counter(each.fpr for each in nested if each is not None)))
        chosen_on_all = choose(scores, RATES, orders)
        print("  of all sites:", chosen_on_all)
        if column.file and chosen_on_all is not None and len(sys.argv) > 2:
            write_thresholds(
                Path(sys.argv[2]) / column.file, threshold_set(scores, column, chosen_on_all.fpr), force=True
            )


def threshold_set(scores: LabelledScores, column: Column, fpr: float) -> ThresholdSet:
    """What `farmwatch lab calibrate` makes of all pages, rounded, for a model whose digest is still to be filled in."""
    made, _ = calibrate(scores, "sites-2025", fpr)
    assert made.curve is not None
    made = msgspec.structs.replace(
        made,
        detector=column.detector.replace("@00000000", ""),
        threshold=significant(made.threshold, 6),
        curve=Curve(significant(made.curve.slope, 6), significant(made.curve.offset, 6)),
    )
    texts = measured_on(scores).removesuffix(", on which it was chosen")
    return made.with_errors(
        fpr,
        f"{texts} (2025, {ARTICLE_WORDS} words or more, most LLM sites by one maker),"
        f" scored by {column.scored_by}; chosen on the same pages, to flag {fpr:.0%} of the human ones",
    )


def read_column(path: Path, column: Column, words: int = ARTICLE_WORDS) -> LabelledScores:
    """The scores of a detector, of pages of at least `words` words."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["words"]) >= words]
    value = np.array([float(row[column.field]) for row in rows])
    return LabelledScores(
        detector=column.detector,
        number="score",
        llm_below=column.llm_below,
        value=score_of_probability(value) if column.field == "fast_detect_gpt" else value,
        llm=np.array([row["generated"] == "1" for row in rows]),
        words=np.array([int(row["words"]) for row in rows]),
        sites=[row["site"] for row in rows],
        genres=[""] * len(rows),
    )


def score_of_probability(probability: Floats) -> Floats:
    """Fast-DetectGPT's score from the probability that its authors' program prints for Falcon-7B.

    With normal densities f of human and g of LLM texts the probability is g / (f + g). Because g is wider, it has a
    minimum, .0871 at a score of -1.07, and rises again below it. A probability is read as the score above the minimum;
    for lower scores, of human texts, that is too high, and far from any threshold.
    """
    (mean, spread), (llm_mean, llm_spread) = FALCON_HUMAN, FALCON_LLM
    # log g/f is a parabola in the score x: a x^2 + b x + c
    a = (1 / spread**2 - 1 / llm_spread**2) / 2
    b = llm_mean / llm_spread**2 - mean / spread**2
    c = math.log(spread / llm_spread) + mean**2 / (2 * spread**2) - llm_mean**2 / (2 * llm_spread**2)
    logit = np.log(probability) - np.log1p(-probability)
    return np.asarray((-b + np.sqrt(np.maximum(b * b - 4 * a * (c - logit), 0.0))) / (2 * a))


def sites_of(scores: LabelledScores) -> list[tuple[str, bool]]:
    """Name and label of each site, in the order of its first page; a name may have pages of both labels."""
    return list(dict.fromkeys(zip(scores.sites, scores.llm.tolist(), strict=True)))


def of_site(scores: LabelledScores, site: tuple[str, bool]) -> NDArray[np.bool_]:
    return np.array([each == site for each in zip(scores.sites, scores.llm.tolist(), strict=True)])


def without_each(scores: LabelledScores) -> list[LabelledScores]:
    """For each site, the pages of all others."""
    return [scores.where(~of_site(scores, site)) for site in sites_of(scores)]


def choose(scores: LabelledScores, rates: Sequence[float], orders: int) -> Chosen | None:
    """Threshold and test at the rate that leaves the fewest verdicts on these sites wrong or open; None: no test."""
    found = []
    for fpr in rates:
        threshold = choose_threshold(scores, fpr)
        test, _ = measure_sites(scores, threshold)
        if test is not None:
            found.append(Chosen(fpr, threshold, test))
    if len(found) < 2:
        return found[0] if found else None
    flags = [(llm, scores.where(of_site(scores, (name, llm)))) for name, llm in sites_of(scores)]
    return min(found, key=partial(_loss, flags, orders=orders))


def _loss(sites: Sequence[tuple[bool, LabelledScores]], chosen: Chosen, orders: int) -> tuple[float, float]:
    """Verdicts that are wrong or open, both kinds of site of equal weight; then pages."""
    test = SiteTest(chosen.test)
    (flagged, clear), (lower, upper) = test.steps, test.bounds
    failed: dict[bool, list[float]] = {False: [], True: []}
    used = []
    for llm, pages in sites:
        flags = pages.flagged(chosen.threshold)
        taken = min(BUDGET, len(flags))
        rng = np.random.default_rng(7)
        order = rng.permuted(np.tile(np.arange(len(flags)), (orders, 1)), axis=1)[:, :taken]
        sums = np.where(flags[order], flagged, clear).cumsum(axis=1).round(9)
        places = np.arange(1, taken + 1)
        allowed = places >= test.params.min_articles
        last = [np.where(of & allowed, places, 0).max(axis=1) for of in (sums <= lower, sums >= upper)]
        failed[llm].append(float((last[llm] <= last[not llm]).mean()))
        crossed = ((sums <= lower) | (sums >= upper)) & allowed
        used.append(float(np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, taken).mean()))
    return float(np.mean(failed[False]) + np.mean(failed[True])), float(np.mean(used))


def judged(scores: LabelledScores, chosen: Sequence[Chosen], orders: int) -> tuple[Found, Found]:
    """Verdicts on each site's articles in random orders, by the numbers chosen for it: on human and on LLM sites."""
    rng, kinds = np.random.default_rng(1), (Found(Counter(), []), Found(Counter(), []))
    for site, (_, threshold, test) in zip(sites_of(scores), chosen, strict=True):
        value, judge = scores.where(of_site(scores, site)).toward_llm, by_method(SiteTest(test))
        limit = -threshold if scores.llm_below else threshold
        for _ in range(orders):
            # turned so that llm is below, as `pages_of` has it
            verdict, used = judge(pages_of((-rng.permutation(value)[:BUDGET]).tolist(), -limit))
            kinds[site[1]].verdicts[verdict] += 1
            kinds[site[1]].pages.append(used)
    assert sum(found.verdicts.total() for found in kinds) == orders * len(chosen)
    assert {*kinds[0].verdicts, *kinds[1].verdicts} <= {*SiteClass}
    return kinds


if __name__ == "__main__":
    main()
