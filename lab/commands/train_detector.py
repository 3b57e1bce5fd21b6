"""The commands that train: `train-detector`, and `train-sites` for the site method `deciles`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.labels.label_lines import LabelFile
from farmwatch.terminal.messages import message, put, put_json
from scoring.errors import MissingExtra, PooledDetectors, TrainingRefused
from stream.text.user_errors import Exit, UsageError
from stream.text.whole_files import write_whole

if TYPE_CHECKING:
    from lab.sites.training import TrainingResult

_ARTICLE_WORDS = 150


def train_detector(
    train: Annotated[
        Path, Parameter(help="Texts to learn from: JSONL of {id, domain, generator, label, text, src, lic}.")
    ],
    /,
    *,
    dev: Annotated[Path, Parameter(help="Texts to calibrate and test on, of other groups than those learned from.")],
    out: Annotated[Path, Parameter(help="Folder for the weights and their numbers.")],
    unseen: Annotated[
        list[Path] | None, Parameter(help="Labelled texts to measure on only; `id` and `domain` may lack.", negative="")
    ] = None,
    human_pages: Annotated[
        list[Path] | None,
        Parameter(help="Web pages by people to measure on only: JSONL of {articleBody}.", negative=""),
    ] = None,
    seed: Annotated[int, Parameter(help="Of crops and caps.")] = 0,
    json: AsJson = False,
) -> int:
    """Learn the numbers of the built-in detector, and print every table of its errors.

    Exit code 1, and nothing is written, if it flags too many human pages of a web source that it has not seen.
    JSON: one object, as in the file beside the weights; the tables go to stderr.
    """
    _require_sklearn()
    from lab.detector.training import run_training

    try:
        say = message if json else put
        report = run_training(train, dev, out, unseen=unseen or (), pages=human_pages or (), seed=seed, say=say)
    except TrainingRefused as error:
        message(f"farmwatch: {error}")
        return Exit.PROBLEM
    if json:
        put_json(msgspec.to_builtins(report))
    return Exit.OK


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
    min_words: Annotated[int, Parameter(help="Pages with fewer words are left out.")] = _ARTICLE_WORDS,
    seed: Annotated[int, Parameter(help="Of the pages by which a site is tested.")] = 0,
    force: Annotated[bool, Parameter(help="Write over a file that is there.", negative="")] = False,
    json: AsJson = False,
) -> int:
    """Learn the numbers of the site method `deciles` from page scores, and print the errors on sites left out.

    Bad lines are reported and skipped: exit code 1. Scores of two detectors are refused: they are never pooled.
    JSON: one object with the numbers and all errors.
    """
    _require_sklearn()
    from lab.sites.training import LabelledSite
    from lab.sites.training import train_sites as train

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
    found = train([LabelledSite(site, llm, numbers) for (site, llm), numbers in sites.items()], of, seed)
    write_whole(out, msgspec.json.format(msgspec.json.encode(found.deciles), indent=2) + b"\n", force=force)
    if json:
        put_json(msgspec.to_builtins(found._asdict()))
    else:
        _print(found, out)
    return file.end()


def _print(found: TrainingResult, out: Path) -> None:
    numbers = found.deciles
    put(
        f"{numbers.human_sites} human and {numbers.llm_sites} llm sites, {numbers.pages} scores of {numbers.detector};"
        f" {found.too_small} sites have too few scores and are left out"
    )
    put("Each site judged by numbers learned without it, by 15 of its pages:")
    draws = f"{found.human_draws_wrong:.2%} and {found.llm_draws_wrong:.2%} of single draws"
    errors = numbers.left_out
    put(
        f"  {errors.human_wrong} of {errors.human_sites} human sites and {errors.llm_wrong} of {errors.llm_sites} llm"
        f" sites wrong ({draws}){': ' + ', '.join(found.wrong) if found.wrong else ''}"
    )
    put(f"Decile numbers: {out}; put it into tally.deciles.")


def _require_sklearn() -> None:
    """Fail before the input is read."""
    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtra("training needs scikit-learn", extra="train")
