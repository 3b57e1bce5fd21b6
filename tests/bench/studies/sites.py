"""Site verdicts on real page scores, and their error rates by simulation: the tables of docs/explanation/sites.md.

Run by `python -m tests.bench.studies.sites [sites a setting, default 10000]`; it takes some minutes. A simulated site
takes its pages from one real site, with replacement; that of the built-in detector draws its share of flagged pages
from a beta distribution, and there are ten times as many.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from lab.sites.training import LabelledSite, learn
from scoring.interface import PageScore
from scoring.lite_ngram.detector import LiteNgram
from scoring.sites.bimodal import is_mixed
from scoring.sites.registry import SiteMethod
from scoring.sites.sprt import LITE_CAREFUL_PARAMS, LITE_NGRAM_PARAMS, LOW_FPR_PARAMS, SiteTest, SprtParams
from stream.schema.vocabulary import SiteClass
from tests.bench.timing import argument, json_lines
from tests.support.paths import data_root
from tests.support.real_sites import (
    ACCURACY,
    ARTICLE_WORDS,
    CAREFUL_WORLD,
    DETECTOR,
    LITE_WORLDS,
    Draw,
    Found,
    Site,
    beta_binomial,
    pages_of,
    read_sites,
    resampled,
    run_sites,
)

LOW_FPR = 0.8536432310785527  # a threshold published by Binoculars' authors
BUDGET = 20  # usable scores after which crawling stops
SHUFFLES = 100  # orders of a site's pages
P0_CHOICES = (0.10, 0.15, 0.20, 0.25)
Judge = Callable[[Sequence[PageScore]], tuple[str, int]]  # the verdict and the pages that it took


def main() -> None:
    """Print every table."""
    data, runs = data_root() / "data", argument(1, 10_000)
    sites = read_sites(data / "scores" / "page_scores.csv", ARTICLE_WORDS)
    on_real_sites(sites)
    left_out(sites)
    print("\nsimulated, pages with replacement")
    for pages in (20, 40):
        draws = [resampled(sites, llm, pages, ACCURACY, True) for llm in (False, True)]
        print_errors(f"sprt, {pages} pages", SiteTest(SprtParams()), draws, runs)
    draws = [resampled(sites, llm, BUDGET, LOW_FPR, True) for llm in (False, True)]
    print_errors(f"sprt, low-fpr, {BUDGET} pages", SiteTest(LOW_FPR_PARAMS), draws, runs)
    chosen_p0(sites, 2 * runs)
    groups(data)
    print("\nlite-ngram, simulated")
    for p0, p1 in ((0.30, 0.65), (0.30, 0.80)):
        test = SiteTest(msgspec.structs.replace(LITE_NGRAM_PARAMS, p0=p0, p1=p1))
        for name, *kinds in LITE_WORLDS:
            for pages in (20, 40):
                draws = [beta_binomial(*kind, pages) for kind in kinds]
                print_errors(f"{p0}, {p1}, {name}, {pages} pages", test, draws, 10 * runs)
    for pages in (20, 40):
        draws = [beta_binomial(*kind, pages) for kind in CAREFUL_WORLD]
        print_errors(f"careful, {pages} pages", SiteTest(LITE_CAREFUL_PARAMS), draws, 10 * runs)
    mixed(sites, min(runs, 4000))


def on_real_sites(sites: Sequence[Site]) -> None:
    """Each site's pages in many orders, at most BUDGET of them, none twice."""
    print(f"{len(sites)} real sites, {SHUFFLES} orders, at most {BUDGET} pages")
    rows: tuple[tuple[str, float, Judge], ...] = (
        ("sprt", ACCURACY, by_method(SiteTest(SprtParams()))),
        ("sprt, p0 = .10", ACCURACY, by_method(SiteTest(SprtParams(p0=0.10, min_articles=4)))),
        ("sprt, low-fpr", LOW_FPR, by_method(SiteTest(LOW_FPR_PARAMS))),
        ("majority of 20, low-fpr", LOW_FPR, by_majority),
    )
    for name, threshold, judge in rows:
        rng, kinds = random.Random(1), (Found(Counter(), []), Found(Counter(), []))
        for site in sites:
            for _ in range(SHUFFLES):
                chosen = rng.sample(site.scores, min(BUDGET, len(site.scores)))
                verdict, used = judge(pages_of(chosen, threshold))
                kinds[site.llm].verdicts[verdict] += 1
                kinds[site.llm].pages.append(used)
        print_row(name, *kinds)


def by_method(method: SiteMethod) -> Judge:
    """Verdicts of a site method."""

    def judge(pages: Sequence[PageScore]) -> tuple[str, int]:
        found = method.decide(pages)
        return found.verdict, found.pages_used

    return judge


def by_majority(pages: Sequence[PageScore]) -> tuple[str, int]:
    """The vote of all pages."""
    flagged = sum(bool(page.flag) for page in pages)
    return SiteClass.LLM if 2 * flagged > len(pages) else SiteClass.HUMAN, len(pages)


def left_out(sites: Sequence[Site]) -> None:
    """`deciles` on sites that were left out of the training."""
    trained = learn([LabelledSite(*site) for site in sites], DETECTOR)
    human, llm = trained.human_draws_wrong, trained.llm_draws_wrong
    print(f"deciles, left out: human wrong {human:.2%}, LLM wrong {llm:.2%} of the draws")


def print_errors(name: str, test: SiteMethod, draws: Sequence[Iterator[Draw]], runs: int) -> None:
    """A line with both errors of a method on human and LLM sites."""
    print_row(name, *(run_sites(test, of, runs) for of in draws))


