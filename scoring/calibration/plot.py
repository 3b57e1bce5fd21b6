"""The reliability plot: p_llm beside the share that is llm, and how many texts of each label have which p_llm.

Drawn by matplotlib (extra `plots`), without a display, and byte by byte the same for the same report.
"""

from __future__ import annotations

import importlib.util
import io
from typing import Any

from scoring.calibration.platt import BARS
from scoring.calibration.report import CalibrationReport
from scoring.errors import MissingExtra

_HUMAN, _LLM, _INK, _FAINT = "#0072B2", "#D55E00", "#222222", "#8a8a8a"  # Okabe and Ito's: told apart by all eyes
_STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the same everywhere
    "font.size": 9,
    "axes.edgecolor": _FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "svg.hashsalt": "farmwatch",  # else the ids in the file are drawn at random
    "svg.fonttype": "path",
}


def has_matplotlib() -> bool:
    """Whether a plot can be drawn here."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Raises MissingExtra where matplotlib is not installed."""
    if not has_matplotlib():
        raise MissingExtra("the reliability plot needs matplotlib: pip install 'farmwatch[plots]', or pass --no-plot")


def draw(report: CalibrationReport) -> dict[str, bytes]:
    """The plot as `png` and as `svg`. Raises MissingExtra."""
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(6.0, 6.6), dpi=150, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
        _reliability(above, report)
        _histogram(below, report)
        above_all = figure.suptitle(_title(report), fontsize=8.5, x=0.02, ha="left", color=_INK, linespacing=1.5)
        above_all.set_parse_math(False)  # a name with two dollar signs is a name
        files = {"png": io.BytesIO(), "svg": io.BytesIO()}
        figure.savefig(files["png"], format="png", metadata={"Software": None})
        figure.savefig(files["svg"], format="svg", metadata={"Date": None, "Creator": None})
        return {form: file.getvalue() for form, file in files.items()}


def _title(report: CalibrationReport) -> str:
    measured, total = report.reliability, report.all
    identity = report.identity if len(report.identity) <= 88 else f"{report.identity[:40]}…{report.identity[-45:]}"
    sites = f" of {report.human_sites} and {report.llm_sites} sites" if report.knows_sites else ""
    return (
        f"{identity}\n{total.false_positives.total:,} human and {total.sensitivity.total:,} LLM texts{sites} · "
        f"calibration error {measured.calibration_error:.3f} · Brier score {measured.brier:.3f}"
    )


def _reliability(axes: Any, report: CalibrationReport) -> None:
    groups = report.reliability.groups
    y = [group.observed.share or 0.0 for group in groups]
    down = [at - (group.observed.low or 0.0) for at, group in zip(y, groups, strict=True)]
    up = [(group.observed.high or 0.0) - at for at, group in zip(y, groups, strict=True)]
    axes.plot([0, 1], [0, 1], color=_FAINT, linewidth=1, linestyle=(0, (4, 3)), label="p_llm holds exactly", zorder=1)
    axes.errorbar(
        [group.mean for group in groups],
        y,
        yerr=[down, up],
        color=_INK,
        ecolor=_FAINT,
        elinewidth=1.2,
        capsize=3,
        linewidth=1,
        marker="o",
        markersize=5,
        label="a tenth of the texts, 95% interval",
        zorder=2,
        clip_on=False,
    )
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylabel("share that is llm, labels of equal weight")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", frameon=False)


def _histogram(axes: Any, report: CalibrationReport) -> None:
    measured = report.reliability
    width = 1 / BARS
    left = [number * width for number in range(BARS)]
    for bars, colour, label, shift in (
        (measured.human_bars, _HUMAN, "human", 0.08),
        (measured.llm_bars, _LLM, "llm", 0.5),
    ):
        total = max(1, sum(bars))
        shares = [count / total for count in bars]
        axes.bar(
            [start + shift * width for start in left],
            shares,
            0.42 * width,
            align="edge",
            color=colour,
            hatch="////" if label == "llm" else None,  # told apart in grey, too
            edgecolor="white",
            linewidth=0,
            label=f"{label} ({sum(bars):,} texts)",
        )
    axes.set_xlabel("p_llm")
    axes.set_ylabel("share of its label")
    axes.legend(loc="upper center", frameon=False)
