"""The cost of the quality measures and of datatrove's filters, on the main texts of the labelled pages.

Needs the labelled pages (FARMWATCH_TEST_DATA). Times are CPU seconds of one core, every row on every text in turn, so
that a busy machine slows all of them. Ours are all measures (Gopher, C4, FineWeb, DOLMa), on the main text alone and on
it and the C4-cleaned text. Datatrove's are the four filters (C4, Gopher quality, Gopher repetition, FineWeb; DOLMa's
are not among them), each on the text as it is:

- with our tokens and sentences, on the main text alone and on both texts;
- as datatrove ships, on the main text: English words and sentences by spaCy, which is not among our dependencies (`pip
  install spacy`; without it the row is left out).

A filter stops at the first rule that fails; our measures never do.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Sequence
from importlib.util import find_spec
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

from filters.measure.page_measures import RawPage
from filters.measure.workers import ExtractionPool
from filters.quality.c4 import clean
from filters.quality.measures import measure_quality, measure_text
from filters.quality.tokens import TOKENIZERS, Tokens
from filters.settings import MeasureSettings
from tests.bench.timing import cpu_s, labelled_pages_folder
from tests.support.pages.sentences import split_sentences

ROUNDS = 2
PAGES = 300
OURS = ("ours, main text", "ours, main and cleaned text")


class SameTokens:
    """Replaces datatrove's tokenizer of a language: our tokens, our sentences."""

    def __init__(self, tokenizer: str) -> None:
        self.word_tokenize = TOKENIZERS[tokenizer]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Ends of the sentences, where datatrove cuts."""
        ends: list[tuple[int, int]] = []
        start = 0
        for sentence in split_sentences(text):
            end = text.index(sentence, start) + len(sentence)
            ends.append((start, end))
            start = end
        return ends


class Filters:
    """datatrove's four filters, with our tokenizer or their own."""

    def __init__(self, tokenizer: str = "") -> None:
        theirs = word_tokenizers.load_word_tokenizer
        same = SameTokens(tokenizer) if tokenizer else None
        self._load = (lambda _language: same) if same else theirs
        self._filters = [C4QualityFilter(), GopherQualityFilter(), GopherRepetitionFilter(), FineWebQualityFilter()]

    def __call__(self, *texts: str) -> None:
        datatrove_text.split_into_parts.cache_clear()  # it keeps the words of the last five texts
        word_tokenizers.load_word_tokenizer, before = self._load, word_tokenizers.load_word_tokenizer
        try:
            for text in texts:
                for one in self._filters:
                    one.filter(Document(text=text, id=""))
        finally:
            word_tokenizers.load_word_tokenizer = before


def main() -> None:
    texts = main_texts(sorted(labelled_pages_folder().glob("*/html/*.zst")))
    chars = statistics.median(map(len, texts))
    print(
        f"quality measures, {len(texts)} main texts, median {chars:.0f} characters; best of {2 * ROUNDS} for each text"
    )
    gc.collect()
    gc.freeze()
    for tokenizer in ("whitespace", "words"):
        show(tokenizer, measured(texts, rows(tokenizer)))
    if not find_spec("spacy"):
        print("\nno row for datatrove as it ships: that needs `pip install spacy`")


def main_texts(files: Sequence[Path]) -> list[str]:
    chosen = files[:: max(1, len(files) // PAGES)]
    pool = ExtractionPool(MeasureSettings())
    try:
        pages = pool.map([RawPage("https://x.example/a", "utf-8", file.read_bytes()) for file in chosen])
    finally:
        pool.close()
    return [page.text for page in pages if page.text]


def rows(tokenizer: str) -> dict[str, Callable[[str, str], Any]]:
    """Name of a row -> what it does with a main text and its cleaned text."""
    tokenize, same = TOKENIZERS[tokenizer], Filters(tokenizer)
    found: dict[str, Callable[[str, str], Any]] = {
        OURS[0]: lambda text, _: measure_text(text, Tokens.of(text, tokenize), clean(text)),
        OURS[1]: lambda text, _: measure_quality(text, tokenizer),
        "datatrove, same tokens, main text": lambda text, _: same(text),
        "datatrove, same tokens, both texts": lambda text, cleaned: same(*dict.fromkeys((text, cleaned))),
    }
    if tokenizer == "whitespace" and find_spec("spacy"):
        shipped = Filters()
        found["datatrove as it ships, main text"] = lambda text, _: shipped(text)
    return found


def measured(texts: list[str], work: dict[str, Callable[[str, str], Any]]) -> dict[str, list[float]]:
    """Row -> least CPU seconds for each text."""
    best = {name: [9e9] * len(texts) for name in work}
    for _ in range(ROUNDS):
        for place, text in enumerate(texts):
            cleaned = clean(text).text
            for name, run in work.items():
                for _ in range(2):  # the first run finds the caches full of the previous row
                    best[name][place] = min(best[name][place], cpu_s(lambda: run(text, cleaned)))  # noqa: B023
    return best


def show(tokenizer: str, seconds: dict[str, list[float]]) -> None:
    """One row each: milliseconds per page, and the ratio to ours, in total and for the median page."""
    print(f"\ntokenizer {tokenizer}: ms CPU a page    median     mean   x {OURS[0]:16s}   x {OURS[1]}")
    print(f"{'':58s}in all  median          in all  median")
    for name, times in seconds.items():
        line = f"  {name:36s} {statistics.median(times) * 1e3:8.3f} {sum(times) / len(times) * 1e3:8.3f}"
        for our in OURS if name not in OURS else ():
            ratios = [their / mine for their, mine in zip(times, seconds[our], strict=True)]
            line += f"   {sum(times) / sum(seconds[our]):12.1f} {statistics.median(ratios):7.1f}"
        print(line)


if __name__ == "__main__":
    main()
