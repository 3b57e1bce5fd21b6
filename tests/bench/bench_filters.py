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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from filters.blocks import Definition, measured
from filters.chunking import chunk, cuts
from filters.extraction import extract
from filters.judge_stage import JudgeStage
from filters.judging import judge
from filters.measurer import Measurer
from filters.measuring import RawPage, measure_raw
from filters.ruleset import load_ruleset
from filters.settings import JudgeSettings, MeasureSettings
from filters.workers import ExtractionPool
from stream.metrics import Meter
from stream.records import Features, decode, encode
from stream.stage import Context
from tests.extraction_peer import bare, bare_text, f1, gold_pages

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
    pages = [
        RawPage(f"https://{file.parts[-3]}.example/{file.stem}", "utf-8", file.read_bytes())
        for file in files[:: len(files) // PAGES]
    ]
    chosen = sys.argv[1:] or ["measure", "extractors", "chunking", "workers", "memory", "judge"]
    if "measure" in chosen:
        bench_measure(pages)
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


def bench_measure(pages: list[RawPage]) -> None:
    """MEASURE's whole work on a page beside one call of Trafilatura, same pages, same options, in turn.

    First with a garbage collector that leaves alone what is loaded, as in a worker process; then as Python comes.
    """
    for frozen in (True, False):
        _bench_measure(pages, frozen)


def _bench_measure(pages: list[RawPage], frozen: bool) -> None:
    settings = MeasureSettings()
    inflate = zstandard.ZstdDecompressor()
    htmls = [inflate.decompress(page.body, max_output_size=1 << 26).decode("utf-8", "replace") for page in pages]

    results = [measure_raw(page, settings) for page in pages]  # warm
    for html in htmls[:20]:
        bare(html)
    gc.collect()
    if frozen:
        gc.freeze()  # both sides gain
    ours, theirs = [[9e9] * len(pages) for _ in range(2)]
    for _ in range(ROUNDS):
        for first in range(len(pages)):
            # In turn, so that a busy machine slows both; half a round apart, so that no lines are cached by the other.
            second = (first + len(pages) // 2) % len(pages)
            page, html = pages[first], htmls[second]
            ours[first] = min(ours[first], cpu_of(lambda: measure_raw(page, settings)))  # noqa: B023  # called at once
            theirs[second] = min(theirs[second], cpu_of(lambda: bare(html)))  # noqa: B023
    paths = collections.Counter(result.error or "+".join(result.tried) + " → " + result.path for result in results)
    size = sum(map(len, htmls)) / 1e6
    gc.unfreeze()
    collector = "a worker's" if frozen else "Python's default"
    print(f"\nMEASURE, {len(pages)} real pages, {size:.1f} MB of HTML, best of {ROUNDS} each, collector: {collector}")
    print(f"  bare Trafilatura  {sum(theirs) / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  MEASURE           {sum(ours) / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  ratio             {sum(ours) / sum(theirs):7.3f}   (goal <= 1.25)")
    again = [number for number, result in enumerate(results) if len(result.tried) > 1]
    retries = sum(min(cpu_of(lambda: bare(htmls[n], precision=True)) for _ in range(ROUNDS)) for n in again)  # noqa: B023
    print(f"  ratio to the same Trafilatura calls, {len(again)} retries for precision included: ", end="")
    print(f"{sum(ours) / (sum(theirs) + retries):.3f}")
    print("  paths: " + ", ".join(f"{name} {count}" for name, count in paths.most_common()))


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
    stage = JudgeStage(JudgeSettings())
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
    rows.append(("block table alone", lambda: [measured(found.blocks, Definition.RUN) for found in features]))
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
