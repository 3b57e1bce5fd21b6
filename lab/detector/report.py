"""A training's numbers, its warning, and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lab.detector.evaluation import TOGETHER, DetectorEvaluation, PageCell, PageSetRow
from lab.detector.texts import FileReport
from scoring.lite_ngram.detector import MIN_WORDS
from scoring.statistics.rounding import each_float

_SHORT_LENGTHS = (150, 250, 400)
_DIGITS = 4
_SHARES = ("flagged", "flagged careful", "found", "found careful", "web flagged")  # in percent
_HEADINGS = {"auroc": "AUROC", "web": "gate"}

Table = Sequence[Mapping[str, Any]]  # rows of one set of columns


class TrainingReport(msgspec.Struct, frozen=True):
    """Everything measured in a training; stored as JSON with the weights."""

    digest: str  # SHA-256 of the weights file
    warning: str  # shown with every score of these weights
    flags: float  # of the human pages of a web collection, that of which the most are flagged
    threshold: float
    seed: int
    files: dict[str, FileReport]
    licences: dict[str, int]  # licence as stated by the texts' sources -> texts used
    registers: dict[str, int]  # "label/domain" -> texts used
    evaluation: DetectorEvaluation

    def rounded(self) -> TrainingReport:
        """This report with the numbers that its JSON holds."""
        return msgspec.json.decode(self.to_json(), type=TrainingReport)

    def to_json(self) -> bytes:
        """Readable JSON, numbers to four places, the same bytes for the same report."""
        rounded = each_float(msgspec.to_builtins(self), lambda number: round(number, _DIGITS))
        return msgspec.json.format(msgspec.json.encode(rounded), indent=1) + b"\n"


def warning(evaluation: DetectorEvaluation) -> str:
    """The warning shown with every score of these weights."""
    other = [row.flagged for row in evaluation.sources if not row.web]
    unseen = [row.chat_llm for row in evaluation.domains if row.chat_llm is not None]
    shares = [f"{row.found:.0%} at {row.words}" for row in evaluation.lengths if row.words in _SHORT_LENGTHS]
    return (
        "style classifier, not Binoculars; indicative only. Measured on texts it was not trained on: flags "
        f"{_web(evaluation)} and {_span(other)} of other unseen human sources; "
        f"finds {', '.join(shares)} words of LLM texts; AUROC {evaluation.in_domain:.2f} in domain, "
        f"{evaluation.generators_mean:.2f} for an unseen generator, down to "
        f"{min(unseen, default=0.0):.2f} for an unseen human register. Base-model "
        "continuations are not detected."
    )


def _web(evaluation: DetectorEvaluation) -> str:
    """The flagged share of human web pages, each of a collection left out of training, and of recent pages."""
    together = _judged([row for row in evaluation.pages if row.name == TOGETHER])
    recent = _judged([row for row in evaluation.pages if row.recent])
    said = (
        f"{_span(together)} of the human pages of other web collections, up to {most_flagged(evaluation):.1%} of one,"
    )
    return f"{said} {_span(recent)} of recent pages of which some may not be human," if recent else said


def most_flagged(evaluation: DetectorEvaluation) -> float:
    """The flagged share of the web collection of which the most human pages are flagged, by a number of words."""
    sure = _judged([row for row in evaluation.pages if not row.recent and row.name != TOGETHER])
    return max(sure, default=0.0)


def _judged(rows: Sequence[PageSetRow]) -> list[float]:
    return [cell.flagged for row in rows for cell in row.cells if cell.flagged is not None]


def _span(shares: Sequence[float]) -> str:
    if not shares:
        return "an unknown share"
    low, high = f"{min(shares):.1%}", f"{max(shares):.1%}"
    return high if low == high else f"{low} to {high}"


def table_lines(evaluation: DetectorEvaluation) -> Iterator[str]:
    """Every table with a row, as Markdown."""
    summary = [
        {"figure": "in domain", "AUROC": evaluation.in_domain},
        {"figure": "mean of each generator left out", "AUROC": evaluation.generators_mean},
    ]
    if unseen := evaluation.unseen:
        against = f"{unseen.new_llm} texts, against {unseen.new_human} of new human sources"
        newer = f"generators newer than the training files ({against})"
        summary.append({"figure": newer, "AUROC": unseen.new_generators})
    pages = [
        {"pages": row.name, "surely human": not row.recent, **{f"{cell.words} words": cell for cell in row.cells}}
        for row in evaluation.pages
    ]
    tables: list[tuple[str, Table]] = [
        ("In short (the AUROC in domain misleads on its own)", summary),
        (
            "Human web pages, each collection left out of training and calibration, and recent pages, which are only "
            "measured on: share flagged by words of their opening, and pages that have so many (under "
            f"{MIN_WORDS} words the detector abstains)",
            pages,
        ),
        (
            "Files that were only measured on: AUROC against their other label, and "
            "share flagged. New are generators that no training file has, and human sources of collections that none "
            "has in any of their splits; where human and LLM texts of such files differ in topic, this AUROC is too "
            "good",
            _rows(unseen.rows if unseen else []),
        ),
        (
            "Leave one domain out: AUROC of its human texts against its own LLM texts and against chat assistants, "
            "and of its LLM texts against the other domains' human texts",
            _rows(evaluation.domains),
        ),
        ("Leave one generator out: AUROC against all human texts, and shares found", _rows(evaluation.generators)),
        (
            f"Leave one human source out of training and calibration: shares flagged of texts of {MIN_WORDS} words and "
            "more (the gate holds for web sources)",
            _rows(evaluation.sources),
        ),
        (
            "By length, calibration and test on different texts: human texts flagged, LLM texts found (the web texts "
            "are of collections that were trained on: the pages above say what to expect)",
            _rows(evaluation.lengths),
        ),
    ]
    for title, rows in tables:
        if rows:
            yield from (f"{title}:", "", *markdown_table(rows))


def dropped(file: FileReport) -> str:
    """The number of dropped texts by reason."""
    return ", ".join(f"{count} {reason}" for reason, count in file.dropped.items() if count)


def markdown_table(rows: Table) -> list[str]:
    """The lines of a table; none without rows."""
    if not rows:
        return []
    cells = [[_cell(name, value) for name, value in row.items()] for row in rows]
    head, *body = (f"| {' | '.join(row)} |" for row in ([_HEADINGS.get(name, name) for name in rows[0]], *cells))
    return [head, f"|{'---|' * len(rows[0])}", *body, ""]


def _rows(structs: Sequence[msgspec.Struct]) -> Table:
    return [{name.replace("_", " "): getattr(row, name) for name in row.__struct_fields__} for row in structs]


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return ("web" if value else "-") if name == "web" else ("yes" if value else "no")
    if isinstance(value, float):
        return f"{value:.1%}" if name in _SHARES else f"{value:.3f}"
    if isinstance(value, PageCell):
        return "-" if value.flagged is None else f"{value.flagged:.1%} of {value.texts}"
    if isinstance(value, list):
        return " ".join(value)
    return "-" if value is None else str(value)
