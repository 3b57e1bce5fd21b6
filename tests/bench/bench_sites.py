"""Site verdicts on real page scores: the methods against votes and each other, and error rates by simulation.

Run by `python -m tests.bench.bench_sites [sites a setting, default 10000]`. No times are measured. "Resampled" means
that a simulated site takes its pages from one real site, with replacement: pages of a site stay as similar as they are,
and a site keeps its own share of flagged pages.
"""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lab.sites.training import LabelledSite, train_sites
from scoring.interface import PageScore, SiteMethod
from scoring.lite_ngram.detector import LiteNgram
from scoring.sites.bimodal import is_mixed
from scoring.sites.deciles import PAGES, DecileTest, load_deciles
from scoring.sites.sprt import LITE_NGRAM_PARAMS, LOW_FPR_PARAMS, SiteTest, SprtParams
from stream.schema.vocabulary import SiteClass
from tests.bench.timing import argument, json_lines
from tests.support.paths import data_root

ACCURACY, LOW_FPR = 0.9015310749276843, 0.8536432310785527  # thresholds published by Binoculars' authors
DETECTOR = "binoculars/falcon-7b+falcon-7b-instruct"
BUDGET = 20  # usable scores after which crawling stops
SHUFFLES = 100  # orders of a site's pages
ARTICLE_WORDS = 150

# Share of a site's pages that lite-ngram flags, and correlation of its pages, for human and for LLM sites. "stated" is
# worse than the measurement, for both; on "worst" alpha and beta are not met.
LITE_WORLDS = (
    ("stated", (0.07, 0.10), (0.80, 0.10)),
    ("measured", (0.035, 0.13), (0.82, 0.06)),
    ("worst", (0.206, 0.10), (0.79, 0.25)),
)

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


def main() -> None:
    path = data_root() / "data" / "scores" / "page_scores.csv"
    if not path.is_file():
        print(f"no page scores at {path}: nothing to show")
        return
    runs = argument(1, 10_000)
    articles, everything = read_sites(path, ARTICLE_WORDS), read_sites(path, 0)
    on_real_sites(articles, f"pages of {ARTICLE_WORDS} words and more")
    on_real_sites(everything, "all pages")
    left_out(articles)
    chosen_p0(articles, 2 * runs)
    simulated(articles, runs)
    above_p0(articles)
    lite_ngram(runs, data_root() / "data")
    mixed(articles, min(runs, 4000))


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


class Vote:
    """The majority of all pages' flags, with which the methods are compared."""

    def __init__(self, share: float = 0.5) -> None:
        self._share = share

    def verdict(self, pages: Sequence[PageScore]) -> tuple[str, int]:
        return (
            SiteClass.LLM if sum(bool(page.flag) for page in pages) > self._share * len(pages) else SiteClass.HUMAN
        ), len(pages)


def on_real_sites(sites: Sequence[Site], title: str) -> None:
    """Each site's pages in many orders, at most BUDGET of them, none twice."""
    llm = sum(site.llm for site in sites)
    print(f"\n{len(sites) - llm} human and {llm} LLM sites, {title}; {SHUFFLES} orders, at most {BUDGET} pages a site")
    print(f"  {'method':34s} {'human sites':>28s} {'LLM sites':>28s} {'pages':>12s}")
    print(f"  {'':34s} {'right  wrong  undecided':>28s} {'right  wrong  undecided':>28s} {'mean   p95':>12s}")
    rows: list[tuple[str, float, int, Callable[[Sequence[PageScore]], tuple[str, int]]]] = [
        ("sprt", ACCURACY, BUDGET, of_method(SiteTest(SprtParams()))),
        ("sprt, p0 = .10 of the study", ACCURACY, BUDGET, of_method(SiteTest(SprtParams(p0=0.10, min_articles=4)))),
        ("sprt, low-FPR threshold", LOW_FPR, BUDGET, of_method(SiteTest(LOW_FPR_PARAMS))),
        (f"deciles, {PAGES} pages (in sample)", ACCURACY, PAGES, of_method(DecileTest(load_deciles(DETECTOR)))),
        ("majority of 20, accuracy threshold", ACCURACY, BUDGET, Vote().verdict),
        ("majority of 20, low-FPR threshold", LOW_FPR, BUDGET, Vote().verdict),
        ("majority of 5, accuracy threshold", ACCURACY, 5, Vote().verdict),
    ]
    for name, threshold, budget, judge in rows:
        rng, kinds = random.Random(1), {True: Found(Counter(), []), False: Found(Counter(), [])}
        for site in sites:
            for _ in range(SHUFFLES):
                chosen = rng.sample(site.scores, min(budget, len(site.scores)))
                verdict, used = judge(pages_of(chosen, threshold))
                kinds[site.llm].verdicts[verdict] += 1
                kinds[site.llm].pages.append(used)
        print_row(name, kinds[False], kinds[True])


