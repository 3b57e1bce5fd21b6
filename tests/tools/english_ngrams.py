"""Makes the n-gram model of English that ships, filters/perplexity/english.ngrams, and prints its card.

    pip install --target DIR pocketsphinx==5.1.1
    python -m tests.tools.english_ngrams DIR [bigrams, default 400,000]

The words and bigrams are those of the model "US English generic" of CMU Sphinx, which the wheel has under the licence
BSD-2-Clause. It writes numbers as words; so the share of numbers, and the bigrams with them, are of pages of the
government of the USA, which are in the public domain, among the test data (FARMWATCH_TEST_DATA); the shares of unknown
words, too. The end of a sentence is left out: models of farmwatch do not predict it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from filters.model_file import digest_of
from filters.perplexity.model import read_model
from filters.perplexity.model_file import VERSION, Card, NgramHeader, Tables, encode
from filters.perplexity.words import NUMBER, START, sentences_of
from lab.lm.pruning import pruned
from tests.bench.timing import argument, json_lines
from tests.support.paths import data_root

BIGRAMS = 2_051_547  # of the model
OUT = Path("filters/perplexity/english.ngrams")
CARD = (
    "the words and bigrams of the language model US English generic of CMU Sphinx (pocketsphinx 5.1.1), whose texts its"
    " authors do not name; numbers and the share of unknown words by {pages} pages, {words:,} words,"
    " of the government of the USA"
)
LICENCE = "BSD-2-Clause, Copyright (c) 1999-2016 Carnegie Mellon University; the pages are in the public domain"
_WRITE = """
import sys
sys.path.insert(0, sys.argv[1])
from pocketsphinx import Config, LogMath, NGramModel, get_model_path
config, log = Config(lm=None), LogMath(1.0001, 0, False)
model = NGramModel(config, log, get_model_path("en-us/en-us.lm.bin"))
model.write(sys.argv[2], 1)  # ARPA; it crashes at the trigrams, and the last lines, some 40 bigrams, are lost
"""
_END = "</s>"
_NOT_SEEN = 5  # added to the count of a word when the share of numbers after it is computed


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        arpa = Path(folder) / "model.arpa"
        subprocess.run([sys.executable, "-c", _WRITE, sys.argv[1], str(arpa)], check=False)
        words, bigrams = read(arpa)
    texts = [
        row["text"] for row in json_lines(data_root() / "data/texts/train.jsonl.zst") if row["src"] == "digitalgov"
    ]
    tables = pruned(with_numbers(words, bigrams, texts), argument(2, 400_000))
    data = encode(tables)
    OUT.write_bytes(data)
    held_out = [row["text"] for row in json_lines(data_root() / "data/texts/dev.jsonl.zst") if row["label"] == "human"]
    surprisals = read_model(data, str(OUT)).surprisals("\n".join(held_out))
    bits = surprisals.units.sum() / surprisals.words.sum() / 4096
    print(f"{OUT}: {digest_of(data)}, {len(data)} bytes, {tables.header}; held-out human texts {bits:.2f} bits a word")


def read(arpa: Path) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """Hash of a word -> its share; hashes of two words -> the share of the second after the first."""
    section, hashes = "", dict[str, int]()
    words, joint = defaultdict[int, float](float), defaultdict[tuple[int, int], float](float)
    backoff, shares = dict[str, float](), dict[str, float]()
    pairs = list[tuple[str, str, float]]()
    for line in arpa.read_text().splitlines()[:-1]:
        if line.startswith("\\"):
            section = line.strip()
            continue
        fields = line.split()
        if section == "\\1-grams:" and fields:
            shares[fields[1]], backoff[fields[1]] = 10 ** float(fields[0]), 10 ** float(fields[-1])
        elif section == "\\2-grams:" and fields:
            pairs.append((fields[1], fields[2], 10 ** float(fields[0])))
    assert len(pairs) > BIGRAMS - 100, "the model was not written"
    of_end = shares[_END]
    ends = {word: of_end * backoff[word] for word in shares} | {a: p for a, b, p in pairs if b == _END}
    for word, share in shares.items():
        found = START if word == "<s>" else next(_only(word), None)
        if found is not None:
            hashes[word] = int(found)
            words[int(found)] += of_end if word == "<s>" else share / (1 - of_end)
    for first, second, share in pairs:
        if first in hashes and second in hashes:
            of_first = of_end if first == "<s>" else shares[first] / (1 - of_end)
            joint[hashes[first], hashes[second]] += of_first * share / (1 - ends[first])
    sums = defaultdict[int, float](float)
    for (begin, _), share in joint.items():
        sums[begin] += share
    return dict(words), {pair: share / max(words[pair[0]], sums[pair[0]]) for pair, share in joint.items()}


def _only(word: str) -> Iterator[np.uint64]:
    """The hash of what is one word for farmwatch as well."""
    hashes = np.concatenate([sentences.hashes for sentences in sentences_of(word)])
    if len(hashes) == 1:
        yield hashes[0]


def with_numbers(words: dict[int, float], bigrams: dict[tuple[int, int], float], texts: list[str]) -> Tables:
    """The model with the word NUMBER, and with the share of unknown words, as in the texts."""
    times, unknown, before, after = (defaultdict[int, int](int) for _ in range(4))
    number, total = int(NUMBER), 0
    for text in texts:
        for sentences in sentences_of(text):
            ends = set(sentences.words.cumsum().tolist())
            last = int(START)
            times[last] += len(sentences.words)
            for place, word in enumerate(sentences.hashes.tolist(), start=1):
                times[word] += 1
                total += 1
                if word not in words and word != number:
                    unknown[word] += 1
                if word == number:
                    before[last] += 1
                elif last == number:
                    after[word] += 1
                last = int(START) if place in ends else word
    once, twice = (sum(count == seen for count in unknown.values()) for seen in (1, 2))
    of_unknown, of_number = sum(unknown.values()) / total, times[number] / total
    start = int(START)
    scale = (1 - of_unknown - of_number) / sum(share for word, share in words.items() if word != start)
    shares = {word: share * (1 if word == start else scale) for word, share in words.items()} | {number: of_number}
    number_after = {word: count / (times[word] + _NOT_SEEN) for word, count in before.items() if word in shares}
    pairs = {pair: share * (1 - number_after.get(pair[0], of_number)) for pair, share in bigrams.items()}
    pairs |= {(word, number): share for word, share in number_after.items() if word != number}
    pairs |= {(number, word): count / times[number] for word, count in after.items() if word in shares}
    keys = np.array(sorted(shares), np.uint64)
    places = {word: at for at, word in enumerate(keys.tolist())}
    ids = np.array([places[first] << 32 | places[second] for first, second in pairs], np.uint64)
    of_pairs = np.fromiter(pairs.values(), float, len(pairs))
    order = np.argsort(ids)
    header = NgramHeader(
        version=VERSION,
        counts=(len(keys), len(ids)),
        unknown=of_unknown,
        unseen=len(unknown) + once**2 // (2 * twice),  # Chao's estimate of the species not seen, 1984
        card=Card(corpus=CARD.format(pages=len(texts), words=total), licence=LICENCE),
    )
    of_words = np.array([shares[word] for word in keys.tolist()], np.float32)
    return Tables(header, (keys, ids[order]), (of_words, of_pairs[order].astype(np.float32)))


if __name__ == "__main__":
    main()
