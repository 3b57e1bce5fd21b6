"""What measuring and judging cost: MEASURE beside bare Trafilatura, chunking, workers, judge; and what rulesets keep.

Needs the labelled pages (FARMWATCH_TEST_DATA). CPU seconds of one core; both measure the same pages, round by round.
"""

from __future__ import annotations

import collections
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trafilatura
import zstandard

from filters.blocks import Definition, measured
from filters.chunking import chunk, cuts
from filters.judge_stage import JudgeStage
from filters.judging import judge
from filters.language import identify
from filters.measurer import Measurer
from filters.measuring import Measured, RawPage, measure_raw
from filters.ruleset import load_ruleset
from filters.settings import JudgeSettings, MeasureSettings
from filters.workers import ExtractionPool
from stream.metrics import Meter
from stream.records import Features, decode, encode
from stream.stage import Context

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
    results = bench_measure(pages)
    texts = [result.text.encode() for result in results if result.text]
    bench_chunking(texts)
    bench_language([result.text for result in results if result.text])
    bench_workers(pages)
    bench_judge(pages)
    pass_rates(root / "wcxb")


def bench_measure(pages: list[RawPage]) -> list[Measured]:
    """MEASURE's whole work on a page beside Trafilatura alone, same pages, same options, in turn."""
    settings = MeasureSettings()
    inflate = zstandard.ZstdDecompressor()
    htmls = [inflate.decompress(page.body, max_output_size=1 << 26).decode("utf-8", "replace") for page in pages]

    def bare(html: str, precision: bool = False) -> Any:
        return trafilatura.bare_extraction(
            html,
            favor_recall=not precision,
            favor_precision=precision,
            include_comments=False,
            include_links=True,
            include_formatting=True,
            output_format="xml",
        )

    results = [measure_raw(page, settings) for page in pages]  # warm
    for html in htmls[:20]:
        bare(html)
    gc.collect()
    gc.freeze()  # as in a worker process; both sides gain
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
    print(f"\nMEASURE, {len(pages)} real pages, {size:.1f} MB of HTML, best of {ROUNDS} for each page")
    print(f"  bare Trafilatura  {sum(theirs) / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  MEASURE           {sum(ours) / len(pages) * 1e3:7.2f} ms CPU a page")
    print(f"  ratio             {sum(ours) / sum(theirs):7.3f}   (goal <= 1.15)")
    again = [number for number, result in enumerate(results) if len(result.tried) > 1]
    retries = sum(min(cpu_of(lambda: bare(htmls[n], True)) for _ in range(ROUNDS)) for n in again)  # noqa: B023
    print(f"  ratio to the same Trafilatura calls, {len(again)} retries for precision included: ", end="")
    print(f"{sum(ours) / (sum(theirs) + retries):.3f}")
    print("  paths: " + ", ".join(f"{name} {count}" for name, count in paths.most_common()))
    return results


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


def bench_language(texts: list[str]) -> None:
    """Cost of the identifier's sample, and how often it disagrees with the whole text."""
    from filters.language import _identifier

    seconds = cpu_of(lambda: [identify(text) for text in texts])
    whole_seconds = cpu_of(lambda: [_identifier().classify(text) for text in texts])
    differ = sum(identify(text)[0] != _identifier().classify(text)[0] for text in texts)
    each_ms = [spent / len(texts) * 1e3 for spent in (seconds, whole_seconds)]
    print(f"\nlanguage: sample {each_ms[0]:.2f} ms a page, whole text {each_ms[1]:.2f} ms")
    print(f"  {differ} of {len(texts)} texts differ")


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
    print(f"  ratio 2 : 1  {times[0] / times[1]:.2f} on {os.cpu_count()} cores")


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


def pass_rates(folder: Path) -> None:
    """Share of labelled pages that each ruleset keeps, by kind of page."""
    gold = [json.loads(line) for line in (folder / "gold.jsonl").read_text().strip().split("\n")]
    settings = MeasureSettings(workers=2)
    pool = ExtractionPool(settings)
    try:
        results = pool.map(
            [
                RawPage(
                    row["url"] or "https://x.example/a",
                    "utf-8",
                    (folder / "html" / f"{row['id']}.html.zst").read_bytes(),
                )
                for row in gold
            ]
        )
    finally:
        pool.close()
    kept: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    reasons: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row, found in zip(gold, results, strict=True):
        features = Features(
            id=row["id"],
            site="x.example",
            page_id=row["id"],
            url=row["url"] or "",
            epoch="",
            extract_path=found.path,
            extract_error=found.error,
            measures={**found.measures, "duplicate_share": 0.0},
            blocks=found.blocks,
        )
        counts = kept[row["page_type"]]
        counts[0] += 1
        for column, name in ((1, "notes"), (2, "default")):
            verdict = judge(features, _RULESETS[name])
            counts[column] += verdict.verdict == "article"
            if row["page_type"] == "article":
                reasons[name].update(verdict.failed)
    print(f"\npages kept, wcxb ({len(gold)} labelled pages; each is alone on its site)")
    print(f"  {'page type':16s} {'pages':>5s} {'notes':>6s} {'default':>7s}")
    others = [0, 0, 0]
    for kind, counts in sorted(kept.items(), key=lambda item: item[0] != "article"):
        print(f"  {kind:16s} {counts[0]:5d} {counts[1] / counts[0]:6.2f} {counts[2] / counts[0]:7.2f}")
        if kind != "article":
            others = [a + b for a, b in zip(others, counts, strict=True)]
    print(f"  {'not article':16s} {others[0]:5d} {others[1] / others[0]:6.2f} {others[2] / others[0]:7.2f}")
    for name, counter in reasons.items():
        print(f"  articles failing, {name}: " + ", ".join(f"{rule} {count}" for rule, count in counter.most_common()))


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