def print_row(name: str, human: Found, llm: Found) -> None:
    """A line with both errors."""
    cells = []
    for kind, found, wrong in (("human", human, SiteClass.LLM), ("LLM", llm, SiteClass.HUMAN)):
        undecided = 1 - found.share(SiteClass.LLM) - found.share(SiteClass.HUMAN)
        cells.append(f"{kind} wrong {found.share(wrong):.3%} undecided {undecided:.2%}")
    print(f"{name:32} {', '.join(cells)}, pages {np.mean(human.pages + llm.pages):.1f}", flush=True)


def chosen_p0(sites: Sequence[Site], runs: int) -> None:
    """The least p0 with at most alpha of human sites called llm, chosen on all of them but one, tested on that one."""
    human = [np.array(site.scores) < ACCURACY for site in sites if not site.llm]
    print(f"\nhuman sites called llm at {BUDGET} and 40 pages, {runs} runs a site")
    shares = {pages: np.array([alarms(human, p0, pages, runs) for p0 in P0_CHOICES]) for pages in (BUDGET, 40)}
    for place, p0 in enumerate(P0_CHOICES):
        print(f"p0 = {p0:.2f} " + " ".join(f"{of[place].mean():.3%}" for of in shares.values()))
    choices = []
    for left in range(len(human)):
        rest = np.delete(shares[BUDGET], left, axis=1).mean(axis=1)
        choices.append(next((at for at, share in enumerate(rest) if share <= SprtParams().alpha), len(P0_CHOICES) - 1))
    honest = [of[choices, range(len(human))].mean() for of in shares.values()]
    chosen = Counter(P0_CHOICES[place] for place in choices)
    print("without the site", *(f"{share:.3%}" for share in honest), dict(chosen))


def alarms(sites: Sequence[NDArray[np.bool_]], p0: float, pages: int, runs: int) -> list[float]:
    """For each site, the share of runs that end as llm; the pages are drawn with replacement."""
    test, rng = SiteTest(msgspec.structs.replace(SprtParams(), p0=p0)), np.random.default_rng(5)
    (flagged, clear), (lower, upper) = test.steps, test.bounds
    needed, places, found = test.params.min_articles, np.arange(1, pages + 1), []
    for flags in sites:
        sums = np.where(rng.choice(flags, (runs, pages)), flagged, clear).cumsum(axis=1)
        crossed = [np.where(of & (places >= needed), places, 0).max(axis=1) for of in (sums >= upper, sums <= lower)]
        found.append(float((crossed[0] > crossed[1]).mean()))
    return found


def groups(data: Path) -> None:
    """Texts that lite-ngram flags: in human sources left out of its training, in LLM sites and by chat assistants."""
    numbers = json.loads(resources.files("scoring.data").joinpath("lite-ngram.json").read_bytes())["evaluation"]
    sources = np.array([row["flagged"] for row in numbers["sources"]])
    mean = sources.mean()
    rho = sources.var(ddof=1) / (mean * (1 - mean))
    print(f"\nlite-ngram, {len(sources)} human sources: {mean:.3f}, at most {sources.max():.2f}, correlation {rho:.2f}")
    web = flags_by(data / "sampleweb" / "pages.jsonl.zst", "site")
    dev = flags_by(data / "texts" / "dev.jsonl.zst", "src", "generator")
    llm = [flags for (label, *_), flags in web.items() if label == SiteClass.LLM]
    llm += [
        flags
        for (label, source, _), flags in dev.items()
        if (label, source) == (SiteClass.LLM, "alpaca_eval") and len(flags) >= 20
    ]
    shares = [np.mean(flags) for flags in llm]
    mean, rho = share_and_correlation(llm)
    print(
        f"lite-ngram, {len(llm)} LLM groups: {mean:.2f}, {min(shares):.2f} to {max(shares):.2f}, correlation {rho:.2f}"
    )


def flags_by(path: Path, *fields: str) -> dict[tuple[str, ...], list[bool]]:
    """Label and fields of texts -> their flags."""
    rows, flags = list(json_lines(path)), dict[tuple[str, ...], list[bool]]()
    for row, scored in zip(rows, LiteNgram.load().score([row["text"] for row in rows]), strict=True):
        if scored.flag is not None:
            key = (row["label"], *(row[field] for field in fields))
            flags.setdefault(key, []).append(scored.flag)
    return flags


def share_and_correlation(groups: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Share flagged of all texts, and the correlation of two texts of a group (Donner, Int. Stat. Rev. 54, 1986)."""
    sizes, hits = (np.array([float(of(group)) for group in groups]) for of in (len, sum))
    total, shares = sizes.sum(), hits / sizes
    mean = hits.sum() / total
    between = (sizes * (shares - mean) ** 2).sum() / (len(groups) - 1)
    within = (hits * (1 - shares)).sum() / (total - len(groups))
    size = (total - (sizes**2).sum() / total) / (len(groups) - 1)
    return float(mean), float((between - within) / (between + (size - 1) * within))


def mixed(sites: Sequence[Site], runs: int) -> None:
    """How often a site is taken for mixed, by the part of its pages that come from an LLM site."""
    kinds = [[np.array(site.scores) for site in sites if site.llm is llm] for llm in (False, True)]
    rng = np.random.default_rng(4)
    print("\nmarked as mixed")
    for pages in (8, 12, 20, 40):
        cells = []
        for part in (0.0, 0.35, 0.5, 0.65, 1.0):
            sizes, marked = (pages - round(pages * part), round(pages * part)), 0
            for _ in range(runs):
                taken = [
                    rng.choice(of[int(rng.integers(len(of)))], size) for of, size in zip(kinds, sizes, strict=True)
                ]
                marked += is_mixed(pages_of(np.concatenate(taken).tolist()))
            cells.append(f"{part:.0%} LLM: {marked / runs:.1%}")
        print(f"{pages} pages, " + ", ".join(cells))


if __name__ == "__main__":
    main()