def of_method(method: SiteMethod) -> Callable[[Sequence[PageScore]], tuple[str, int]]:
    def judge(pages: Sequence[PageScore]) -> tuple[str, int]:
        found = method.decide(pages)
        return found.verdict, found.pages_used

    return judge


def print_row(name: str, human: Found, llm: Found) -> None:
    cells = []
    for found, right, wrong in ((human, SiteClass.HUMAN, SiteClass.LLM), (llm, SiteClass.LLM, SiteClass.HUMAN)):
        rest = 1 - found.share(right) - found.share(wrong)
        cells.append(f"{found.share(right):7.2%} {found.share(wrong):7.3%} {max(rest, 0.0):7.2%}".rjust(28))
    pages = human.pages + llm.pages
    print(f"  {name:34s} {cells[0]} {cells[1]} {np.mean(pages):6.1f} {np.percentile(pages, 95):5.0f}")


def left_out(sites: Sequence[Site]) -> None:
    """Trained numbers on sites that were left out of the training."""
    print("\nleave one site out: sites judged by numbers learned without them")
    trained = train_sites([LabelledSite(*site) for site in sites], DETECTOR)
    errors = trained.deciles.left_out
    print(
        f"  deciles, 15 pages: {errors.human_wrong} of {errors.human_sites} human and {errors.llm_wrong} of"
        f" {errors.llm_sites} LLM sites wrong (by most of 20 draws)"
    )
    print(
        f"  deciles, of the draws: {trained.human_draws_wrong:.2%} of human and {trained.llm_draws_wrong:.2%} of LLM"
        " sites wrong"
    )


def false_alarms(flags: NDArray[np.bool_], params: SprtParams) -> NDArray[np.bool_]:
    """Rows of page flags [sites, pages] that end as llm, corrections included, by `sprt` on all sites at once."""
    test = SiteTest(params)
    sums = np.where(flags, test.steps.flagged, test.steps.clear).cumsum(axis=1)
    needed = max(params.min_pages, params.min_articles)
    places = np.arange(1, flags.shape[1] + 1)
    up, down = (np.where(crossed, places, 0) for crossed in (sums >= test.bounds.upper, sums <= test.bounds.lower))
    last_up, last_down = (np.where(crossed >= needed, crossed, 0).max(axis=1) for crossed in (up, down))
    return np.asarray(last_up > last_down)


def alarm_shares(sites: Sequence[Site], p0: float, budget: int, runs: int, seed: int = 5) -> Floats:
    """Share of runs in which a human site is called llm, for each of `sites`; pages are drawn with replacement."""
    params = msgspec.structs.replace(SprtParams(), p0=p0)
    rng = np.random.default_rng(seed)
    shares = []
    for site in sites:
        flagged = np.array(site.scores) < ACCURACY
        shares.append(float(false_alarms(rng.choice(flagged, (runs, budget)), params).mean()))
    return np.array(shares)


P0_CHOICES = (0.10, 0.15, 0.20, 0.25)


