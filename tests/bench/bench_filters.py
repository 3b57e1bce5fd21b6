"""What measuring and judging cost: MEASURE beside bare Trafilatura, extractors by the labels, chunking, workers, judge.

Needs the labelled pages (FARMWATCH_TEST_DATA). CPU seconds of one core; both measure the same pages, round by round.
Names of tables as arguments print only these.
"""

from __future__ import annotations

import collections
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import zstandard

from crawler.web.urls import site_of
from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters import measure_stage
from filters.duplicates.chunker import chunk, cuts
from filters.duplicates.shingles import outline
from filters.extraction import trafilatura_text
from filters.extraction.blocks import Definition, columns
from filters.extraction.extractor import extract
from filters.judge_stage import JudgeStage
from filters.measure import page_measures as measuring
from filters.measure.page_measures import Measured, RawPage, measure_raw
from filters.measure.workers import ExtractionPool
from filters.measure_stage import MeasureStage
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.site_memory.memory import SiteMemory
from filters.site_memory.rows import NoState
from stream.memory.state import MemoryState
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Features, Page, decode, encode
from tests.support.extraction_peer import bare, bare_text, f1, gold_pages

ROUNDS = 3
PAGES = 300
_RULESETS = {name: load_ruleset(name) for name in ("notes", "default")}


