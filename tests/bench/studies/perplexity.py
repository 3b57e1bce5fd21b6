"""What a text loses without its unlikely sentences: flags on human pages, likeness to labelled texts, divergence, cost.

    python -m tests.bench.studies.perplexity flags|cleaneval [every nth page, default 1] [model of blocks]
    python -m tests.bench.studies.perplexity pair PAGES FOLDER

Prints the tables of docs/explanation/perplexity.md; `cleaneval` also writes its picture. The model of blocks is one
that learned nothing of CleanEval: `lab train-extractor` with `--source` of each other source makes it. A page is surely
human as in `tests.bench.bench_segments`. Main texts are those of the articles under `default`. `pair` scores a sample
of so many pages, and as many others for the thresholds, with the language model in the folder as both of a pair.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from farmwatch.console.drawings import saved
from farmwatch.console.pictures import Strip, shares
from farmwatch.labels.labelled_pages import LabelledPages
from farmwatch.terminal.messages import message
from filters.perplexity.fluent import fluent_text, kept_text
from filters.perplexity.model import Formula, shipped_model
from filters.quality.sentences import count_sentences
from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from lab.extractor_bench.edit_distance import edit_distances
from lab.extractor_bench.pages import read_pages
from lab.extractor_bench.runs import run_tool
from lab.lm.calibration import CURVE
from lab.lm.tag_remover import text_without_tags
from scoring.engine.tokens import head
from scoring.estimate.intervals import Z95, wilson
from scoring.interface import TextScore
from scoring.lite_ngram.detector import LiteNgram
from scoring.pair.models import load_models
from scoring.pair.scores import PairReading
from scoring.pair.settings import PairSettings, pair_identity
from tests.bench.bench_segments import is_human
from tests.bench.timing import argument, json_lines, labelled_pages_folder
from tests.support.paths import data_root

LIMITS = {Formula.PUBLISHED: (8_000, 14_000), Formula.INTERPOLATED: (8_000, 14_000, 40_000)}
_MODEL, _LITE, _DEFAULT = shipped_model(), LiteNgram.load(), load_ruleset("default")


class Way(NamedTuple):
    """A formula and a limit; no formula: the text as it is."""

    formula: Formula | None = None
    limit: float = 0

    def __str__(self) -> str:
        return f"{self.formula} {self.limit:,.0f}" if self.formula else "whole"

    def of(self, text: str) -> str:
        return fluent_text(text, _MODEL, self.limit, self.formula) if self.formula else text


WAYS = (Way(), *(Way(formula, limit) for formula, limits in LIMITS.items() for limit in limits))


def main() -> None:
    print(f"{datetime.now(UTC):%Y-%m-%d}; numpy {version('numpy')}; model {_MODEL.digest}; {_LITE.identity}")
    {"flags": print_flags, "cleaneval": print_cleaneval, "pair": print_pair}[sys.argv[1]](argument(2, 1))


class Scored(NamedTuple):
    """A text and its score as it is, and without the sentences above the limit, by the name of the way."""

    words: Mapping[str, int]
    sentences: Mapping[str, int]
    bits: Mapping[str, float]  # a word, in the mean
    scores: Mapping[str, TextScore]


def print_flags(every: int) -> None:
    """By source of surely human pages, and of held-out texts of both kinds: flagged of scored, before and after."""
    groups = defaultdict[str, list[Scored]](list)
    for source, text in main_texts(every):
        groups[source].append(_scored(text))
    groups["all pages"] = [page for source in list(groups) for page in groups[source]]
    for row in list(json_lines(data_root() / "data" / "texts" / "dev.jsonl.zst"))[::every]:
        groups[f"texts, {row['label']}: {row['src']}"].append(_scored(row["text"]))
    for label in ("human", "llm"):
        groups[f"all texts, {label}"] = [
            text for name in list(groups) if name.startswith(f"texts, {label}") for text in groups[name]
        ]
    for formula in (Formula.PUBLISHED, Formula.INTERPOLATED):
        ways = [way for way in WAYS[1:] if way.formula == formula]
        print(f"\nFlagged of scored, formula {formula}; then flags gained and lost, and texts that lose their score\n")
        _print_line(
            "source", "whole", *(f"{way.limit:,}" for way in ways), *(f"change by {way.limit:,}" for way in ways)
        )
        _print_line(*["---"] * (2 + 2 * len(ways)))
        for name, of in groups.items():
            _print_line(name, *(_flagged(of, way) for way in (WAYS[0], *ways)), *(_changes(of, way) for way in ways))
    print("\nShares of sentences and words that go; mean p_llm before and after, of texts with a score both times\n")
    _print_line("source", *WAYS[1:])
    _print_line(*["---"] * len(WAYS))
    for name, of in groups.items():
        _print_line(name, *(_moved(of, way) for way in WAYS[1:]))
    print("\nBits a word: quartiles of texts; share of those below the 1st and 5th centile of human texts\n")
    _print_line("texts", "", *WAYS)
    _print_line(*["---"] * (2 + len(WAYS)))
    human, llm = groups["all pages"] + groups["all texts, human"], groups["all texts, llm"]
    edges = np.quantile([of.bits["whole"] for of in human], (0.01, 0.05))
    for name, of in (("human", human), ("llm", llm)):
        bits = [np.array([text.bits[str(way)] for text in of if text.words[str(way)] >= 150]) for way in WAYS]
        _print_line(
            name, "quartiles", *(" ".join(f"{q:.2f}" for q in np.quantile(each, (0.25, 0.5, 0.75))) for each in bits)
        )
        for edge in edges:
            _print_line(name, f"below {edge:.2f}", *(f"{np.mean(each < edge):.1%} of {len(each)}" for each in bits))


def main_texts(every: int) -> Iterable[tuple[str, str]]:
    """Source and main text of each surely human page that `default` keeps."""
    root = labelled_pages_folder()
    folder = LabelledPages(root)
    folder.labels = folder.labels[::every]
    more = {line["id"]: line for file in root.glob("*/gold.jsonl") for line in map(json.loads, file.open("rb"))}
    folder.narrow(lambda label: is_human(label, more[label.id]))
    for page in folder.measured(MeasureSettings(workers=2, time_limit_s=120)):
        if text := judge_and_text(page.features, _DEFAULT)[1]:
            yield page.label.source, text


def _scored(text: str) -> Scored:
    texts = {str(way): way.of(text) for way in WAYS}
    scores = _LITE.score(list(texts.values()))
    return Scored(
        {name: len(of.split()) for name, of in texts.items()},
        {name: count_sentences(of) for name, of in texts.items()},
        {name: _bits(of) for name, of in texts.items()},
        dict(zip(texts, scores, strict=True)),
    )


def _bits(text: str) -> float:
    surprisals = _MODEL.surprisals(text)
    return float(surprisals.units.sum() / max(surprisals.words.sum(), 1) / 4096)


def _number(texts: Sequence[Scored], way: Way) -> int:
    return sum(of.scores[str(way)].score is not None for of in texts)


def _flagged(texts: Sequence[Scored], way: Way) -> str:
    scored, flags = _number(texts, way), sum(bool(of.scores[str(way)].flag) for of in texts)
    if not scored:
        return "-"
    share, low, high = wilson(flags, scored, Z95)
    return f"{flags} of {scored}: {share:.1%} ({low:.1%} to {high:.1%})"


def _changes(texts: Sequence[Scored], way: Way) -> str:
    pairs = [(of.scores["whole"], of.scores[str(way)]) for of in texts]
    both = [(bool(a.flag), bool(b.flag)) for a, b in pairs if b.score is not None]
    return f"+{both.count((False, True))} -{both.count((True, False))}, {_number(texts, WAYS[0]) - len(both)}"


def _moved(texts: Sequence[Scored], way: Way) -> str:
    words, sentences = Counter[str](), Counter[str]()
    for of in texts:
        words.update(of.words)
        sentences.update(of.sentences)
    pairs = [(of.scores["whole"].p_llm, of.scores[str(way)].p_llm) for of in texts]
    known = [(before, after) for before, after in pairs if before is not None and after is not None]
    means = [sum(column) / len(known) for column in zip(*known, strict=True)] or [0, 0]
    gone = f"{1 - sentences[str(way)] / sentences['whole']:.1%} {1 - words[str(way)] / words['whole']:.1%}"
    return f"{gone}; {means[0]:.4f} {means[1]:.4f}"


TOKENS, HELD_OUT = 256, 40  # read of a text; texts of each label
LIKENESSES: Mapping[str, Callable[[PairReading], float]] = {  # high: a language model's
    "perplexity": lambda of: -of.ppl,
    "Binoculars": lambda of: -of.binoculars,
    "Fast-DetectGPT": lambda of: of.fast_detectgpt,
}


def print_pair(pages: int) -> None:
    """Scores of human pages by one model as observer and performer, before and after; thresholds of other pages."""
    from scoring.pair.engine import PairEngine  # needs torch

    settings = PairSettings(observer=sys.argv[3], performer=sys.argv[3], device="cpu", max_tokens=TOKENS)
    models = load_models(settings)
    once = models.performer._replace(body=lru_cache(1)(models.performer.body))  # the observer's states are the same
    engine = PairEngine(models._replace(observer=once, performer=once), settings)
    names = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    print(f"{pair_identity(settings, 'binoculars')}; {names}")

    def read(texts: Iterable[str]) -> list[PairReading | None]:
        heads = [head(text, TOKENS) for text in texts]
        distinct = list(dict.fromkeys(heads))
        results = dict(zip(distinct, engine.read(distinct), strict=True))
        return [result[0] if isinstance(result := results[of], list) else None for of in heads]

    rows, texts = list(json_lines(data_root() / "data" / "texts" / "dev.jsonl.zst")), sorted(main_texts(1))
    for drawn in (rows, texts):
        random.Random(1).shuffle(drawn)
    human, llm = (read([row["text"] for row in rows if row["label"] == label][:HELD_OUT]) for label in ("human", "llm"))
    sample = [[way.of(text) for way in WAYS] for _, text in texts[: 2 * pages : 2]]
    others = read(text for _, text in texts[1 : 2 * pages : 2])
    results = read(text for of in sample for text in of)
    print(f"Flagged of {pages} pages by the threshold that flags 5% of as many others; shifts in deviations of those\n")
    _print_line("text", "words that go", *(f"{name}, {cell}" for name in LIKENESSES for cell in ("flagged", "shift")))
    _print_line(*["---"] * (2 + 2 * len(LIKENESSES)))
    whole = sum(len(of[0].split()) for of in sample)
    for place, way in enumerate(WAYS):
        pairs = [(a, b) for a, b in zip(results[:: len(WAYS)], results[place :: len(WAYS)], strict=True) if a and b]
        cells = [cell for likeness_of in LIKENESSES.values() for cell in _shifted(pairs, likeness_of, others)]
        _print_line(way, f"{1 - sum(len(of[place].split()) for of in sample) / whole:.1%}", *cells)
    for name, likeness_of in LIKENESSES.items():
        above = [likeness_of(b) > likeness_of(a) for a in human for b in llm if a and b]
        print(f"{name}: AUROC of held-out texts, {HELD_OUT} of each label: {np.mean(above):.3f}")


def _shifted(
    pairs: Sequence[tuple[PairReading, PairReading]],
    likeness_of: Callable[[PairReading], float],
    others: Iterable[PairReading | None],
) -> tuple[str, str]:
    """Flags after, gained and lost; the mean change towards a language model with its paired interval."""
    human = np.array([likeness_of(of) for of in others if of])
    before, after = (np.array(list(map(likeness_of, column))) for column in zip(*pairs, strict=True))
    edge, moves = np.quantile(human, 0.95), (after - before) / human.std()
    was, now = before > edge, after > edge
    share, low, high = wilson(int(now.sum()), len(now), Z95)
    flagged = (
        f"{now.sum()} of {len(now)}: {share:.1%} ({low:.1%} to {high:.1%}), +{(now & ~was).sum()} -{(was & ~now).sum()}"
    )
    half = Z95 * moves.std() / len(moves) ** 0.5
    return flagged, f"{moves.mean():+.3f} ({moves.mean() - half:+.3f} to {moves.mean() + half:+.3f})"


class Page(NamedTuple):
    """A page of CleanEval: its labelled main text, and its text by each way of the names."""

    gold: str
    texts: Mapping[str, str]


PUBLISHED = {"justext": "76.20", "published 8,000": "79.76", "published 10,000": "79.80"}  # x 100
TAGS_ONLY = "tags only"
OTHERS = ("justext", "trafilatura", "measure-trafilatura", "measure-blocks")
OTHER_SOURCES = "blocks of other sources"
PICTURE = Path("docs/images/perplexity-limits.svg")


def print_cleaneval(every: int) -> None:
    """Likeness of texts to the labelled ones by Levenshtein's distance of words; the curve of the limit; divergence."""
    read = read_pages([labelled_pages_folder() / "cleaneval"], 0, message, lambda _: None)
    bench = read.pages[::every]
    learned = MeasureSettings(workers=2, extractor="blocks", extractor_model=sys.argv[3] if len(sys.argv) > 3 else "")
    by_tool = {name: run_tool(name, bench, MeasureSettings(workers=2), lambda _: None) for name in OTHERS}
    if learned.extractor_model:
        by_tool[OTHER_SOURCES] = run_tool("measure-blocks", bench, learned, lambda _: None)
    started = process_time()
    tagless = [text_without_tags(zstandard.decompress(page.raw.body).decode()) for page in bench]
    print(f"tags: {(process_time() - started) / len(bench) * 1e3:.1f} ms a page")
    golds = [page.gold for page in bench]
    rows = {TAGS_ONLY: tagless} | {name: run.texts for name, run in by_tool.items()}
    for formula in (Formula.PUBLISHED, Formula.INTERPOLATED):
        started = process_time()
        surprisals = [_MODEL.surprisals(text, formula) for text in tagless]
        print(f"{formula}: {(process_time() - started) / len(bench) * 1e3:.1f} ms a page")
        for limit in CURVE:
            rows[f"{formula} {limit:,}"] = [
                kept_text(text, of.bounds, of.above(limit)) for text, of in zip(tagless, surprisals, strict=True)
            ]
    alike = {name: np.array(list(map(likeness, texts, golds))) for name, texts in rows.items()}
    for formula in (Formula.PUBLISHED, Formula.INTERPOLATED):  # the limit of each half is the best one of the other
        names = [f"{formula} {limit:,}" for limit in CURVE]
        halves = np.arange(len(bench)) % 2
        crossed = np.zeros(len(bench))
        for half in (0, 1):
            best = max(names, key=lambda name: alike[name][halves != half].mean())
            crossed[halves == half] = alike[best][halves == half]
            print(f"{formula}: best for half {1 - half}: {best}")
        alike[f"{formula}, calibrated"] = crossed
    whole, wanted, words = sum(map(len, tagless)), words_of(golds), words_of(tagless)
    _print_line("text", "likeness", "beside tags only", "published", "characters", "KL of kept", "KL of the rest")
    _print_line(*["---"] * 7)
    base = alike[TAGS_ONLY]
    for name, values in alike.items():
        cells = ["", "", ""]
        if texts := rows.get(name):
            kept = words_of(texts)
            cells = [f"{sum(map(len, texts)) / whole:.1%}", divergence(kept, wanted), divergence(words - kept, wanted)]
        moved = values - base
        half = Z95 * moved.std() / len(moved) ** 0.5
        gap = f"{moved.mean():+.3f} ({moved.mean() - half:+.3f} to {moved.mean() + half:+.3f})" if half else ""
        _print_line(name, f"{values.mean():.3f}", gap, PUBLISHED.get(name, ""), *cells)
    draw(alike)


