"""`farmwatch lab train-articles`: labelled pages → an article model, and its errors on sites that it did not see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common, Jobs
from farmwatch.commands.runs.labelled import Labels, labelled
from farmwatch.labels.labelled_pages import LabelledPages
from farmwatch.terminal.messages import counting, put, put_table
from lab.articles.additive import FOLDS
from lab.articles.held_out import Estimate
from lab.articles.training import SHOWN_AT, TrainedReport, TrainingPages, encode_model, train
from scoring.statistics.shares import Share
from stream.text.user_errors import UsageError
from stream.text.whole_files import write_whole

_NO_TEXT = "no text"  # the guess for a page without a main text


def train_articles(
    labels: Labels,
    /,
    *,
    out: Annotated[Path, Parameter(help="File for the model, with the ending .json, for `model` of a ruleset.")],
    articles: Annotated[
        list[str] | None,
        Parameter(
            help="SOURCE=WEIGHT: pages of the folder's SOURCE without a page_type count as articles with this weight;"
            " may be repeated.",
            negative="",
        ),
    ] = None,
    force: Annotated[bool, Parameter(help="Write over a file that is there.", negative="")] = False,
    jobs: Jobs = 0,
    common: Common = DEFAULTS,
) -> int:
    """Train an article model on labelled pages, and print its errors on pages of domains that it did not see.

    LABELS are as for `rulesets evaluate`. Each page with a page_type teaches that kind; --articles adds pages of at
    least 150 words. For the errors the registrable domains are split into 8 parts, and the pages of each are judged
    by a model trained on the others. A page without a main text counts as dropped. Nothing is learned from URLs. The
    same pages give the same file.
    Damaged entries are reported and skipped: exit code 1. Exit code 1, and nothing is written, if the labels are too
    few.
    """
    if out.exists() and not force:
        raise UsageError(f"{out}: there already; take another file, or --force to write over")
    if not out.parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.parent}")
    if out.suffix != ".json":
        raise UsageError(f"--out {out}: a ruleset finds a model by a path that ends in .json")
    weights = _weights(articles or [])
    with labelled(labels, [], common, jobs) as (pages, measured):
        if isinstance(pages, LabelledPages):
            if unknown := sorted(set(weights) - set(pages.sources)):
                raise UsageError(f"{labels}: no source {unknown[0]!r}; there are {', '.join(pages.sources)}")
            pages.narrow(lambda label: bool(label.page_type) or label.source in weights)
        elif weights:
            raise UsageError(f"--articles is for a folder of labelled pages, and {labels} is a file")
        with counting(len(pages.labels), "pages") as bar:
            training = TrainingPages(measured(bar), weights)
    with counting(FOLDS + 1, "fits") as bar:
        model, trained = train(training, bar)
    write_whole(out, encode_model(model), force=force)
    _put_report(trained)
    put(f"{out}: model {model.digest}, {len(model.inputs)} inputs; learned from {model.card}")
    return pages.exit


def _weights(articles: Sequence[str]) -> dict[str, float]:
    """Source -> weight. Raises UsageError."""
    weights = {}
    for given in articles:
        source, _, text = given.rpartition("=")
        try:
            weights[source] = float(text)
        except ValueError:
            source = ""
        if not source or not math.isfinite(weights[source]) or weights[source] <= 0:
            raise UsageError(f"--articles {given!r}: give SOURCE=WEIGHT, with a weight above 0 such as 0.3")
    return weights


def _put_report(report: TrainedReport) -> None:
    errors = report.errors
    put(f"AUROC of the probability of an article, out of fold: {errors.auroc:.3f}")
    put("")
    put_table(
        ("threshold", "F1", "precision", "recall", "others kept"),
        [
            (f"{at.threshold:g}", *map(_interval, (at.f1, at.precision, at.recall, at.others_kept)))
            for at in errors.thresholds
        ],
        "By threshold (95% interval over domains)",
    )
    put("")
    _put_kept("kind", errors.kept)
    if report.sources:
        put("")
        _put_kept("article source", report.sources)
    put("")
    guesses = [kind for kind in (*errors.confusion, "") if any(kind in row for row in errors.confusion.values())]
    put_table(
        ("label", *(kind or _NO_TEXT for kind in guesses)),
        [(kind, *(row.get(guess, 0) for guess in guesses)) for kind, row in errors.confusion.items()],
        "Page kinds: labels in rows, guesses in columns",
    )
    put("")


def _put_kept(what: str, kept: dict[str, Share]) -> None:
    rows = [
        (name, share.total, share.count, _interval(Estimate(share.share, share.low, share.high)))
        for name, share in kept.items()
    ]
    put_table((what, "pages", "kept", "share"), rows, f"Kept by {what} at {SHOWN_AT:g} (95% interval over domains)")


def _interval(number: Estimate) -> Any:
    if number.value is None or number.low is None or number.high is None:
        return "-"
    return f"{number.value:.3f} ({number.low:.3f}-{number.high:.3f})"