def chosen_p0(sites: Sequence[Site], runs: int) -> None:
    """p0 chosen on all human sites but one, and tested on that one.

    The choice is the least of P0_CHOICES with at most alpha of the sites called llm, at up to BUDGET pages.
    """
    human = [site for site in sites if not site.llm]
    print(f"\np0 by the rule, each human site left out of the choice; {runs} runs a site and p0")
    print(f"  human sites called llm: {'20 pages':>10s} {'40 pages':>10s}")
    shares = {budget: np.array([alarm_shares(human, p0, budget, runs) for p0 in P0_CHOICES]) for budget in (20, 40)}
    for place, p0 in enumerate(P0_CHOICES):
        print(f"  p0 = {p0:.2f}, all sites   {shares[20][place].mean():10.3%} {shares[40][place].mean():10.3%}")
    wrong: dict[int, list[float]] = {20: [], 40: []}
    choices: dict[float, list[str]] = {}
    for left, site in enumerate(human):
        rest = np.delete(shares[BUDGET], left, axis=1).mean(axis=1)
        place = next((place for place, share in enumerate(rest) if share <= SprtParams().alpha), len(P0_CHOICES) - 1)
        choices.setdefault(P0_CHOICES[place], []).append(site.name)
        for budget, found in wrong.items():
            found.append(float(shares[budget][place, left]))
    print(f"  chosen without the site {np.mean(wrong[20]):10.3%} {np.mean(wrong[40]):10.3%}")
    for p0, names in sorted(choices.items()):
        without = f": without {', '.join(names)}" if len(names) < 4 else ""
        print(f"    p0 = {p0:.2f} is chosen {len(names)} times{without}")


def simulated(sites: Sequence[Site], runs: int) -> None:
    """Error rates against alpha and beta, with and without corrections by later pages."""
    print(f"\n{runs} human and {runs} LLM sites a setting, pages resampled inside sites; alpha .1%, beta 2%")
    print("  'frozen': the first decision stands; 'open': all pages up to the budget may correct it")
    settings: list[tuple[str, Callable[[int | None], SiteMethod], float]] = [
        *(
            (f"sprt p0 = {p0:.2f}", sprt_maker(msgspec.structs.replace(SprtParams(), p0=p0)), ACCURACY)
            for p0 in (0.10, 0.15, 0.20)
        ),
        ("sprt low-FPR", sprt_maker(LOW_FPR_PARAMS), LOW_FPR),
    ]
    for budget in (20, 40):
        for replace in (True, False):
            drawn = "with replacement" if replace else "without replacement"
            print(f"  up to {budget} pages, drawn {drawn}")
            for name, make, threshold in settings:
                for close, state in ((0, "frozen"), (None, "open")):
                    found = [
                        run_sites(make(close), resampled(sites, kind, budget, threshold, replace), runs)
                        for kind in (False, True)
                    ]
                    print_errors(f"{name}, {state}", *found)


def sprt_maker(params: SprtParams) -> Callable[[int | None], SiteMethod]:
    return lambda close: SiteTest(params, close)


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


def run_sites(method: SiteMethod, draws: Iterator[Draw], runs: int, seed: int = 3) -> Found:
    rng, found = np.random.default_rng(seed), Found(Counter(), [])
    for _, draw in zip(range(runs), draws, strict=False):
        verdict = method.decide(draw(rng))
        found.verdicts[verdict.verdict] += 1
        found.pages.append(verdict.before_pages or verdict.pages_used)
    return found


def print_errors(name: str, human: Found, llm: Found) -> None:
    """Error rates, and whether they are within alpha and beta."""
    alpha, beta = human.share(SiteClass.LLM), llm.share(SiteClass.HUMAN)
    within = "within" if alpha <= 0.001 and beta <= 0.02 else "ABOVE"
    pages = human.pages + llm.pages
    print(
        f"    {name:22s} human called llm {alpha:7.3%}, LLM called human {beta:7.3%} {within:6s}"
        f" undecided {human.share('undecided'):6.2%} {llm.share('undecided'):6.2%}"
        f" pages {np.mean(pages):5.1f} p95 {np.percentile(pages, 95):3.0f}"
    )


