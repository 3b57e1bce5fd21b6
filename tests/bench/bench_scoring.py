"""The built-in detector's speed and errors, and TALLY's speed.

Run by `python -m tests.bench.bench_scoring`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from pathlib import Path

import numpy as np

from scoring.calibration.labelled_scores import auroc
from scoring.lite_ngram.detector import LiteNgram
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


def main() -> None:
    detector = LiteNgram.load()
    data = data_root() / "data"
    print(f"{detector.identity}\n{detector.warning}\n")
    if not data.is_dir():
        print(f"no test data at {data}: the rest needs it")
        return
    speed(detector, [row["text"] for row in json_lines(data / "texts" / "dev.jsonl.zst")])
    sample_web(detector, data / "sampleweb" / "pages.jsonl.zst")
    tally_speed()


def speed(detector: LiteNgram, texts: list[str]) -> None:
    """Texts per second of CPU time on one core."""
    texts = texts[:1000]
    fast = len(texts) / statistics.median(cpu_s(lambda: detector.score(texts)) for _ in range(5))
    words = statistics.median(len(text.split()) for text in texts)
    print(f"speed, {len(texts)} texts of median {words:.0f} words, median of 5 runs, CPU time: {fast:,.0f} texts/s\n")


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
    print(f"sampleweb, most generators not in training: AUROC {whole:.3f}; abstained {dict(abstained)}")
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
