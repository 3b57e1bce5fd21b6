"""The report of `farmwatch lab calibrate`. Every share has its counts."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from scoring.calibration.labelled_scores import Auroc
from scoring.calibration.platt import Reliability
from scoring.statistics.rounding import SCORE_DIGITS, each_float, significant
from scoring.statistics.shares import Share
from scoring.thresholds.threshold_set import ThresholdSet


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold's errors on some of the texts."""

    name: str
    false_positives: Share  # human texts that are flagged
    sensitivity: Share  # LLM texts that are flagged
    specificity: Share  # human texts that are not
    auroc: Auroc | None  # None: texts of one label only


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold set and its errors on the labelled texts."""

    thresholds: ThresholdSet
    identity: str  # for scores with this set
    fpr: float  # requested
    threshold_low: float
    threshold_high: float
    knows_sites: bool  # intervals are clustered by site
    human_sites: int
    llm_sites: int
    abstained_human: int
    abstained_llm: int
    all: Slice
    published: list[Slice]  # the detector's published thresholds on the same texts
    lengths: list[Slice]
    genres: list[Slice]
    reliability: Reliability  # of p_llm: cross-fitted if this set has a curve
    about_sites: str

    def rounded(self) -> CalibrationReport:
        """This report with measurements rounded to SCORE_DIGITS; thresholds are not rounded."""
        numbers = each_float(msgspec.to_builtins(self), lambda number: significant(number, SCORE_DIGITS))
        return msgspec.structs.replace(
            msgspec.convert(numbers, CalibrationReport),
            thresholds=self.thresholds,
            threshold_low=self.threshold_low,
            threshold_high=self.threshold_high,
        )


class ReportTable(NamedTuple):
    """A table of strings."""

    title: str
    headings: list[str]
    rows: list[list[str]]


def summary(report: CalibrationReport) -> list[str]:
    """The report's first sentences."""
    chosen, total = report.thresholds, report.all
    side = "below" if chosen.llm_below else "above"
    said = [
        f"threshold: llm strictly {side} {chosen.threshold:.6g} ({chosen.number}; 95% interval "
        f"{report.threshold_low:.6g} to {report.threshold_high:.6g}), to flag at most {report.fpr:.2%} of human texts",
        "measured on the texts on which the threshold was chosen (in sample)",
        f"false positives: {share_text(total.false_positives)}",
        f"sensitivity: {share_text(total.sensitivity)}",
        f"specificity: {share_text(total.specificity)}",
        f"intervals are clustered by site: {report.human_sites} sites with human texts, {report.llm_sites} with LLM"
        if report.knows_sites
        else "no sites are known, so each text counts as independent: intervals are too narrow if they are not",
    ]
    if report.abstained_human or report.abstained_llm:
        said.append(
            f"not scored, and not counted: {report.abstained_human} human and {report.abstained_llm} LLM texts on "
            "which the detector abstains"
        )
    return [*said, f"site test: {report.about_sites}"]


def tables(report: CalibrationReport) -> list[ReportTable]:
    """The tables of a report, in order; those without a row are left out."""
    measured = report.reliability
    title = "at this threshold" + (", and at the published ones" if report.published else "")
    all_tables = [
        _slices(title, [report.all, *report.published]),
        _slices("by length", report.lengths),
        _slices("by genre", report.genres),
        ReportTable(
            f"reliability of p_llm, both labels of equal weight: calibration error {measured.calibration_error:.3f},"
            f" Brier score {measured.brier:.3f}",
            ["p_llm", "mean p_llm", "human", "llm", "share of llm", "95% interval"],
            [
                [
                    f"{group.low:.3f}-{group.high:.3f}",
                    f"{group.mean:.3f}",
                    str(group.human),
                    str(group.llm),
                    *_share_and_interval(group.observed, ".3f"),
                ]
                for group in measured.groups
            ],
        ),
    ]
    return [table for table in all_tables if table.rows]


def share_text(measured: Share) -> str:
    """A share with its counts and its interval."""
    if measured.share is None:
        return "no texts"
    share, interval = _share_and_interval(measured, ".2%")
    return f"{share} ({measured.count} of {measured.total}; 95% interval {interval})"


def _slices(title: str, slices: list[Slice]) -> ReportTable:
    headings = ["texts", "human", "flagged", "FPR", "95% interval", "LLM", "found", "TPR", "95% interval", "AUROC"]
    rows = []
    for row in slices:
        cells = [row.name]
        for measured in (row.false_positives, row.sensitivity):
            cells += [str(measured.total), str(measured.count), *_share_and_interval(measured, ".2%")]
        rows.append([*cells, "-" if row.auroc is None else f"{row.auroc.value:.3f}"])
    return ReportTable(title, headings, rows)


def _share_and_interval(measured: Share, form: str) -> tuple[str, str]:
    if measured.share is None:
        return "-", "-"
    return f"{measured.share:{form}}", f"{measured.low:{form}} to {measured.high:{form}}"
