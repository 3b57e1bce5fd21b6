"""The cost of sentences' perplexities: sentences per CPU-second of one core, memory, start; kenlm, if it is there.

Needs the texts of the test data (FARMWATCH_TEST_DATA): the held-out human ones, over again up to 100,000 sentences.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from filters.perplexity.fluent import fluent_text
from filters.perplexity.model import Formula, shipped_model
from filters.perplexity.words import sentences_of
from tests.bench.peers.kenlm_peer import bits, spoken, write_arpa
from tests.bench.timing import apart, cpu_s, json_lines, memory_mib
from tests.support.paths import data_root

ROUNDS, SENTENCES = 7, 100_000
PYPLEXITY = 20_700  # sentences a second, as its authors publish


def main() -> None:
    texts = [row["text"] for row in json_lines(data_root() / "data/texts/dev.jsonl.zst") if row["label"] == "human"]
    model = shipped_model()
    text, count, words = "", 0, 0
    while count < SENTENCES:
        text += "\n".join(texts) + "\n"
        surprisals = model.surprisals(text)
        count, words = int((surprisals.words > 0).sum()), int(surprisals.words.sum())
    print(f"{count:,} sentences of {words / count:.1f} words, {len(text):,} characters, median of {ROUNDS}")
    for formula in Formula:
        speed = count / _median(lambda: model.surprisals(text, formula))  # noqa: B023  # called at once
        print(
            f"{formula}: {speed:,.0f} sentences per CPU-second, {speed / PYPLEXITY:.1f} times pyplexity's {PYPLEXITY:,}"
        )
    print(f"tokens alone: {count / _median(lambda: sum(1 for _ in sentences_of(text))):,.0f}")
    pages = texts[:1000]
    each = _median(lambda: [fluent_text(page, model, 8_000) for page in pages]) / len(pages)
    print(f"fluent_text of one text: {each * 1e3:.2f} ms of CPU, {len(pages)} texts")
    size = 12 * sum(model.ngrams) / 2**20
    start, loaded, used = apart(_memory, text[:2_000_000])
    print(f"start {start * 1e3:.0f} ms; n-grams {size:.1f} MiB; own memory: loaded {loaded:+.1f}, used {used:+.1f} MiB")
    if not find_spec("kenlm"):
        print("kenlm is not installed")
        return
    import kenlm

    with TemporaryDirectory() as folder:
        write_arpa(file := Path(folder) / "english.arpa")
        peer, lines = kenlm.Model(str(file)), spoken(text)
    speed = count / _median(lambda: bits(peer, lines))
    ours = model.surprisals(text).units / 4096
    most = np.max(np.abs(ours - bits(peer, lines)) / np.maximum(surprisals.words, 1))
    print(f"kenlm, sentences as words already: {speed:,.0f}; largest difference of a sentence: {most:.5f} bits a word")


def _median(work: Callable[[], object]) -> float:
    return statistics.median(cpu_s(work) for _ in range(ROUNDS))


def _memory(text: str) -> tuple[float, float, float]:
    """Seconds of the first load; memory of its own, in MiB, of the loaded model, and after its use."""
    list(sentences_of(text))  # the tables of characters
    before = memory_mib("RssAnon")
    start = cpu_s(shipped_model)
    loaded = memory_mib("RssAnon")
    shipped_model().surprisals(text)
    return start, loaded - before, memory_mib("RssAnon") - loaded


if __name__ == "__main__":
    main()