def words_of(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in text.lower().split())


def divergence(words: Counter[str], wanted: Counter[str]) -> str:
    """Kullback and Leibler's divergence of words from those of the labelled texts, in bits; each counts .1 more."""
    if not words:
        return ""
    every = words.keys() | wanted.keys()
    ours, theirs = (np.array([of[word] + 0.1 for word in every]) for of in (words, wanted))
    ours, theirs = ours / ours.sum(), theirs / theirs.sum()
    return f"{(ours * np.log2(ours / theirs)).sum():.2f}"


def draw(alike: Mapping[str, NDArray[np.float64]]) -> None:
    """The picture of the curve: likeness by limit, with that of the whole text as a line."""
    base = float(alike[TAGS_ONLY].mean())
    strips = []
    for name in (f"{formula} {limit:,}" for formula in Formula for limit in CURVE):
        half = Z95 * alike[name].std() / len(alike[name]) ** 0.5
        mean = float(alike[name].mean())
        strips.append(Strip(name, mean, mean - half, mean + half, "", base))
    PICTURE.write_text(saved(shares("Likeness to the labelled texts by limit; the line: tags only", strips)))


def likeness(text: str, gold: str) -> float:
    """1 - Levenshtein's distance of the words / words of the longer text."""
    ours, theirs = text.split(), gold.split()
    return 1 - edit_distances(theirs, [ours])[0] / max(len(ours), len(theirs), 1)


def _print_line(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
