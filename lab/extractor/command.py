"""`farmwatch lab train-extractor`: labelled pages → a model of `blocks`, and its texts on other domains."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common, Jobs
from farmwatch.labels.labelled_pages import Label, LabelledPages
from farmwatch.terminal.messages import counting, put, put_table, put_wrapped
from lab.extractor.errors import (
    FOLDS,
    Errors,
    Text,
    errors_by,
    texts_of,
    texts_of_other_domains,
    texts_out_of_fold,
    write_model,
)
from lab.extractor.gold import keep_main_texts
from lab.extractor.training import card_of, learn, main_text_pages
from scoring.errors import TooFewLabels
from scoring.statistics.rounding import SCORE_DIGITS, each_float, significant
from stream.text.user_errors import UsageError
from stream.text.wording import counted

_TIME_LIMIT_S = 120.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of a model, as the file beside it has it."""

    model: str
    card: str
    sources: dict[str, Errors]
    kinds: dict[str, Errors]
    left_out: dict[str, Errors]


def train_extractor(
    labels: Annotated[Path, Parameter(help="Folder with <source>/gold.jsonl and <source>/html/<id>.html.zst.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for the model, DIGEST.json, and its report, DIGEST.report.json.")],
    source: Annotated[
        list[str] | None, Parameter(help="Read only this source of the folder; may be repeated.", negative="")
    ] = None,
    jobs: Jobs = 0,
    common: Common = DEFAULTS,
) -> int:
    """Train the extractor `blocks` on labelled pages, and print the quality of its texts on other domains.

    LABELS is a folder as for `rulesets evaluate`; a line needs the field `articleBody`, or the fields `with` and
    `without`, or it is skipped. The first line of <source>/LICENSE, if there is one, is the licence in the model's
    card. For the tables the registrable domains are split into 5 parts, and the pages of each are extracted by a model
    that was trained on the others; of several sources, each is also extracted by a model of the domains that are not in
    it, if these are enough. F1 counts the words of a text, or the segments of a source without main texts. Both
    extractors run as in MEASURE. The same pages give the same model on one machine. Damaged entries are reported and
    skipped: exit code 1.
    """
    if not labels.is_dir():
        raise UsageError(f"{labels}: no folder; labelled pages are in one")
    folder = LabelledPages(labels, source or ())
    read = len(folder.labels)
    keep_main_texts(folder)
    if not folder.labels:
        raise UsageError(f"{labels}: of {counted(read, 'label')} none has `articleBody`, or `with` and `without`")
    out.mkdir(parents=True, exist_ok=True)
    measure = common.load().config.measure
    settings = msgspec.structs.replace(  # on a busy machine, no page should reach the time limit
        measure,
        workers=jobs,
        extractor="trafilatura",
        extractor_model="",
        time_limit_s=max(measure.time_limit_s, _TIME_LIMIT_S),
    )
    with counting(len(folder.labels), "pages by Trafilatura") as bar:
        theirs = texts_of(folder, settings, bar)
    folder.narrow(theirs.__contains__)  # a damaged file is reported once
    with counting(len(folder.labels), "pages read") as bar:
        pages = main_text_pages(folder, settings, bar)
    file = write_model(out, model := learn(pages, card_of(pages, folder)))
    put_wrapped(f"{file}: the model; trained on {model.card}")
    if unused := sum(page.blocks is None for page in pages):
        put_wrapped(
            f"not trained on: {counted(unused, 'page')}, refused by MEASURE, without labelled text, or too long"
        )
    put("")
    sources = sorted({page.label.source for page in pages})
    of_sources = [[page for page in pages if page.label.source == name] for name in sources if len(sources) > 1]
    of_others = dict[Label, Text]()
    with counting(FOLDS + len(of_sources), "models") as bar:
        ours = texts_out_of_fold(folder, pages, settings, bar)
        for tested in of_sources:
            with suppress(TooFewLabels):  # nearly all domains are in it
                of_others |= texts_of_other_domains(folder, pages, tested, settings)
            bar(1)
    report = Report(
        model=file.name,
        card=model.card,
        sources=errors_by(lambda label: label.source, pages, theirs, ours),
        kinds=errors_by(lambda label: label.page_type if label.gold else "", pages, theirs, ours),
        left_out=errors_by(lambda label: label.source, pages, theirs, of_others),
    )
    numbers = each_float(msgspec.to_builtins(report), lambda number: significant(number, SCORE_DIGITS))
    file.with_suffix(".report.json").write_bytes(msgspec.json.format(msgspec.json.encode(numbers), indent=2) + b"\n")
    _put("source", report.sources, "F1 of main texts by source, out of fold (95% interval over domains)")
    _put("kind", report.kinds, "F1 by page kind, out of fold")
    _put("source left out", report.left_out, "F1 of sources by models that learned nothing of their domains")
    return folder.exit


def _put(what: str, rows: Mapping[str, Errors], title: str) -> None:
    if rows:
        put_table(*table(what, rows), title)
        put("")


def table(what: str, rows: Mapping[str, Errors]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells."""
    cells = []
    for name, row in rows.items():
        interval = "too few domains" if row.low is None or row.high is None else f"{row.low:+.3f} to {row.high:+.3f}"
        f1 = [f"{row.trafilatura:.3f}", f"{row.blocks:.3f}", f"{row.difference:+.3f} ({interval})"]
        cells.append([name, str(row.pages), str(row.domains), *f1, f"{row.trafilatura_share:.1%}"])
    return [what, "pages", "domains", "trafilatura", "blocks", "difference", "by Trafilatura"], cells