def above_p0(sites: Sequence[Site]) -> None:
    """Human sites flagged in more than p0 of their pages, for which the bound on alpha does not hold."""
    p0, p1 = SprtParams().p0, SprtParams().p1
    print(f"\nsites beyond what the test assumes (human: more than p0 = {p0} flagged; LLM: fewer than p1 = {p1})")
    for site in sorted(sites, key=lambda site: site.name):
        share = float(np.mean(np.array(site.scores) < ACCURACY))
        if (share < p1) if site.llm else (share > p0):
            found = run_sites(SiteTest(SprtParams()), resampled([site], site.llm, BUDGET, ACCURACY, True), 2000)
            wrong = found.share(SiteClass.HUMAN if site.llm else SiteClass.LLM)
            kind = "LLM" if site.llm else "human"
            print(
                f"  {kind:5s} {site.name:40s} {share:.2f} flagged of {len(site.scores)}: wrong {wrong:.2%},"
                f" undecided {found.share('undecided'):.2%}"
            )


def lite_ngram(runs: int, data: Path) -> None:
    """The built-in detector's test on correlated flags: each site's share is drawn from a beta distribution.

    There are ten times as many sites as elsewhere, because its errors are compared with an alpha of one in a thousand.
    """
    print("\nlite-ngram: mean share of pages flagged, correlation of the pages of a group, and the groups' shares")
    if (data / "sampleweb/pages.jsonl.zst").is_file() and (data / "texts/dev.jsonl.zst").is_file():
        for name, groups in flag_groups(data).items():
            mean, rho = share_and_correlation(groups)
            shares = sorted(sum(group) / len(group) for group in groups)
            print(
                f"  {name:34s} {len(groups):3d} groups: {mean:.3f}, rho {rho:.3f}; {shares[0]:.2f} to {shares[-1]:.2f}"
            )
    numbers = json.loads(resources.files("scoring.data").joinpath("lite-ngram.json").read_bytes())["evaluation"]
    sources = [row["flagged"] for row in numbers["sources"]]
    mean = sum(sources) / len(sources)
    rho = float(np.var(sources, ddof=1)) / (mean * (1 - mean))
    left_out = "human sources, each left out"
    print(f"  {left_out:34s} {len(sources):3d} groups: {mean:.3f}, rho {rho:.3f}; 0.00 to {max(sources):.2f}")
    study = msgspec.structs.replace(LITE_NGRAM_PARAMS, p0=0.30, p1=0.80)
    for params in (study, LITE_NGRAM_PARAMS):
        print(f"  p0 = {params.p0:.2f}, p1 = {params.p1:.2f}: {10 * runs} sites a setting, beta-binomial flags")
        for name, human, llm in LITE_WORLDS:
            for budget in (20, 40):
                for close, state in ((0, "frozen"), (None, "open")):
                    test = SiteTest(params, close)
                    found = [run_sites(test, beta_binomial(*kind, budget), 10 * runs) for kind in (human, llm)]
                    print_errors(f"{name}, {budget}, {state}", *found)


def flag_groups(data: Path) -> dict[str, list[list[bool]]]:
    """lite-ngram's flags in groups whose texts have one author, as a site's texts; only texts with a flag.

    The groups are the sites of the test web, and the dev set's LLM texts by source and generator, in groups of 20 and
    more; of these, the chat assistants' texts answer prompts in their own words.
    """
    detector = LiteNgram.load()
    web = flags_by(detector, data / "sampleweb/pages.jsonl.zst", "site")
    dev = {
        key: flags
        for key, flags in flags_by(detector, data / "texts/dev.jsonl.zst", "src").items()
        if key[0] == SiteClass.LLM
    }
    made = [flags for flags in dev.values() if len(flags) >= 20]
    chat = [flags for (_, source, _), flags in dev.items() if source == "alpaca_eval" and len(flags) >= 20]
    sites = {
        kind: [flags for (label, _, _), flags in web.items() if label == kind]
        for kind in (SiteClass.HUMAN, SiteClass.LLM)
    }
    return {
        "sampleweb, human sites": sites[SiteClass.HUMAN],
        "sampleweb, LLM sites": sites[SiteClass.LLM],
        "dev set, generators by source": made,
        "dev set, chat assistants": chat,
        "LLM sites and chat assistants": sites[SiteClass.LLM] + chat,
    }


