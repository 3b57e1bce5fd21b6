"""A bench as Markdown, and as a picture of F1 by tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from farmwatch.console.drawings import saved
from farmwatch.console.pictures import Strip, shares
from lab.extractor_bench.gold_errors import PRINTED, SET_ASIDE
from lab.extractor_bench.report import BenchReport, ToolRow
from stream.text.wording import counted

_MEANS = ("precision", "recall", "f1", "words", "set_f1", "jaccard", "shingles", "distance")
_HEADINGS = {"f1": "F1", "words": "F1 of words", "set_f1": "F1 of sets", "distance": "edit distance"}
_MOST_ERRORS = 50  # pages that are named
Cells = Sequence[str]


def markdown(report: BenchReport) -> str:
    """The report."""
    return "\n".join(_lines(report))


def _lines(report: BenchReport) -> Iterator[str]:
    ran = [row for row in report.tools if row.mean]
    yield from ("# Extractors beside labelled main texts", "", f"`{report.command}`", "")
    yield from (", ".join(f"{name} {version}" for name, version in report.versions.items()), "")
    yield (
        f"{counted(report.pages, 'page')}. Left out: {report.without_text} without a labelled main text,"
        f" {report.skipped} damaged or there twice, {report.set_aside} with words that the page lacks (below)."
    )
    yield from ("", "Precision, recall and F1 are those of ROUGE-LSum. CPU time is that of a page, in ms.", "")
    yield from table(*tool_table(report.tools))
    yield from ("", "## Median, and mean and median of sources", "")
    medians = [(row.median["f1"], row.macro_mean["f1"], row.macro_median["f1"], row.median["distance"]) for row in ran]
    rows = [[row.name, *(f"{number:.3f}" for number in of)] for row, of in zip(ran, medians, strict=True)]
    yield from table(["tool", "median F1", "mean of sources", "mean of their medians", "median edit distance"], rows)
    for grouping, sizes in report.groups.items():
        yield from ("", f"## F1 by {grouping}", "")
        heads = [f"{name} ({size})" for name, size in sizes.items()]
        yield from table(["tool", *heads], [[r.name, *(f"{r.f1[grouping][name]:.3f}" for name in sizes)] for r in ran])
    yield from ("", "## Complexity: 100 × words of the main text / words of the page", "")
    quartiles = [[name or "all", *(f"{of:.1f}" for of in row)] for name, row in report.complexity.items()]
    yield from table(["source", "P25", "P50", "P75"], quartiles)
    yield from ("", "## What it means for the share", "")
    yield from table(*consequence_table(ran))
    yield from ("", "## Order of tools by two metrics", "")
    pairs = [
        [c.first, c.second, *map(_number, (c.kendall, c.spearman))]
        for c in report.correlations
        if "f1" in (c.first, c.second)
    ]
    yield from table(["metric", "and", "Kendall", "Spearman"], pairs)
    if report.learned_votes:
        yield from ("", "## Learned vote: accuracy on balanced text nodes of other pages", "")
        learned = [
            [f"{of.classifier}, {of.members} tools", str(of.nodes), f"{of.accuracy:.3f} ± {of.deviation:.4f}"]
            for of in report.learned_votes
        ]
        yield from table(["classifier", "nodes", "accuracy"], learned)
    yield from ("", f"## Main texts with more than {PRINTED:.0%} words that the page lacks", "")
    causes = Counter((error.source, error.cause, error.set_aside) for error in report.gold_errors)
    counts = [[*of[:2], str(number), "yes" if of[2] else "no"] for of, number in sorted(causes.items())]
    yield from table(["source", "cause", "pages", f"set aside (above {SET_ASIDE:.0%})"], counts)
    worst = sorted(report.gold_errors, key=lambda error: -error.error)[:_MOST_ERRORS]
    yield ""
    cells = [[e.source, e.id[:12], f"{e.error:.1%}", e.cause, " ".join(e.words[:3])] for e in worst]
    yield from table(["source", "page", "E", "cause", "words"], cells)
    yield ""


def tool_table(tools: Sequence[ToolRow]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells, one row for each tool."""
    rows = []
    for row in tools:
        errors = ", ".join(f"{name} {number}" for name, number in row.errors.items())
        numbers = [f"{row.mean[name]:.3f}" if row.mean else "" for name in _MEANS]
        cpu = "" if row.cpu_ms is None else f"{row.cpu_ms:.1f}"
        rows.append([row.name, row.version, *numbers, cpu, "; ".join(filter(None, (errors, row.note)))])
    return ["tool", "version", *(_HEADINGS.get(name, name) for name in _MEANS), "CPU", "errors and notes"], rows


def consequence_table(tools: Sequence[ToolRow]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: pages kept by ruleset, and flagged articles."""
    known = [(row.name, row.consequences) for row in tools if row.consequences]
    rulesets = list(known[0][1].kept) if known else []
    rows = [
        [
            name,
            *(f"{of.kept[ruleset] / of.judged:.1%}" for ruleset in rulesets),
            f"{_part(of.flagged, of.scored)} of {of.scored}",
        ]
        for name, of in known
    ]
    judged = known[0][1].judged if known else 0
    return [f"tool ({judged} pages)", *rulesets, "flagged of `default`"], rows


def table(headings: Cells, rows: Sequence[Cells]) -> list[str]:
    """The lines of a table; text of pages is no markup."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *cells)]


def distributions(report: BenchReport) -> str:
    """A picture: quartiles of F1 by tool, and its mean."""
    strips = [
        Strip(row.name, row.quartiles[1], row.quartiles[0], row.quartiles[2], "", row.mean["f1"])
        for row in report.tools
        if row.quartiles
    ]
    return saved(shares("F1 of ROUGE-LSum: median, quartiles, and mean as a line", strips))


def _part(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
