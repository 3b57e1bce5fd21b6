"""The built-in detector's speed and errors, and TALLY's speed.

Run by `python -m tests.bench.bench_scoring`. Every figure is printed with the one measured at design time.
"""

from __future__ import annotations

import math
import re
import statistics
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from lab.detector.evaluation import measure_pages
from lab.detector.regression import Model
from lab.detector.texts import read_pages
from scoring.calibration.labelled_scores import auroc
from scoring.lite_ngram.detector import LiteNgram
from scoring.lite_ngram.words import normalise
from scoring.sites.sprt import LITE_NGRAM_PARAMS, SiteTest
from scoring.stages.tally import TallyStage
from stream.log.sql_state import MemoryState
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Hit, Score, Verdict
from tests.bench.timing import cpu_s, json_lines
from tests.support.pages.page_records import text_score
from tests.support.paths import data_root
from tests.support.real_sites import of_flags
from tests.tools.renew_card import PAGE_SETS

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[.,!?;:\"()—]")


def main() -> None:
    detector = LiteNgram.load()
    data = data_root() / "data"
    print(f"{detector.identity}\n{detector.warning}\n")
    if not data.is_dir():
        print(f"no test data at {data}: the rest needs it")
        return
    speed(detector, [row["text"] for row in json_lines(data / "texts" / "dev.jsonl.zst")])
    human_pages(detector, data / "pages")
    sample_web(detector, data / "sampleweb" / "pages.jsonl.zst")
    tally_speed()


def naive_margin(text: str, weights: Sequence[float]) -> float:
    """The recipe in its simplest form: a loop over a Counter of n-grams."""
    words = _WORD.findall(normalise(text).lower())
    grams = Counter([*words, *(f"{a} {b}" for a, b in pairwise(words))])
    vector: dict[int, float] = {}
    for gram, tf in grams.items():
        crc = zlib.crc32(gram.encode())
        value = (-1.0 if crc >> 31 else 1.0) * (1 + math.log(tf))
        vector[crc & 32767] = vector.get(crc & 32767, 0.0) + value
    length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return sum(weights[bucket] * value for bucket, value in vector.items()) / length


def speed(detector: LiteNgram, texts: list[str]) -> None:
    """Texts per second of CPU time on one core, and the naive loop in the same run."""
    weights = detector.weights.vector.tolist()
    texts = texts[:1000]

    def naive() -> object:
        return [naive_margin(text, weights) for text in texts]

    fast_s, naive_s = [], []
    for _ in range(5):
        fast_s.append(cpu_s(lambda: detector.score(texts)))
        naive_s.append(cpu_s(naive))
    fast, slow = len(texts) / statistics.median(fast_s), len(texts) / statistics.median(naive_s)
    words = statistics.median(len(text.split()) for text in texts)
    print(f"speed, {len(texts)} texts of median {words:.0f} words, median of 5 runs, CPU time (study ~1,100/s)")
    print(f"  lite-ngram {fast:7.0f} texts/s   naive loop {slow:7.0f} texts/s   ratio {fast / slow:.2f}\n")


def human_pages(detector: LiteNgram, pages: Path) -> None:
    """Share of human web pages flagged at p > .95, by length of the opening."""
    print("real web pages by people, flagged at p > .95 (study 1.0-1.5% from 100 words up, 2.9% at 60)")
    header = detector.weights.header
    model = Model(detector.weights.vector, header.intercept, header.threshold, header.calibration)
    sets = [one for name in PAGE_SETS for one in read_pages(pages / name / "gold.jsonl").sets]
    for row in measure_pages(model, sets):
        cells = (f"{cell.words}: {cell.flagged or 0:6.2%} of {cell.texts:<4d}" for cell in row.cells)
        print(f"  {row.name:22s} {'  '.join(cells)}")
    print()


def sample_web(detector: LiteNgram, path: Path) -> None:
    """Texts and sites of generators that are not in the training texts."""
    rows = list(json_lines(path))
    scores = detector.score([row["text"] for row in rows])
    margin: dict[str, list[float]] = {"human": [], "llm": []}
    found: dict[str, list[bool]] = {}
    flags: dict[tuple[str, str], list[bool]] = {}
    for row, score in zip(rows, scores, strict=True):
        if score.score is not None and score.flag is not None:
            margin[row["label"]].append(score.score)
            found.setdefault(f"{row['label']} {row['src']}", []).append(score.flag)
            flags.setdefault((row["site"], row["label"]), []).append(score.flag)
    abstained = Counter(score.abstain for score in scores if score.abstain)
    whole = auroc(np.array(margin["human"]), np.array(margin["llm"])) or math.nan
    print(f"sampleweb, most generators not in training: AUROC {whole:.3f} (study .991); abstained {dict(abstained)}")
    for name, texts in sorted(found.items()):
        print(f"  {name:20s} flagged {statistics.mean(texts):6.1%} of {len(texts)}")
    test = SiteTest(LITE_NGRAM_PARAMS)
    verdicts = Counter((label, test.decide(of_flags(site)).verdict) for (_, label), site in flags.items())
    right = sum(count for (label, verdict), count in verdicts.items() if label == verdict)
    print(f"  sites right {right} of {len(flags)}: {dict(sorted(verdicts.items()))}\n")


def tally_speed() -> None:
    """Records per second through TALLY: 60 sites of 15 pages, a hit, a verdict and a score for each page."""
    detector = "lite-ngram/00000000/p0.95"
    records: list[Hit | Verdict | Score] = []
    for number in range(900):
        site, url, page, text = f"site-{number % 60}.example", f"https://a/{number}", f"{number:016x}", f"{number:032x}"
        records.append(Hit(id=f"hit-{number}", site=site, url=url, query_id=f"q{number % 7}", rank=number % 30))
        records.append(Verdict(id=page, site=site, url=url, page_id=page, verdict="article", text_digest=text))
        records.append(text_score(site, text, detector, number % 3 > 0, page, page))

    def run() -> None:
        stage, store = TallyStage(detector), MemoryState()
        for start in range(0, len(records), 100):
            state = KeyedState(store)
            ctx = Context(0, state, Meter(), start)
            for record in records[start : start + 100]:
                stage.process(record, record, ctx)
            stage.tick({0: ctx})
            store.apply(state.changes())

    seconds = statistics.median(cpu_s(run) for _ in range(5))
    print(f"TALLY: {len(records) / seconds:,.0f} records/s of CPU time (no log), 60 sites of 15 pages\n")


if __name__ == "__main__":
    main()
