"""lite-ngram beside other detectors, on texts that it has not seen: `python -m tests.bench.studies.left_out`.

Each human source, each collection of web pages among them, is scored by a fit without it, and so are the dev texts of
each generator. Arguments name peers as NAME=COMMAND. A command reads lines of {id, text} and writes lines of {id,
p_llm}, such as `farmwatch lab score` of another version, or `python tests/bench/peers/is_it_slop_lines.py` in an
environment with is-it-slop. Peers may have seen the texts: only their authors know. Takes some four minutes.
"""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.detector.overlaps import KnownTexts
from lab.detector.regression import Trainer
from lab.detector.texts import WEB, TrainingText, read_pages, read_texts
from scoring.calibration.labelled_scores import auroc
from scoring.lite_ngram.detector import MIN_WORDS, LiteNgram
from tests.bench.timing import cpu_s
from tests.support.paths import data_root

PAGE_SETS = ("aeb", "cleaneval", "cleanportaleval", "dragnet", "readability", "wcxb")
WEB_FPR = 0.01

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """A text, and what the fit without its source or generator says."""

    text: TrainingText
    p_llm: float


def main() -> None:
    """Print a row of each detector."""
    careful = LiteNgram.load().weights.header.careful
    samples = left_out()
    texts = [" ".join(sample.text.words) for sample in samples]
    print_row("lite-ngram, left out", samples, np.array([sample.p_llm for sample in samples]), careful)
    detector = LiteNgram.load()
    print(f"  speed {len(texts) / cpu_s(lambda: detector.score(texts)):,.0f} texts/s of CPU time")
    for name, _, command in (argument.partition("=") for argument in sys.argv[1:]):
        few = run_peer(command, texts[:1])[1]
        chances, spent_s = run_peer(command, texts)
        print_row(name, samples, chances, careful)
        print(f"  speed {len(texts) / (spent_s - few):,.0f} texts/s of CPU time")


def left_out() -> list[Sample]:
    """All human texts of the training of 150 words and more, and the dev texts by models."""
    data, known = data_root() / "data", KnownTexts()
    dev = read_texts(data / "texts" / "dev.jsonl.zst", 0, known).samples
    read_texts(data / "sampleweb" / "pages.jsonl.zst", 0, known, unseen=True)
    training = read_texts(data / "texts" / "train.jsonl.zst", 0, known).samples
    for name in PAGE_SETS:
        training += read_pages(data / "pages" / name / "gold.jsonl", known).human
    trainer, samples = Trainer(training, dev, 0), list[Sample]()

    def score(keep: Callable[[TrainingText], bool], of: list[TrainingText]) -> None:
        chances = trainer.p_llm(trainer.fit_calibrated(keep), of)
        samples.extend(map(Sample, of, chances.tolist()))

    for source in sorted({text.source for text in training if not text.llm}):
        own = [text for text in training if not text.llm and text.source == source and len(text.words) >= MIN_WORDS]
        score(lambda text, source=source: text.llm or text.source != source, own)  # type: ignore[misc]
    for generator in sorted({text.generator for text in dev if text.llm}):
        own = [text for text in dev if text.generator == generator]
        score(lambda text, generator=generator: text.generator != generator, own)  # type: ignore[misc]
    return samples


def run_peer(command: str, texts: list[str]) -> tuple[Floats, float]:
    """Probabilities of a peer, 0 where it abstains; and the CPU seconds that it took."""
    lines = "".join(json.dumps({"id": str(place), "text": text}) + "\n" for place, text in enumerate(texts))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(shlex.split(command), input=lines, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {row["id"]: row["p_llm"] for row in map(json.loads, ran.stdout.splitlines())}
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return np.array([found[str(place)] or 0.0 for place in range(len(texts))]), spent_s


def print_row(name: str, samples: list[Sample], chances: Floats, careful: float) -> None:
    """AUROC, human sources flagged, LLM texts found, at p > .95, the careful threshold, and 1% of human web pages."""
    llm = np.array([sample.text.llm for sample in samples])
    domains = np.array([sample.text.domain for sample in samples])
    web, rewritten = domains == WEB, domains == "mixed"
    sources = np.array([sample.text.source for sample in samples])
    shares = {source: chances[~llm & (sources == source)] > 0.95 for source in sorted(set(sources[~llm]))}
    means = {source: float(flags.mean()) for source, flags in shares.items()}
    at_web = np.quantile(chances[web], 1 - WEB_FPR, method="higher")
    print(f"{name}: AUROC {auroc(chances[~llm], chances[llm]):.3f}")
    print(f"  rewritten texts against all human texts: AUROC {auroc(chances[~llm], chances[rewritten]):.3f}")
    print(
        f"  flagged at p > .95: worst source {max(means.values()):.1%}, mean {np.mean(list(means.values())):.1%},",
        end="",
    )
    print(f" web pages {(chances[web] > 0.95).mean():.1%}; found {(chances[llm] > 0.95).mean():.1%}")
    print(f"  found at 1% of human web pages (p > {at_web:.4f}) {(chances[llm] > at_web).mean():.1%}")
    at_careful = chances > careful
    print(f"  careful, p > {careful:g}: web pages {at_careful[web].mean():.1%}, found {at_careful[llm].mean():.1%}")
    print(
        "  " + ", ".join(f"{source} {share:.1%} of {len(shares[source])}" for source, share in means.items()),
        flush=True,
    )


if __name__ == "__main__":
    main()
