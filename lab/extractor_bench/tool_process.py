"""A process that runs one tool on page after page, under the limits of an `ExtractionPool`; the name is its argument.

Two names are no tools: FACTS answers what the page itself has, GIVEN measures a text that was found elsewhere as
MEASURE would. As its worker, this reads settings and pages from the socket on stdin, and answers with measures. No tool
reaches the network: some would fetch the images of a page.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

from filters.extraction.blocks import Block, BlockKind, pack
from filters.extraction.interface import ExtractError, Extraction
from filters.measure.extractors import EXTRACTORS, ExtractorRow
from filters.measure.page_measures import PageMeasures, RawPage, failed, inflated, measure_raw
from filters.measure.worker_process import serve
from filters.settings import MeasureSettings
from lab.extractor_bench.page_facts import page_facts
from lab.extractor_bench.tools import TOOLS

FACTS, GIVEN = "facts", "given"
CPU_MS = "cpu_ms"
_WARM_UP = f"<html><body><p>{'A tool loads what it needs now. ' * 40}</p></body></html>"
_MOST_CHARS = 4 * 1024**2  # of a text: what is beyond is left out


class GivenPage(RawPage, frozen=True):
    """A page with the text that a tool found."""

    text: str = ""


Answer = Callable[[GivenPage], PageMeasures]


def command(name: str) -> tuple[str, ...]:
    """The command of a process."""
    return (sys.executable, "-P", "-m", "lab.extractor_bench.tool_process", name)


def main(name: str) -> None:
    """Serve pages until the parent exits."""
    warnings.simplefilter("ignore")
    sys.addaudithook(_refuse_network)
    serve(lambda settings, _: _safe(_answer(name, settings)), GivenPage)


def _answer(name: str, settings: MeasureSettings) -> Answer:
    return _given(settings) if name == GIVEN else _facts(settings) if name == FACTS else _tool(name, settings)


def _refuse_network(event: str, _: object) -> None:
    if event in {"socket.connect", "socket.getaddrinfo"}:
        raise OSError("an extractor reaches no network")


def _safe(answer: Answer) -> Answer:
    def safe(page: GivenPage) -> PageMeasures:
        try:
            return answer(page)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  # third-party code on hostile input
            return failed("", ExtractError.FAILED)

    return safe


def _html(page: RawPage, settings: MeasureSettings) -> str:
    return inflated(page.body, settings.max_html_bytes).decode("utf-8", "replace") if page.body else ""


def _facts(settings: MeasureSettings) -> Answer:
    return lambda page: PageMeasures(blocks=msgspec.msgpack.encode(page_facts(_html(page, settings))))


def _tool(name: str, settings: MeasureSettings) -> Answer:
    run = TOOLS[name].load(settings)
    run(_WARM_UP)

    def answer(page: GivenPage) -> PageMeasures:
        html = _html(page, settings)
        started = time.process_time()
        text = (run(html) or "") if html.strip() else ""
        spent_ms = 1e3 * (time.process_time() - started)
        return PageMeasures(text=text[:_MOST_CHARS].encode("utf-8", "replace").decode(), measures={CPU_MS: spent_ms})

    return answer


def _given(settings: MeasureSettings) -> Answer:
    """Takes the text for that of an extractor; links, lists and tables of it are unknown."""
    text = ""

    def run(html: str, tree: Any) -> Extraction:  # noqa: ARG001  # as every extractor
        lines = [line for line in (" ".join(line.split()) for line in text.split("\n")) if line]
        if not lines:
            return Extraction(error=ExtractError.NO_TEXT)
        blocks = pack([Block(BlockKind.PARAGRAPH, len(line), 0, 0) for line in lines])
        return Extraction("\n".join(lines), blocks, "plain")

    EXTRACTORS[GIVEN] = ExtractorRow(lambda _: run, ())
    own: Any = GIVEN
    settings = msgspec.structs.replace(settings, extractor=own)

    def answer(page: GivenPage) -> PageMeasures:
        nonlocal text
        text = page.text
        return measure_raw(page, settings)

    return answer


if __name__ == "__main__":
    main(sys.argv[1])
