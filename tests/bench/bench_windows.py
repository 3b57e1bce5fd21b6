"""More of an article than its opening: tokens read and CPU seconds with 1, 2 and 4 windows of 512 tokens.

    python -m tests.bench.bench_windows [pages]

The lengths are those of real pages: shared/data/scores/page_scores.csv, 69 sites, 4 tokens to 3 words. A text repeats a
word of one token. A tiny pair and a tiny encoder read a sample of the pages (default 300), with one thread. The sites'
scores in that file are of openings, so what more windows change in site verdicts cannot be computed from them.
"""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.timing import argument, cpu_s
from tests.support.encoders import build_encoder
from tests.support.encoders import settings_of as encoder_settings
from tests.support.pairs import build_pair
from tests.support.pairs import settings_of as pair_settings
from tests.support.paths import data_root

WINDOWS, TOKENS, SHORTEST = (1, 2, 4), 512, 128


def read_tokens(tokens: int, windows: int) -> int:
    """Of a text, without a short last window."""
    whole, rest = divmod(tokens, TOKENS)
    return TOKENS * windows if whole >= windows else TOKENS * whole + (rest if rest >= SHORTEST or not whole else 0)


def main() -> None:
    import torch

    from scoring.encoder.detector import load_encoder_engine
    from scoring.pair.detector import load_pair_engine

    torch.set_num_threads(1)
    with (data_root() / "data" / "scores" / "page_scores.csv").open() as file:
        pages = [(row["generated"] == "1", int(row["words"]) * 4 // 3) for row in csv.DictReader(file)]
    pages = [page for page in pages if page[1] >= SHORTEST]
    for llm in (False, True):
        lengths = [tokens for label, tokens in pages if label == llm]
        longer = sum(tokens >= TOKENS + SHORTEST for tokens in lengths) / len(lengths)
        read = [sum(read_tokens(tokens, windows) for tokens in lengths) for windows in WINDOWS]
        said = ", ".join(f"{of / read[0]:.2f} with {windows}" for windows, of in zip(WINDOWS, read, strict=True))
        print(f"{len(lengths)} {'LLM' if llm else 'human'} pages: {longer:.0%} have a second window; tokens: {said}")
    sample = random.Random(1).sample(pages, argument(1, 300))
    with tempfile.TemporaryDirectory() as made:
        pair = build_pair(Path(made) / "pair", "gpt2")
        encoder = build_encoder(Path(made) / "encoder", "deberta-v2", pooled=True)
        own: dict[str, Any] = {"max_tokens": TOKENS, "min_tokens": SHORTEST}
        engines: dict[str, Callable[[int], Any]] = {
            "pair": lambda windows: load_pair_engine(pair_settings(pair, **own, windows=windows, batch_tokens=0)),
            "encoder": lambda windows: load_encoder_engine(encoder_settings(encoder, **own, windows=windows)),
        }
        for name, load in engines.items():
            spent, counted = [], []
            for windows in WINDOWS:
                engine = load(windows)
                texts = [" the" * tokens for _, tokens in sample]
                engine.read(texts[:20])
                before = engine.work.tokens
                spent.append(cpu_s(lambda engine=engine, texts=texts: engine.read(texts)))  # type: ignore[misc]
                counted.append(engine.work.tokens - before)
                engine.close()
            said = "; ".join(
                f"{windows} windows {tokens / counted[0]:.2f} times the tokens, {seconds / spent[0]:.2f} the CPU"
                for windows, tokens, seconds in zip(WINDOWS, counted, spent, strict=True)
            )
            print(f"{name}, {len(sample)} pages: {said} ({spent[0]:.1f} s)")


if __name__ == "__main__":
    main()
