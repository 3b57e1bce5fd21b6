"""`farmwatch lab extractors bench`: labelled pages → the numbers of many extractors."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from farmwatch.commands.options import AT_LEAST_0, JUST_CONFIGURED, Configured, Jobs
from farmwatch.terminal.messages import counting, message, program_version, put, put_table
from filters.settings import MeasureSettings
from lab.extractor_bench.comparison import Comparison, compared
from lab.extractor_bench.consequences import Consequences, Judge
from lab.extractor_bench.ensembles import ENSEMBLES
from lab.extractor_bench.gold_errors import gold_error
from lab.extractor_bench.groups import complexities, groups_of
from lab.extractor_bench.learned_vote import learned_votes
from lab.extractor_bench.markdown import consequence_table, distributions, markdown, tool_table
from lab.extractor_bench.metrics import Scores
from lab.extractor_bench.page_facts import PageFacts
from lab.extractor_bench.pages import BenchPage, read_pages
from lab.extractor_bench.report import BenchReport, ToolRow, complexity_quartiles, correlations, group_sizes, tool_row
from lab.extractor_bench.runs import ToolRun, facts_of, recorded, run_tool
from lab.extractor_bench.tools import ALL, TOOLS, chosen
from stream.text.user_errors import Exit, FarmwatchError, UsageError

_JUDGED = 300  # pages, evenly spaced: to measure a page takes as long as to extract it


def bench_extractors(
    datasets: Annotated[
        list[Path],
        Parameter(help="Folders with <source>/gold.jsonl and <source>/html/<id>.html.zst, or a source.", negative=""),
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for report.md, report.json and f1.svg; files there are replaced.")],
    tool: Annotated[
        list[str] | None,
        Parameter(help="Run only this tool; may be repeated; all = goose3, newspaper4k and bs4, too.", negative=""),
    ] = None,
    recorded_texts: Annotated[
        list[str] | None,
        Parameter(
            name="--recorded",
            help="NAME=DIR: a tool that ran elsewhere, with its text of each page in DIR/ID.txt; may be repeated.",
            negative="",
        ),
    ] = None,
    pages: Annotated[int, Parameter(help="Read this many pages, evenly spaced; 0 = all.", validator=AT_LEAST_0)] = 0,
    jobs: Jobs = 0,
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Compare extractors on labelled pages: texts, speed, errors, and what each would mean for the share.

    A line of gold.jsonl needs the field `articleBody`. Each tool runs in processes of its own, under the limits
    measure.time_limit_s and measure.memory_bytes; a page on which it fails or is killed has no text. A tool that is not
    installed, or does not start, is a row that says so. Without `--tool`, the slowest do not run: goose3, newspaper4k
    and bs4. The names `measure-…` are the extractors of `measure.extractor`, with the guards of MEASURE. The ensembles
    em_K_N take each text node that K of N tools have.

    The metrics compare words between white space: ROUGE-LSum, sets, sequences of four words, edit distance. Groups:
    source, complexity, page_type, and clusters of tags. Pages whose labelled text has words that the page lacks are
    named, and left out above 2%. For the rulesets and the built-in detector, 300 pages are measured with each text.
    Damaged entries are reported and skipped: exit code 1.
    """
    folders = dict(_recorded(given) for given in recorded_texts or ())
    names = chosen(tool or [])
    if unknown := [name for name in names if name not in TOOLS]:
        raise UsageError(f"--tool {unknown[0]!r}: no such tool; there are {', '.join(TOOLS)}, {ALL}")
    if taken := [name for name in folders if name in names]:
        raise UsageError(f"--recorded {taken[0]}=…: the tool of this name runs here; take another name")
    settings = common.load(f"measure.workers={jobs}").config.measure
    with counting(None, "pages read") as advance:
        read = read_pages(datasets, pages, message, advance)
    if not read.pages:
        raise FarmwatchError("no page has a labelled main text: of all lines, none has `articleBody`")
    out.mkdir(parents=True, exist_ok=True)
    with counting(len(read.pages), "pages parsed") as advance:
        facts = facts_of(read.pages, settings, advance)
    errors = [gold_error(page, of) for page, of in zip(read.pages, facts, strict=True)]
    known = [error is None or not error.set_aside for error in errors]
    kept = [page for page, is_kept in zip(read.pages, known, strict=True) if is_kept]
    facts = [of for of, is_kept in zip(facts, known, strict=True) if is_kept]
    if not kept:
        raise FarmwatchError("every labelled main text has words that its page lacks: are these labels of other pages?")
    runs = [recorded(name, folder, kept) for name, folder in folders.items()]
    with counting(len(names) * len(kept), "pages by tools") as advance:
        runs = [run_tool(name, kept, settings, advance) for name in names] + runs
    complexity = complexities(kept, facts)
    groups = groups_of(kept, facts, complexity)
    comparisons, ensembles = _compared(runs, kept, facts, settings.workers)
    rows = _rows(runs + ensembles, comparisons, kept, groups, settings)
    report = BenchReport(
        command=_command(datasets, tool or [], folders, pages),
        versions={"farmwatch": program_version(), "Python": platform.python_version(), "numpy": np.__version__},
        pages=len(kept),
        skipped=read.skipped,
        without_text=read.without_text,
        set_aside=len(read.pages) - len(kept),
        groups=group_sizes(groups),
        complexity=complexity_quartiles(complexity, groups["source"]),
        tools=rows,
        correlations=correlations(rows),
        learned_votes=learned_votes(comparisons),
        gold_errors=[error for error in errors if error],
    )
    (out / "report.json").write_bytes(report.to_json())
    (out / "report.md").write_text(markdown(report), encoding="utf-8")
    (out / "f1.svg").write_text(distributions(report), encoding="utf-8")
    put_table(*tool_table(rows), f"Texts of {len(kept)} pages")
    put("")
    put_table(*consequence_table([row for row in rows if row.mean]), "Pages that rulesets keep (intervals over sites)")
    put(f"{out / 'report.md'}: all tables")
    return Exit.PROBLEM if read.skipped else Exit.OK


