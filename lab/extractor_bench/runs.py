"""The texts of a tool: found in processes that can be killed, or read from files that it wrote elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from filters.errors import WorkersUnavailable
from filters.measure.page_measures import PageMeasures, RawPage
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from lab.extractor_bench.page_facts import PageFacts
from lab.extractor_bench.pages import BenchPage
from lab.extractor_bench.tool_process import CPU_MS, FACTS, command
from lab.extractor_bench.tools import MEASURED, TOOLS

_BATCH = 512
_MISSING = "missing"  # error of a page without a recorded text
Advance = Callable[[int], None]


@dataclass(slots=True)
class ToolRun:
    """The texts of a tool, one for each page, "" where it has none; no texts, and the reason, if it did not run."""

    name: str
    version: str = ""
    texts: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    cpu_ms: float | None = None  # mean of a page
    note: str = ""


def run_tool(name: str, pages: Sequence[BenchPage], settings: MeasureSettings, advance: Advance) -> ToolRun:
    """Run a tool on pages. A page on which it fails, or is killed, has no text."""
    version = TOOLS[name].version
    if version is None:
        advance(len(pages))
        return ToolRun(name, note=f"not installed: {', '.join(TOOLS[name].packages)}")
    run = ToolRun(name, version)
    try:
        answers = measured([page.raw for page in pages], settings_of(name, settings), command(name), advance)
    except WorkersUnavailable:
        return ToolRun(name, version, note="its process does not start; see stderr")
    times = [spent for answer in answers if isinstance(spent := answer.measures.get(CPU_MS), float)]
    run.texts = [answer.text for answer in answers]
    run.errors.update(answer.error for answer in answers if answer.error)
    run.cpu_ms = sum(times) / len(times) if times else None
    return run


def settings_of(name: str, settings: MeasureSettings) -> MeasureSettings:
    """The settings of a tool: those of an extractor of MEASURE name it."""
    extractor = name.removeprefix(MEASURED) if name.startswith(MEASURED) else "trafilatura"
    return msgspec.convert({**msgspec.to_builtins(settings), "extractor": extractor}, MeasureSettings)


def measured(
    pages: Sequence[RawPage], settings: MeasureSettings, command: Sequence[str], advance: Advance
) -> list[PageMeasures]:
    """The answers of processes that run `command`. Raises WorkersUnavailable."""
    with closing(ExtractionPool(settings, command=command)) as pool:
        return mapped(pool, pages, advance)


def mapped(pool: ExtractionPool, pages: Sequence[RawPage], advance: Advance) -> list[PageMeasures]:
    """The answers of a pool. Raises WorkersUnavailable."""
    answers = list[PageMeasures]()
    for start in range(0, len(pages), _BATCH):
        answers += pool.map(pages[start : start + _BATCH])
        advance(len(answers) - start)
    return answers


def facts_of(pages: Sequence[BenchPage], settings: MeasureSettings, advance: Advance) -> list[PageFacts]:
    """What each page itself has; nothing for a page that cannot be parsed."""
    answers = measured([page.raw for page in pages], settings_of("", settings), command(FACTS), advance)
    decoder = msgspec.msgpack.Decoder(PageFacts)
    return [decoder.decode(answer.blocks) if answer.blocks else PageFacts() for answer in answers]


def recorded(name: str, folder: Path, pages: Sequence[BenchPage]) -> ToolRun:
    """The texts of a tool that ran elsewhere: a file ID.txt for each page, in UTF-8. Raises OSError."""
    run = ToolRun(name, "recorded")
    for page in pages:
        file = folder / f"{page.label.id}.txt"
        if file.is_file():
            run.texts.append(file.read_text(encoding="utf-8", errors="replace"))
        else:
            run.texts.append("")
            run.errors[_MISSING] += 1
    if run.errors[_MISSING] == len(pages):
        return ToolRun(name, note=f"no recorded text: no ID.txt of these pages in {folder}")
    return run
