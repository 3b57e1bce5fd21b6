"""`farmwatch train-extractor`: labelled pages → a model of the extractor `blocks`, and its texts on unseen domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common, Jobs
from farmwatch.commands.rulesets.labelled import Labels
from farmwatch.labels.block_training import (
    FOLDS,
    GoldPage,
    card_of,
    encode_model,
    gold_page,
    learn,
    out_of_fold,
    text_of,
)
from farmwatch.labels.labelled_pages import LabelledPages
from farmwatch.terminal.messages import counting, put, put_table
from scoring.rates.paired_bootstrap import paired_change
from scoring.statistics.rounding import SCORE_DIGITS, each_float, significant
from scoring.thresholds.published import write_whole
from stream.text.user_errors import UsageError

_SEED = 0


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """Pages and the F1 of their texts, by Trafilatura as MEASURE calls it and by `blocks`; the interval is paired."""

    pages: int
    trafilatura: float
    blocks: float
    difference: float
    low: float
    high: float
    asked: float  # share of the pages of which `blocks` asks Trafilatura


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of a model, as the file of --report has it."""

    digest: str
    card: str
    sources: dict[str, _Row]
    kinds: dict[str, _Row]
    left_out: dict[str, _Row]


class _Tested(NamedTuple):
    """A page, and the numerator and denominator of F1 of both texts."""

    page: GoldPage
    trafilatura: tuple[float, float]
    blocks: tuple[float, float]
    asked: bool


def train_extractor(
    labels: Labels,
    /,
    *,
    out: Annotated[Path, Parameter(help="File for the model, for `measure.extractor_model`.")],
    test_only: Annotated[
        list[str] | None,
        Parameter(help="SOURCE from which nothing is learned, for its licence; may be repeated.", negative=""),
    ] = None,
    licence: Annotated[
        list[str] | None,
        Parameter(help="SOURCE=LICENCE of its labels, for the card of the model; may be repeated.", negative=""),
    ] = None,
    leave_out: Annotated[
        bool, Parameter(help="Also test each source by a model that learned nothing from it.", negative="")
    ] = False,
    report: Annotated[Path | None, Parameter(help="File for all printed numbers, as JSON.")] = None,
    force: Annotated[bool, Parameter(help="Write over files that are there.", negative="")] = False,
    jobs: Jobs = 0,
    common: Common = DEFAULTS,
) -> int:
    """Train the extractor `blocks` on labelled pages, and print the quality of its texts on other domains.

    LABELS is a folder as for `rulesets evaluate`, with articleBody, or with and without: a page of neither is skipped.
    For the tables the registrable domains are split into 5 parts, and the pages of each are extracted by a model that
    was trained on the others. F1 counts the words of a text, or the segments of a source without main texts.
    Trafilatura is called as for `measure.extractor = "trafilatura"`. Damaged entries are reported and skipped: exit
    code 1. Takes an hour for thousands of pages.
    """
    for file in filter(None, (out, report)):
        if file.exists() and not force:
            raise UsageError(f"{file}: there already; take another file, or --force to write over")
        if not file.parent.is_dir():
            raise UsageError(f"{file}: there is no folder {file.parent}")
    if not labels.is_dir():
        raise UsageError(f"{labels}: main texts are in a folder of labelled pages, and this is none")
    licences = dict(_licence(given) for given in licence or [])
    only = set(test_only or [])
    folder = LabelledPages(labels)
    if unknown := sorted((only | set(licences)) - set(folder.sources)):
        raise UsageError(f"{labels}: no source {unknown[0]!r}; there are {', '.join(folder.sources)}")
    folder.narrow(lambda label: label.gold is not None or bool(label.belongs))
    settings = msgspec.structs.replace(common.load().config.measure, workers=jobs, extractor="trafilatura")
    with counting(len(folder.labels), "pages by Trafilatura") as bar:
        texts = {page.label.id: page.features.text for page in folder.measured(settings, bar)}
    with counting(len(folder.labels), "pages") as bar:
        pages = [gold_page(label, html) for label, html in folder.bodies(bar) if label.id in texts]
    taught = [page for page in pages if page.label.source not in only]
    sources = sorted({page.label.source for page in taught}) if leave_out else []
    with counting(FOLDS + len(sources) + 1, "fits") as bar:
        tested = _tested(pages, out_of_fold(pages, only, bar), texts)
        left_out = {}
        for source in sources:
            model = learn([page for page in taught if page.label.source != source])
            without = [page for page in pages if page.label.source == source]
            left_out[source] = _row(_tested(without, [text_of(model, page) for page in without], texts))
            bar(1)
        model = learn(taught, card_of(taught, licences))
        bar(1)
    found = _Report(
        digest=model.digest,
        card=model.card,
        sources=_rows(tested, lambda one: one.page.label.source),
        kinds=_rows(tested, lambda one: one.page.label.page_type),
        left_out=left_out,
    )
    write_whole(out, encode_model(model), force=force)
    if report is not None:
        numbers = each_float(msgspec.to_builtins(found), lambda number: significant(number, SCORE_DIGITS))
        write_whole(report, msgspec.json.format(msgspec.json.encode(numbers), indent=2) + b"\n", force=force)
    _put("source", found.sources, "F1 of main texts by source, out of fold (95% interval over domains)")
    _put("kind", found.kinds, "F1 by page kind")
    _put("source left out", found.left_out, "F1 of sources from which nothing was learned")
    put(f"{out}: model {model.digest}; learned from {model.card}")
    return folder.exit


def _licence(given: str) -> tuple[str, str]:
    source, _, text = given.partition("=")
    if not source or not text:
        raise UsageError(f"--licence {given!r}: give SOURCE=LICENCE")
    return source, text


def _tested(pages: Sequence[GoldPage], found: Sequence[str | None], texts: dict[str, str]) -> list[_Tested]:
    """Pages with their texts by `blocks`; None = that of Trafilatura."""
    tested = []
    for page, text in zip(pages, found, strict=True):
        other = texts[page.label.id]
        whole = page.truth.hits(other if text is None else text)
        tested.append(_Tested(page, page.truth.hits(other), whole, text is None))
    return tested


def _rows(tested: Sequence[_Tested], group: Callable[[_Tested], str]) -> dict[str, _Row]:
    names = sorted({group(one) for one in tested} - {""})
    return {name: _row([one for one in tested if group(one) == name]) for name in names}


def _row(tested: Sequence[_Tested]) -> _Row:
    domains, of = np.unique([one.page.domain for one in tested], return_inverse=True)
    sums = np.zeros((len(domains), 4))
    np.add.at(sums, of, np.array([(*one.trafilatura, *one.blocks) for one in tested]))
    change = paired_change(sums, np.random.default_rng(_SEED))
    assert change is not None  # every page has a word or a segment to find
    return _Row(
        pages=len(tested),
        trafilatura=change.a,
        blocks=change.b,
        difference=change.difference,
        low=change.low,
        high=change.high,
        asked=sum(one.asked for one in tested) / len(tested),
    )


def _put(what: str, rows: dict[str, _Row], title: str) -> None:
    if not rows:
        return
    put_table(
        (what, "pages", "trafilatura", "blocks", "difference", "asks Trafilatura"),
        [
            (
                name,
                row.pages,
                f"{row.trafilatura:.3f}",
                f"{row.blocks:.3f}",
                f"{row.difference:+.3f} ({row.low:+.3f} to {row.high:+.3f})",
                f"{row.asked:.1%}",
            )
            for name, row in rows.items()
        ],
        title,
    )
    put("")