def _compared(
    runs: Sequence[ToolRun], pages: Sequence[BenchPage], facts: Sequence[PageFacts], workers: int
) -> tuple[list[Comparison], list[ToolRun]]:
    """The comparison of each page, and the ensembles."""
    ran = [run for run in runs if run.texts]
    texts = [{run.name: run.texts[place] for run in ran} for place in range(len(pages))]
    found = list[Comparison]()
    with (
        counting(len(pages), "pages compared") as advance,
        ProcessPoolExecutor(workers or None, get_context("spawn")) as processes,
    ):
        for of in processes.map(compared, [page.gold for page in pages], [of.leaves for of in facts], texts):
            found.append(of)
            advance(1)
    ensembles = [ensemble.run([run.name for run in ran]) for ensemble in ENSEMBLES]
    for run in ensembles:
        if run.name in found[0].ensembles:
            run.texts = [of.ensembles[run.name] for of in found]
    return found, ensembles


def _rows(
    runs: Sequence[ToolRun],
    comparisons: Sequence[Comparison],
    pages: Sequence[BenchPage],
    groups: dict[str, list[str]],
    settings: MeasureSettings,
) -> list[ToolRow]:
    """The numbers of each tool."""
    judged = np.unique(np.linspace(0, len(pages) - 1, min(len(pages), _JUDGED)).astype(int)).tolist()
    ran = [run for run in runs if run.texts]
    scores, found = dict[str, list[Scores]](), dict[str, Consequences]()
    with (
        counting(len(ran) * len(judged), "texts judged") as advance,
        closing(Judge([pages[place] for place in judged], settings)) as judge,
    ):
        for run in ran:
            scores[run.name] = [of.scores[run.name] for of in comparisons]
            found[run.name] = judge.judged(run.name, [run.texts[place] for place in judged], advance)
    return [tool_row(run, scores.get(run.name, []), groups, found.get(run.name)) for run in runs]


def _recorded(given: str) -> tuple[str, Path]:
    """Raises UsageError."""
    name, _, folder = given.partition("=")
    if not name or not folder or not Path(folder).is_dir():
        raise UsageError(f"--recorded {given!r}: give NAME=DIR, with a folder that is there")
    return name, Path(folder)


def _command(datasets: Sequence[Path], tools: Sequence[str], folders: dict[str, Path], pages: int) -> str:
    words = ["farmwatch", "lab", "extractors", "bench", *(dataset.name for dataset in datasets)]
    words += [word for name in tools for word in ("--tool", name)]
    words += [word for name, folder in folders.items() for word in ("--recorded", f"{name}={folder.name}")]
    return shlex.join(words + (["--pages", str(pages)] if pages else []))
