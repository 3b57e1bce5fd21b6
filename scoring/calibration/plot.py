"""Draws the reliability plot: p_llm against the share of llm, and a histogram of p_llm per label.

Drawn by matplotlib (extra `plots`), without a display; the same report gives the same bytes.
"""

from __future__ import annotations

import importlib.util
import io
from typing import Any

from scoring.calibration.platt import BARS
from scoring.calibration.report import CalibrationReport
from stream.text.user_errors import MissingExtra

_HUMAN, _LLM, _INK, _FAINT = "#0072B2", "#D55E00", "#222222", "#8a8a8a"  # Okabe and Ito's colours
_STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that it is the same everywhere
    "font.size": 9,
    "axes.edgecolor": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "farmwatch",  # otherwise the ids in the file are random
    "svg.fonttype": "path",
}


def has_matplotlib() -> bool:
    """Whether this machine can draw a plot."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Raises MissingExtra if matplotlib is not installed."""
    if not has_matplotlib():
        raise MissingExtra("the reliability plot needs matplotlib", extra="plots")


def draw(report: CalibrationReport) -> dict[str, bytes]:
    """The plot as `png` and as `svg`. Raises MissingExtra."""
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(6.0, 6.6), dpi=150, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
        _draw_reliability(above, report)
        _draw_histogram(below, report)
        measured, total = report.reliability, report.all
        identity = report.identity if len(report.identity) <= 88 else f"{report.identity[:40]}…{report.identity[-45:]}"
        sites = f" of {report.human_sites} and {report.llm_sites} sites" if report.knows_sites else ""
        text = (
            f"{identity}\n{total.false_positives.total:,} human and {total.sensitivity.total:,} LLM texts{sites} · "
            f"calibration error {measured.calibration_error:.3f} · Brier score {measured.brier:.3f}"
        )
        title = figure.suptitle(text, fontsize=8.5, x=0.02, ha="left", color=_INK, linespacing=1.5)
        title.set_parse_math(False)  # dollar signs in a name are not a formula
        files = {"png": io.BytesIO(), "svg": io.BytesIO()}
        figure.savefig(files["png"], format="png", metadata={"Software": None})
        figure.savefig(files["svg"], format="svg", metadata={"Date": None, "Creator": None})
        return {form: file.getvalue() for form, file in files.items()}


def _draw_reliability(axes: Any, report: CalibrationReport) -> None:
    groups = report.reliability.groups
    y = [group.observed.share or 0.0 for group in groups]
    down = [at - (group.observed.low or 0.0) for at, group in zip(y, groups, strict=True)]
    up = [(group.observed.high or 0.0) - at for at, group in zip(y, groups, strict=True)]
    axes.plot([0, 1], [0, 1], color=_FAINT, linestyle="--", linewidth=1, label="p_llm holds exactly")
    label = "a tenth of the texts, 95% interval"
    means = [group.mean for group in groups]
    axes.errorbar(means, y, yerr=[down, up], color=_INK, ecolor=_FAINT, capsize=3, linewidth=1, marker="o", label=label)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="share that is llm, labels of equal weight")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.legend(loc="upper left")


def _draw_histogram(axes: Any, report: CalibrationReport) -> None:
    measured, width = report.reliability, 1 / BARS
    # The llm bars are hatched, so that they differ in grey too.
    for label, bars, colour, hatch, shift in (
        ("human", measured.human_bars, _HUMAN, None, 0.08),
        ("llm", measured.llm_bars, _LLM, "////", 0.5),
    ):
        axes.bar(
            [(number + shift) * width for number in range(BARS)],
            [count / max(1, sum(bars)) for count in bars],
            0.42 * width,
            align="edge",
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=f"{label} ({sum(bars):,} texts)",
        )
    axes.set(xlabel="p_llm", ylabel="share of its label")
    axes.legend(loc="upper center")