def flags_by(detector: LiteNgram, path: Path, field: str) -> dict[tuple[str, str, str], list[bool]]:
    rows = list(json_lines(path))
    flags: dict[tuple[str, str, str], list[bool]] = {}
    for row, scored in zip(rows, detector.score([row["text"] for row in rows]), strict=True):
        if scored.flag is not None:
            key = (row["label"], row[field], "" if field == "site" else row["generator"])
            flags.setdefault(key, []).append(scored.flag)
    return flags


def share_and_correlation(groups: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Mean share flagged of all texts, and the correlation of two texts of a group: 0 where it is below.

    The estimator by analysis of variance for unequal groups (Donner, Int. Stat. Rev. 54, 1986): of k groups of n_i
    texts, N in all, with mean squares B between and W within and n0 = (N - sum n_i^2 / N) / (k - 1),
    (B - W) / (B + (n0 - 1) W).
    """
    sizes, hits = (np.array([float(of(group)) for group in groups]) for of in (len, sum))
    total, count, shares = float(sizes.sum()), len(groups), hits / sizes
    mean = float(hits.sum()) / total
    between = float((sizes * (shares - mean) ** 2).sum()) / (count - 1)
    within = float((hits * (1 - shares)).sum()) / (total - count)
    size = (total - float((sizes**2).sum()) / total) / (count - 1)
    return mean, max((between - within) / max(between + (size - 1) * within, 1e-9), 0.0)


def beta_binomial(mean: float, rho: float, budget: int) -> Iterator[Draw]:
    """Flags of sites whose share varies by Beta(mean, 1 - mean) scaled by 1/rho - 1: pages correlate by rho."""

    def draw(rng: np.random.Generator) -> list[PageScore]:
        scale = 1 / rho - 1 if rho else 0.0
        share = rng.beta(mean * scale, (1 - mean) * scale) if rho else mean
        return [PageScore(flag, None, place) for place, flag in enumerate((rng.random(budget) < share).tolist(), 1)]

    while True:
        yield draw


def mixed(sites: Sequence[Site], runs: int) -> None:
    """How often a real site is taken for mixed, and how often a mix of a human and an LLM site is found."""
    print("\nmixed: share marked")
    marked = [site.name for site in sites if is_mixed(pages_of(site.scores))]
    print(f"  real sites, all their articles: {len(marked)} of {len(sites)}: {', '.join(marked) or 'none'}")
    human = [np.array(site.scores) for site in sites if not site.llm]
    llm = [np.array(site.scores) for site in sites if site.llm]
    rng = np.random.default_rng(4)
    for pages in (8, 12, 20, 40):
        cells = []
        for name, take in (
            ("human", made_of(human, llm, pages, 0.0, rng)),
            ("LLM", made_of(human, llm, pages, 1.0, rng)),
            ("one bell on the threshold", bell(pages, rng)),
            *((f"{part:.0%} LLM", made_of(human, llm, pages, part, rng)) for part in (0.35, 0.5, 0.65)),
        ):
            share = np.mean([is_mixed(pages_of(take().tolist())) for _ in range(runs)])
            cells.append(f"{name} {share:.1%}")
        print(f"  {pages:2d} pages, resampled: {', '.join(cells)}")


def made_of(
    human: Sequence[Floats], llm: Sequence[Floats], pages: int, part: float, rng: np.random.Generator
) -> Callable[[], Floats]:
    """Pages of a human site and of an LLM site together."""
    count = round(pages * part)

    def take() -> Floats:
        one, other = human[int(rng.integers(len(human)))], llm[int(rng.integers(len(llm)))]
        return np.concatenate([rng.choice(other, count), rng.choice(one, pages - count)])

    return take


def bell(pages: int, rng: np.random.Generator) -> Callable[[], Floats]:
    """One group of pages with scores at the threshold: the hardest case of a site that is not mixed."""
    return lambda: rng.normal(ACCURACY, 0.045, pages)


if __name__ == "__main__":
    main()
