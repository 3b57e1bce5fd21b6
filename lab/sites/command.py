"""`farmwatch train-sites`: page scores of labelled sites → the numbers of the site method `deciles`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.labels.label_lines import LabelFile
from farmwatch.terminal.messages import put, put_json
from lab.extras import require_sklearn
from lab.sites.training import LabelledSite, TrainingResult
from lab.sites.training import train_sites as learned
from scoring.errors import PooledDetectors
from stream.text.user_errors import UsageError
from stream.text.whole_files import write_whole


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
    result = learned([LabelledSite(site, llm, numbers) for (site, llm), numbers in sites.items()], of, seed)
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
