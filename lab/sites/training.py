"""`farmwatch lab train-sites`: page scores of labelled sites → the numbers of the site method `deciles`.

The errors are measured by leaving one site out: each site is judged by numbers that were learned without it, at 15
pages, drawn with a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.labels.label_lines import LabelFile
from farmwatch.terminal.messages import put, put_json
from lab.extras import require_sklearn
from scoring.errors import BadTrainingData, PooledDetectors, TooFewLabels
from scoring.sites.deciles import PAGES, DecileNumbers, HeldOutErrors, deciles
from scoring.sites.family import family
from stream.text.user_errors import UsageError
from stream.text.whole_files import write_whole

C = 1.0  # of the support vector machine: the limit of one training site's effect on a weight
MIN_SITES = 5  # of each label
DRAWS = 20  # selections of PAGES pages with which a site is tested
_DIGITS = 9  # of the written numbers


class LabelledSite(NamedTuple):
    """Page scores of a site of known origin."""

    name: str
    llm: bool
    scores: list[float]


class TrainingResult(NamedTuple):
    """The learned numbers, and their errors on sites left out."""

    deciles: DecileNumbers
    wrong: list[str]  # sites that `deciles` judged wrongly, by most of the draws
    too_small: int  # unused sites with fewer than PAGES scores
    human_draws_wrong: float  # share of all the draws from human sites that `deciles` judged wrongly
    llm_draws_wrong: float


def train_sites(
    scores: Annotated[
        Path, Parameter(help="Page scores: CSV or JSON lines of {site, label, score[, detector, words]}; `-` is stdin.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="File for the decile numbers, for tally.deciles.")],
    detector: Annotated[str, Parameter(help="Identity whose scores they are, where the lines do not say.")] = "",
    score_column: Annotated[str, Parameter(help="CSV column with the score.")] = "score",
    label_column: Annotated[str, Parameter(help="CSV column with the label: human or llm, or 0 or 1.")] = "label",
    min_words: Annotated[int, Parameter(help="Pages with fewer words are left out.")] = 150,
    seed: Annotated[int, Parameter(help="Of the pages by which a site is tested.")] = 0,
    force: Annotated[bool, Parameter(help="Write over a file that is there.", negative="")] = False,
    json: AsJson = False,
) -> int:
    """Learn the numbers of the site method `deciles` from page scores, and print the errors on sites left out.

    Bad lines are reported and skipped: exit code 1. Scores of two detectors are refused: they are never pooled.
    JSON: one object with the numbers and all errors.
    """
    require_sklearn()
    if out.exists() and not force:
        raise UsageError(f"{out}: there already; take another --out, or --force to write over")
    file = LabelFile(scores, score_column, label_column)
    sites: dict[tuple[str, bool], list[float]] = {}
    of: str | None = None  # the identity for these scores; "" = named by neither lines nor command
    for line in file:
        if line.score is None or -1 < line.words < min_words:
            continue  # abstained, or not an article
        if not line.site:
            file.bad(line.place, "no site")
            continue
        whose = line.detector or detector
        if of is not None and whose != of:
            one, other = (name or "a detector that is not named" for name in (of, whose))
            raise PooledDetectors(f"{line.place}: scores of {one} and of {other} are not learned from together")
        of = whose
        sites.setdefault((line.site, line.llm), []).append(line.score)
    if not of:
        raise UsageError("no line says which detector scored it: name its identity by --detector")
    result = learn([LabelledSite(site, llm, numbers) for (site, llm), numbers in sites.items()], of, seed)
    write_whole(out, msgspec.json.format(msgspec.json.encode(result.deciles), indent=2) + b"\n", force=force)
    if json:
        put_json(msgspec.to_builtins(result._asdict()))
    else:
        _put(result, out)
    return file.end()


def _put(result: TrainingResult, out: Path) -> None:
    numbers = result.deciles
    put(
        f"{numbers.human_sites} human and {numbers.llm_sites} llm sites, {numbers.pages} scores of {numbers.detector};"
        f" {result.too_small} sites have too few scores and are left out"
    )
    put("Each site judged by numbers learned without it, by 15 of its pages:")
    draws = f"{result.human_draws_wrong:.2%} and {result.llm_draws_wrong:.2%} of single draws"
    errors = numbers.left_out
    put(
        f"  {errors.human_wrong} of {errors.human_sites} human sites and {errors.llm_wrong} of {errors.llm_sites} llm"
        f" sites wrong ({draws}){': ' + ', '.join(result.wrong) if result.wrong else ''}"
    )
    put(f"Decile numbers: {out}; put it into tally.deciles.")


def learn(sites: Sequence[LabelledSite], detector: str, seed: int = 0) -> TrainingResult:
    """Learn from labelled sites; the sites with fewer than 15 scores are left out.

    Raises BadTrainingData for fewer than 5 usable sites of a label, MissingExtra without scikit-learn.
    """
    used = [site for site in sites if len(site.scores) >= PAGES]
    humans, llms = sum(not site.llm for site in used), sum(site.llm for site in used)
    if min(humans, llms) < MIN_SITES:
        raise TooFewLabels(
            f"{humans} human and {llms} llm sites with at least {PAGES} scores; at least {MIN_SITES} of each are needed"
        )
    rng = random.Random(seed)  # noqa: S311  # reproducible, no secret
    wrong: list[LabelledSite] = []
    draws_wrong = {False: 0, True: 0}  # by whether the site is an LLM site
    for site in used:
        others = [other for other in used if other is not site]
        numbers = _fit_deciles(others, detector, HeldOutErrors(0, 0, 0, 0))
        draws = [rng.sample(site.scores, PAGES) for _ in range(DRAWS)]
        misjudged = sum((numbers.margin(draw) > 0) != site.llm for draw in draws)
        draws_wrong[site.llm] += misjudged
        if misjudged * 2 > DRAWS:
            wrong.append(site)
    llm_wrong = sum(site.llm for site in wrong)
    return TrainingResult(
        deciles=_fit_deciles(used, detector, HeldOutErrors(humans, len(wrong) - llm_wrong, llms, llm_wrong)),
        wrong=[site.name for site in wrong],
        too_small=len(sites) - len(used),
        human_draws_wrong=draws_wrong[False] / (DRAWS * humans),
        llm_draws_wrong=draws_wrong[True] / (DRAWS * llms),
    )


def _fit_deciles(sites: Sequence[LabelledSite], detector: str, left_out: HeldOutErrors) -> DecileNumbers:
    """A linear machine over standardised deciles, both labels weighing the same."""
    require_sklearn()
    from sklearn.svm import SVC

    rows = np.array([deciles(site.scores) for site in sites])
    centres, scales = rows.mean(axis=0), rows.std(axis=0)
    if not (np.isfinite(rows).all() and (scales > 0).all()):
        raise BadTrainingData("scores are not all finite, or are the same on every site")
    machine = SVC(kernel="linear", C=C, class_weight="balanced")
    machine.fit((rows - centres) / scales, [site.llm for site in sites])

    def rounded(values: Any) -> list[float]:
        return [round(float(value), _DIGITS) for value in values]

    return DecileNumbers(
        format="deciles-1",
        detector=family(detector),
        weights=rounded(machine.coef_[0]),
        centres=rounded(centres),
        scales=rounded(scales),
        offset=rounded(machine.intercept_)[0],
        human_sites=sum(not site.llm for site in sites),
        llm_sites=sum(site.llm for site in sites),
        pages=sum(len(site.scores) for site in sites),
        left_out=left_out,
    )
