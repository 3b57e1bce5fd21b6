"""What the quality measures cost beside datatrove's filters, on the main texts of the labelled pages.

Needs the labelled pages (FARMWATCH_TEST_DATA). CPU seconds of one core. Ours are all measures (Gopher, C4, FineWeb,
DOLMa) of the main text and of the C4-cleaned text; theirs are the four filters (C4, Gopher quality, Gopher repetition,
FineWeb) with the same tokens and sentences, once on the main text alone and once on both texts. A filter stops at the
first rule that fails, ours never.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils import text as datatrove_text
from datatrove.utils import word_tokenizers

from filters.c4 import clean
from filters.measuring import RawPage
from filters.quality import measure_quality
from filters.sentences import split_sentences
from filters.settings import MeasureSettings
from filters.tokenizers import find_tokenizer
from filters.workers import ExtractionPool

ROUNDS = 3
PAGES = 600


class SameTokens:
    """Stands where datatrove loads a language's tokenizer: our tokens, our sentences."""

    def __init__(self, tokenizer: str) -> None:
        self.word_tokenize = find_tokenizer(tokenizer)

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Ends of the sentences; datatrove cuts there."""
        ends: list[tuple[int, int]] = []
        start = 0
        for sentence in split_sentences(text):
            end = text.index(sentence, start) + len(sentence)
            ends.append((start, end))
            start = end
        return ends


def main() -> None:
    """Print the tables."""
    root = (
        Path(os.environ.get("FARMWATCH_TEST_DATA", Path(__file__).resolve().parents[3] / "shared")) / "data" / "pages"
    )
    if not root.is_dir():
        sys.exit(f"the labelled pages are not at {root}: set FARMWATCH_TEST_DATA")
    texts = main_texts(sorted(root.glob("*/html/*.zst")))
    chars = statistics.median(map(len, texts))
    print(f"quality measures, {len(texts)} main texts, median {chars:.0f} characters; best of {ROUNDS} for each text")
    gc.collect()
    gc.freeze()
    for tokenizer in ("whitespace", "words"):
        beside_datatrove(texts, tokenizer)


def main_texts(files: Sequence[Path]) -> list[str]:
    """The main texts of some of the pages, spread over all of them."""
    chosen = files[:: max(1, len(files) // PAGES)]
    pool = ExtractionPool(MeasureSettings())
    try:
        measured = pool.map([RawPage("https://x.example/a", "utf-8", file.read_bytes()) for file in chosen])
    finally:
        pool.close()
    return [page.text for page in measured if page.text]


def beside_datatrove(texts: list[str], tokenizer: str) -> None:
    """Ours beside theirs, text by text in turn, so that a busy machine slows all of them."""
    word_tokenizers.load_word_tokenizer = lambda _language: SameTokens(tokenizer)
    filters = [C4QualityFilter(), GopherQualityFilter(), GopherRepetitionFilter(), FineWebQualityFilter()]

    def theirs(text: str) -> None:
        datatrove_text.split_into_parts.cache_clear()  # it keeps the last five texts' words
        for one in filters:
            one.filter(Document(text=text, id=""))

    cleaned = [clean(text).text for text in texts]
    best = [[9e9] * len(texts) for _ in range(3)]
    for _ in range(ROUNDS):
        for place, text in enumerate(texts):
            runs: list[Callable[[], Any]] = [
                lambda: measure_quality(text, tokenizer),  # noqa: B023  # called at once
                lambda: theirs(text),  # noqa: B023
                lambda: theirs(cleaned[place]) if cleaned[place] != text else None,  # noqa: B023
            ]
            for times, work in zip(best, runs, strict=True):
                started = time.process_time()
                work()
                times[place] = min(times[place], time.process_time() - started)
    ours, once, again = best
    both = [first + second for first, second in zip(once, again, strict=True)]
    print(f"\ntokenizer {tokenizer}: ms CPU a page   {'median':>8s} {'mean':>8s}")
    for name, times in (
        ("ours, main and cleaned text", ours),
        ("datatrove, main text", once),
        ("datatrove, both texts", both),
    ):
        print(f"  {name:30s}        {statistics.median(times) * 1e3:8.3f} {sum(times) / len(times) * 1e3:8.3f}")
    for name, times in (("datatrove, main text", once), ("datatrove, both texts", both)):
        ratios = [their / our for our, their in zip(ours, times, strict=True)]
        total = sum(times) / sum(ours)
        print(f"  {name} : ours   {statistics.median(ratios):5.1f} median of pages   {total:5.1f} in all")


if __name__ == "__main__":
    main()