def main() -> None:
    """Print the tables."""
    root = (
        Path(os.environ.get("FARMWATCH_TEST_DATA", Path(__file__).resolve().parents[3] / "shared")) / "data" / "pages"
    )
    if not root.is_dir():
        sys.exit(f"the labelled pages are not at {root}: set FARMWATCH_TEST_DATA")
    files = sorted(root.glob("*/html/*.zst"))
    labels = LabelledPages(root).labels
    records = [_record(root, label) for label in labels[:: len(labels) // PAGES]]
    pages = [RawPage(page.url, page.encoding, page.body) for page in records]
    chosen = sys.argv[1:] or ["measure", "extractors", "chunking", "workers", "memory", "judge"]
    if "measure" in chosen:
        bench_measure(records)
    if "extractors" in chosen:
        bench_extractors(root)
    if "chunking" in chosen:
        results = [measure_raw(page, MeasureSettings()) for page in pages]
        bench_chunking([result.text.encode() for result in results if result.text])
    if "workers" in chosen:
        bench_workers(pages)
    if "memory" in chosen:
        bench_memory([RawPage("https://x.example/a", "utf-8", file.read_bytes()) for file in files])
    if "judge" in chosen:
        bench_judge(pages)


def _record(root: Path, label: Label) -> Page:
    body = (root / label.source / "html" / f"{label.id}.html.zst").read_bytes()
    site = site_of(label.url) if label.url else label.id
    return Page(id=label.id, site=site, page_id=label.id, url=label.url, encoding="utf-8", body=body)


class _Here(ExtractionPool):
    """Measures in this process; pages and results are encoded and decoded as for a worker."""

    def __init__(self, settings: MeasureSettings) -> None:
        self._here = settings

    def map(self, pages: Sequence[RawPage]) -> list[Measured]:
        """Results in the order of the pages."""
        sent = [msgspec.msgpack.decode(msgspec.msgpack.encode(page), type=RawPage) for page in pages]
        answers = [msgspec.msgpack.encode(measure_raw(page, self._here)) for page in sent]
        return [msgspec.msgpack.decode(answer, type=Measured) for answer in answers]


class _Measure:
    """MEASURE on one record after another: decoding, the stage, its outputs encoded. Left out: log and pipes."""

    def __init__(self) -> None:
        settings = MeasureSettings()
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


class _Parts:
    """Time spent in parts of a call, each without that of the parts within it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self._within = 0.0

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time added up under a name."""

        def call(*args: Any, **kwargs: Any) -> Any:
            around, self._within = self._within, 0.0
            started = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.process_time() - started
                self.seconds[name] += spent - self._within
                self._within = around + spent

        return call


def bench_measure(pages: list[Page]) -> None:
    """Everything of MEASURE but the log, from a page record to its features record, beside one bare Trafilatura call.

    Same pages, same options, in turn; the garbage collector leaves alone what is loaded, as in a worker process, on
    both sides. The pages are of the sites that they are from: most are the only one of their site here.
    """
    records = [encode(page) for page in pages]
    inflate = zstandard.ZstdDecompressor()
    htmls = [inflate.decompress(page.body, max_output_size=1 << 26).decode("utf-8", "replace") for page in pages]
    whole = _Measure()
    results = [decode(Features, whole(record)) for record in records]  # warm
    for html in htmls[:20]:
        bare(html)
    gc.collect()
    gc.freeze()
    ours, theirs = [[9e9] * len(pages) for _ in range(2)]
    for _ in range(ROUNDS):
        whole = _Measure()
        for first in range(len(pages)):
            # In turn, so that a busy machine slows both; half a round apart, so that no lines are cached by the other.
            second = (first + len(pages) // 2) % len(pages)
            record, html = records[first], htmls[second]
            ours[first] = min(ours[first], cpu_of(lambda: whole(record)))  # noqa: B023  # called at once
            theirs[second] = min(theirs[second], cpu_of(lambda: bare(html)))  # noqa: B023
    again = [number for number, result in enumerate(results) if result.extract_path == "precision"]
    retries = sum(min(cpu_of(lambda: bare(htmls[n], precision=True)) for _ in range(ROUNDS)) for n in again)  # noqa: B023
    parts, at_caps = _parts(records, results)
    gc.unfreeze()
    size, sites = sum(map(len, htmls)) / 1e6, len({page.site for page in pages})
    print(f"\nMEASURE, {len(pages)} real pages of {sites} sites, {size:.1f} MB of HTML, best of {ROUNDS} each")
    print(f"  one bare call of Trafilatura {sum(theirs) / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  MEASURE, but for the log     {sum(ours) / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  ratio                        {sum(ours) / sum(theirs):7.3f}   (goal <= 1.25)")
    print(f"  ratio to the same calls      {sum(ours) / (sum(theirs) + retries):7.3f}   ({len(again)} retries)")
    found = collections.Counter(result.extract_error or result.extract_path for result in results)
    print("  paths: " + ", ".join(f"{name} {count}" for name, count in found.most_common()))
    print("  of it, ms CPU a page, in place (another round, with the clocks' own time in it):")
    for name, seconds in sorted(parts.items(), key=lambda part: -part[1]):
        print(f"    {name:<52} {seconds / len(pages) * 1e3:7.3f}")
    print(f"    {'compare, if all were of one site at its caps':<52} {at_caps / len(pages) * 1e3:7.3f}")


def _parts(records: list[bytes], results: list[Features]) -> tuple[dict[str, float], float]:
    """CPU seconds of the parts of MEASURE on the records, and of the comparison on a site at its caps."""
    parts = _Parts()
    extraction = trafilatura_text._trafilatura
    modes = {mode: parts.timed(f"extract: Trafilatura, {mode}", extraction) for mode in ("recall", "precision")}
    places: list[tuple[Any, str, str]] = [
        (sys.modules[__name__], "decode", "page record decoded"),
        (measure_stage, "features_of", "features built"),
        (Context, "emit", "features encoded"),
        (SiteMemory, "compare", "compare with the site"),
        (measuring, "extract", "extract: charset, guards, freeing the tree"),
        (trafilatura_text, "parse", "extract: parse, again for a retry"),
        (measuring, "measure_quality", "quality"),
        (measuring, "identify", "language"),
        (measuring, "outline_of", "outline: shingles, sketch, simhash"),
        (measuring, "words_of", "words"),
        (measuring, "chunk", "chunks"),
    ]
    with ExitStack() as patches:
        for owner, name, shown in places:
            patches.enter_context(patch.object(owner, name, parts.timed(shown, getattr(owner, name))))
        by_mode = patch.object(trafilatura_text, "_trafilatura", lambda tree, mode: modes[mode](tree, mode))
        patches.enter_context(by_mode)
        whole = parts.timed("the rest: inflating, to and from a worker, counts", _Measure())
        for record in records:
            whole(record)
    return parts.seconds, _at_caps(results)


def _at_caps(results: list[Features]) -> float:
    """CPU seconds of comparing and remembering each text on a site that has all that is remembered of one."""
    settings = MeasureSettings()
    texts = [result.text for result in results if result.text]
    known = [(chunk(text.encode("utf-8", "replace")), outline(text, settings.shingles_per_site)) for text in texts]
    memory, seconds = SiteMemory(settings), 0.0
    for number in range(settings.pages_per_site + len(known)):
        chunks, outlined = known[number % len(known)]
        started = time.process_time()
        memory.compare(NoState(), 0, "site", str(number), chunks, outlined)
        seconds += time.process_time() - started if number >= settings.pages_per_site else 0
    return seconds


def bench_extractors(root: Path) -> None:
    """Every labelled page by each extractor: F1 by the labels for each source, and CPU time."""
    peer = "same calls of Trafilatura"
    names = ("trafilatura", peer, "its first call alone", "resiliparse")
    spent = dict.fromkeys(names, 0.0)
    print("\nmain texts, F1 by the labels, all pages (goal: trafilatura within .005 of the same calls)")
    print(f"  {'source':18s} {'pages':>5s} " + " ".join(f"{name:>{max(8, len(name))}s}" for name in names))
    count = 0
    for source in sorted(path for path in root.iterdir() if path.is_dir()):
        pages = list(gold_pages(source))
        count += len(pages)
        texts: dict[str, list[str]] = {name: [] for name in names}
        for page in pages:
            again = False
            for name in ("trafilatura", "resiliparse"):
                started = time.process_time()
                found = extract(page.html, "", MeasureSettings(extractor=name))
                spent[name] += time.process_time() - started
                texts[name].append(found.text)
                again = again or len(found.tried) > 1
            started = time.process_time()
            once = bare_text(page.html, retried=False)
            spent["its first call alone"] += time.process_time() - started
            texts["its first call alone"].append(once)
            texts[peer].append(bare_text(page.html, retried=True) if again else once)
            spent[peer] += time.process_time() - started
        scores = " ".join(f"{f1(texts[name], pages):{max(8, len(name))}.4f}" for name in names)
        print(f"  {source.name:18s} {len(pages):5d} {scores}", flush=True)
    each = " ".join(f"{spent[name] / count * 1e3:{max(8, len(name))}.2f}" for name in names)
    print(f"  {'ms CPU a page':18s} {count:5d} {each}")


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
        seconds = statistics.median(cpu_of(work) for _ in range(ROUNDS))
        print(f"  {name:36s} {size / seconds / 1e6:6.1f} MB/s")


def bench_workers(pages: list[RawPage]) -> None:
    """Wall time of the pool with one and two workers, and how long a worker takes to be ready."""
    print("\nworkers (wall clock)")
    times = []
    for workers in (1, 2):
        started = time.perf_counter()
        pool = ExtractionPool(MeasureSettings(workers=workers))
        try:
            pool.map(pages[:1])
            ready = time.perf_counter() - started
            times.append(statistics.median(wall_of(lambda: pool.map(pages)) for _ in range(ROUNDS)))  # noqa: B023
        finally:
            pool.close()
        print(f"  {workers}: first page after {ready:.2f} s, {len(pages) / times[-1]:6.1f} pages/s")
    print(f"  ratio 2 : 1  {times[0] / times[1]:.2f} on {os.cpu_count()} cores (goal >= 1.8)")


def bench_memory(pages: list[RawPage]) -> None:
    """Resident memory of one worker that is not recycled, every 500 of 5,000 pages; the largest page comes first."""
    pool = ExtractionPool(MeasureSettings(workers=1, recycle_pages=1_000_000, time_limit_s=120))
    ordered = sorted(pages, key=lambda page: -len(page.body))[:20] + pages
    series = []
    try:
        for start in range(0, 5_000, 500):
            pool.map([ordered[number % len(ordered)] for number in range(start, start + 500)])
            series.append(_resident_mib(pool.pids[0]))
    finally:
        pool.close()
    print("\nworker's resident memory, MiB, every 500 pages: " + " ".join(f"{size:.0f}" for size in series))


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def bench_judge(pages: list[RawPage]) -> None:
    """The pure function, and the stage with decoding and encoding around it."""
    measurer = Measurer(MeasureSettings())
    inflate = zstandard.ZstdDecompressor()
    features = [
        measurer.measure(page.url, inflate.decompress(page.body, max_output_size=1 << 26), "x.example", page_id=str(n))
        for n, page in enumerate(pages)
    ]
    records = [encode(found) for found in features]
    stage = JudgeStage(load_ruleset("default"))
    print(
        f"\nJUDGE, {len(features)} features, {sum(map(len, records)) / len(records):.0f} bytes each, median of {ROUNDS}"
    )

    def whole_stage() -> None:
        context = Context(0, None, Meter(), 0)
        for record in records:
            stage.process(decode(Features, record), None, context)

    notes, default = _RULESETS["notes"], _RULESETS["default"]
    rows: list[tuple[str, Callable[[], Any]]] = [
        ("judge, ruleset notes", lambda: [judge(found, notes) for found in features]),
        ("judge, ruleset default", lambda: [judge(found, default) for found in features]),
    ]
    rows.append(("stage: decode, judge, encode (no log)", whole_stage))
    rows.append(("block table alone", lambda: [columns(found.blocks, Definition.RUN) for found in features]))
    for name, work in rows:
        work()
        seconds = statistics.median(cpu_of(work) for _ in range(ROUNDS))
        print(f"  {name:38s} {len(features) / seconds:8.0f} features/s   {seconds / len(features) * 1e6:6.1f} us each")


def cpu_of(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def wall_of(work: Callable[[], Any]) -> float:
    """Seconds of wall clock of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
