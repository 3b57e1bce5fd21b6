"""The cost of measuring: MEASURE, bare Trafilatura, structure measures, lines, chunking, workers, memory.

Needs the labelled pages (FARMWATCH_TEST_DATA). Times are CPU seconds of one core; both measure the same pages, round by
round. Names of tables as arguments print only these.
"""

from __future__ import annotations

import collections
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import zstandard

from crawler.web.urls import site_of
from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.duplicates.chunker import chunk, cuts
from filters.duplicates.lines import Lines
from filters.extraction.html_tree import ParseFailed, parse, readable
from filters.extraction.page_guards import refused
from filters.measure import page_measures
from filters.measure.extractors import extractor
from filters.measure.page_measures import PageMeasures, RawPage, measure_raw
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from filters.stages.measure import MeasureStage
from filters.structure import measures as structure
from filters.structure import page_lines, tag_paths
from stream.log.sql_state import MemoryState
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Features, Page, decode, encode
from tests.bench.timing import cpu_s, labelled_pages_folder, memory_mib, wall_and_cpu_s
from tests.support.pages.extraction_peer import bare

ROUNDS = 3
PAGES = 300


def main() -> None:
    root = labelled_pages_folder()
    files = sorted(root.glob("*/html/*.zst"))
    labels = LabelledPages(root).labels
    records = [_record(root, label) for label in labels[:: len(labels) // PAGES]]
    pages = [RawPage(page.url, page.encoding, page.body) for page in records]
    chosen = sys.argv[1:] or ["measure", "parts", "chunking", "workers", "memory"]
    if "measure" in chosen:
        bench_measure(records)
    if "parts" in chosen:
        bench_parts(records)
    if "chunking" in chosen:
        results = [measure_raw(page, MeasureSettings()) for page in pages]
        bench_chunking([result.text.encode() for result in results if result.text])
    if "workers" in chosen:
        bench_workers(pages)
    if "memory" in chosen:
        every = [RawPage("https://x.example/a", "utf-8", file.read_bytes()) for file in files]
        every.append(RawPage("https://x.example/a", "utf-8", zstandard.compress(b"<p>x</p>y" * 49_000)))  # most blocks
        bench_memory(every, "trafilatura")
        bench_memory(every, "blocks")
        bench_memory(every, "auto")


def _record(root: Path, label: Label) -> Page:
    body = (root / label.source / "html" / f"{label.id}.html.zst").read_bytes()
    site = site_of(label.url) if label.url else label.id
    return Page(id=label.id, site=site, page_id=label.id, url=label.url, encoding="utf-8", body=body)


class _Here(ExtractionPool):
    """Measures in this process; pages and results are encoded and decoded as for a worker."""

    def __init__(self, settings: MeasureSettings) -> None:
        self._here = settings

    def map(self, pages: Sequence[RawPage]) -> list[PageMeasures]:
        sent = [msgspec.msgpack.decode(msgspec.msgpack.encode(page), type=RawPage) for page in pages]
        answers = [msgspec.msgpack.encode(measure_raw(page, self._here)) for page in sent]
        return [msgspec.msgpack.decode(answer, type=PageMeasures) for answer in answers]


class _Measure:
    """MEASURE on one record after another: decoding, the stage, encoding of its outputs; without the log and pipes."""

    def __init__(self, extractor: Any = "trafilatura") -> None:
        settings = MeasureSettings(extractor=extractor)
        self._stage = MeasureStage(settings, pool=_Here(settings))
        self._committed = MemoryState()
        self._state, self._calls = KeyedState(self._committed), 0

    def __call__(self, record: bytes) -> bytes:
        page = decode(Page, record)
        self._calls += 1
        if self._calls % self._stage.max_records == 0:  # as after each batch
            self._committed.apply(self._state.changes())
            self._state = KeyedState(self._committed)
        context = Context(0, self._state, Meter(), 0)
        self._stage.process(page, self._stage.prepare([page])[0], context)
        return context.outputs[0].value or b""


def bench_measure(pages: list[Page]) -> None:
    """MEASURE without the log, from page record to features record, by three extractors, and one bare Trafilatura call.

    All have the same pages and options, in turn; the garbage collector ignores loaded objects, as in a worker process.
    The pages have their own sites: most are the only page of their site here. Also extraction alone by `blocks`, with
    parsing, and with Trafilatura where that runs as well.
    """
    records = [encode(page) for page in pages]
    inflate = zstandard.ZstdDecompressor()
    htmls = [inflate.decompress(page.body, max_output_size=1 << 26).decode("utf-8", "replace") for page in pages]
    extractors = ("trafilatura", "blocks", "auto")
    whole = {name: _Measure(name) for name in extractors}
    results = {name: [decode(Features, whole[name](record)) for record in records] for name in extractors}  # warm
    accepted = {html: readable(html) for html in htmls if refused(html.encode(), html, MeasureSettings()) is None}
    blocks = MeasureSettings(extractor="blocks")
    for html in htmls[:20]:
        bare(html)
    gc.collect()
    gc.freeze()
    spent = {name: [9e9] * len(pages) for name in (*extractors, "extraction", "bare")}

    def extracted(html: str) -> None:
        with suppress(ParseFailed):
            extractor(blocks)(html, parse(html))

    def take(name: str, page: int, work: Callable[[], object]) -> None:
        spent[name][page] = min(spent[name][page], cpu_s(work))

    for _ in range(ROUNDS):
        whole = {name: _Measure(name) for name in extractors}
        for first in range(len(pages)):
            # In turn, so that a busy machine slows all; pages apart, so that none finds the other's cached lines
            second = (first + len(pages) // 2) % len(pages)
            take("trafilatura", first, partial(whole["trafilatura"], records[first]))
            take("blocks", second, partial(whole["blocks"], records[second]))
            third = (first + len(pages) // 4) % len(pages)
            take("auto", third, partial(whole["auto"], records[third]))
            take("bare", second, partial(bare, htmls[second]))
            take("extraction", first, partial(extracted, accepted.get(htmls[first], "")))
    again = [number for number, result in enumerate(results["trafilatura"]) if result.extract_path == "precision"]
    retries = sum(min(cpu_s(partial(bare, htmls[n], "precision")) for _ in range(ROUNDS)) for n in again)
    gc.unfreeze()
    size, sites = sum(map(len, htmls)) / 1e6, len({page.site for page in pages})
    total = {name: sum(times) for name, times in spent.items()}
    print(f"\nMEASURE, {len(pages)} real pages of {sites} sites, {size:.1f} MB of HTML, best of {ROUNDS} each")
    bare_s, whole_s = total["bare"], total["trafilatura"]
    print(f"  one bare call of Trafilatura {bare_s / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  MEASURE, but for the log     {whole_s / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  ratio                        {whole_s / bare_s:7.3f}   (goal <= 1.25)")
    print(f"  ratio to the same calls      {whole_s / (bare_s + retries):7.3f}   ({len(again)} retries)")
    print(f"  ratio with `blocks`          {total['blocks'] / bare_s:7.3f}   (goal <= .7)")
    print(f"  `auto` beside `trafilatura`  {total['auto'] / whole_s:7.3f}   (goal <= 1.1)")
    print(f"  extraction by `blocks`       {total['extraction'] / bare_s:7.3f}   (goal <= .45)")
    for name, of in results.items():
        found = collections.Counter(result.extract_error or result.extract_path for result in of)
        print(f"  paths, {name}: " + ", ".join(f"{path} {count}" for path, count in found.most_common()))


def bench_parts(pages: list[Page]) -> None:
    """The share of MEASURE that its cheaper parts take: each page with all, and in turn without each."""
    records = [encode(page) for page in pages]
    no_structure = (structure, "structure_measures", lambda *_: {"page_bytes": 0.0})
    no_lines = [(page_lines, "page_lines", lambda _: set()), (page_measures, "lines_of", lambda *_: Lines())]
    parts: dict[str, list[tuple[Any, str, Any]]] = {
        "all": [],
        "structure measures": [no_structure],
        "lines and their memory": no_lines,
        "both and the visible text": [no_structure, *no_lines, (page_lines, "visible_text", lambda _: b"")],
        "no_page": [(page_measures, "reason_of", lambda *_: "")],
        "template": [(tag_paths, "template_sketch", lambda _: b"")],
    }
    gc.collect()
    gc.freeze()
    spent: dict[str, list[list[float]]] = {part: [[] for _ in pages] for part in parts}
    names = list(parts)
    for number in range(2 * ROUNDS):
        stages = {part: _Measure() for part in parts}
        for place, record in enumerate(records):
            for part in names[(turn := (number + place) % len(names)) :] + names[:turn]:  # the first finds cold caches
                with ExitStack() as patches:
                    for module, name, nothing in parts[part]:
                        patches.enter_context(patch.object(module, name, nothing))
                    spent[part][place].append(cpu_s(lambda: stages[part](record)))  # noqa: B023  # called at once
    gc.unfreeze()
    sums = {part: sum(map(statistics.median, times)) for part, times in spent.items()}
    whole = sums.pop("all")
    print(f"\nparts of MEASURE, {len(pages)} real pages, median of {2 * ROUNDS} of each page")
    print(f"  MEASURE, but for the log     {whole / len(pages) * 1e3:7.2f} ms CPU a page")
    for part, rest in sums.items():
        print(f"  {part:28s} {(whole - rest) / len(pages) * 1e3:7.2f} ms, {1 - rest / whole:5.1%}")


def bench_chunking(texts: list[bytes]) -> None:
    """Cuts and identities per second, on one long text and page by page."""
    joined = b"\n".join(texts)
    rows = (
        ("cuts, all texts joined", lambda: cuts(joined), len(joined)),
        ("cuts, page by page", lambda: [cuts(text) for text in texts], sum(map(len, texts))),
        ("cuts and identities, page by page", lambda: [chunk(text) for text in texts], sum(map(len, texts))),
    )
    print(f"\nCDC, {len(texts)} main texts, median {statistics.median(map(len, texts)):.0f} bytes (goal >= 20 MB/s)")
    for name, work, size in rows:
        seconds = statistics.median(cpu_s(work) for _ in range(ROUNDS))
        print(f"  {name:36s} {size / seconds / 1e6:6.1f} MB/s")


def bench_workers(pages: list[RawPage]) -> None:
    """Wall time of the pool with one and two workers, and a worker's time to be ready."""
    print("\nworkers (wall clock)")
    times = []
    for workers in (1, 2):
        started = time.perf_counter()
        pool = ExtractionPool(MeasureSettings(workers=workers))
        try:
            pool.map(pages[:1])
            ready = time.perf_counter() - started
            times.append(statistics.median(wall_and_cpu_s(lambda: pool.map(pages))[0] for _ in range(ROUNDS)))  # noqa: B023
        finally:
            pool.close()
        print(f"  {workers}: first page after {ready:.2f} s, {len(pages) / times[-1]:6.1f} pages/s")
    print(f"  ratio 2 : 1  {times[0] / times[1]:.2f} on {os.cpu_count()} cores (goal >= 1.8)")


def bench_memory(pages: list[RawPage], extractor: Any) -> None:
    """Resident memory of one worker without recycling, every 500 of 5,000 pages; the largest page comes first."""
    settings = MeasureSettings(workers=1, time_limit_s=120, extractor=extractor)
    pool = ExtractionPool(settings, recycle_pages=1_000_000)
    ordered = sorted(pages, key=lambda page: -len(page.body))[:20] + pages
    series = []
    try:
        for start in range(0, 5_000, 500):
            pool.map([ordered[number % len(ordered)] for number in range(start, start + 500)])
            series.append(memory_mib(pid=pool.pids[0]))
    finally:
        pool.close()
    print(
        f"\n{extractor}: worker's resident memory, MiB, every 500 pages: " + " ".join(f"{size:.0f}" for size in series)
    )


if __name__ == "__main__":
    main()
